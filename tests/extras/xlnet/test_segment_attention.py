"""XLNet's attention: its equation, one stream and two, queries at any place, and rows that see nothing."""

import keras
import numpy as np
import pytest

from t2t_lite import layers
from t2t_lite.extras.xlnet.segment_attention import Places, SegmentAttention, SegmentContext
from tests.layers.equations import array

HEADS, SIZE, LENGTH = 2, 4, 5
RNG = np.random.default_rng(2)
STATES = RNG.normal(size=(2, LENGTH, 8)).astype("float32")
QUERIES = RNG.normal(size=(2, 3, 8)).astype("float32")
SEGMENTS = np.array([[0, 0, 1, 1, -1], [0, 0, 0, -1, 1]], "int32")
PLACES = np.array([[1, 2, 4], [0, 3, 3]], "int32")
MASK = RNG.random((2, LENGTH + 3, LENGTH)) < 0.6


@pytest.fixture(scope="module")
def layer():
    keras.utils.set_random_seed(1)
    made = SegmentAttention(HEADS, clamp_length=3)
    made.build((None, None, 8))
    for weight in made.weights:
        weight.assign(RNG.normal(scale=0.5, size=weight.shape))
    return made


def equation(layer, queries, places, mask):
    """Returns the output for queries at places [B, N], by loops over rows, heads, queries and keys."""
    kernels = {role: array(getattr(layer, f"{role}_projection").kernel) for role in ("query", "key", "value", "output")}
    split = {role: lambda x, role=role: (x @ kernels[role]).reshape(*x.shape[:-1], HEADS, SIZE) for role in kernels}
    u, v, b = (array(getattr(layer, f"{name}_bias")) for name in ("content", "position", "segment"))
    table, frequencies = array(layer.segment_table), 10000.0 ** (-np.arange(0, 8, 2) / 8)
    of_distances = array(layer.position_projection.kernel)
    output = np.zeros((2, queries.shape[1], HEADS, SIZE))
    for row in range(2):
        key, value = split["key"](STATES[row]), split["value"](STATES[row])
        for n, i in enumerate(places[row]):
            query = split["query"](queries[row, n])
            for head in range(HEADS):
                scores = np.zeros(LENGTH)
                for j in range(LENGTH):
                    angles = np.clip(i - j, -3, 3) * frequencies
                    distance = np.concatenate([np.sin(angles), np.cos(angles)]) @ of_distances
                    alike = SEGMENTS[row, i] == SEGMENTS[row, j]
                    scores[j] = (
                        (query[head] + u[head]) @ key[j, head]
                        + (query[head] + v[head]) @ distance.reshape(HEADS, SIZE)[head]
                        + (query[head] + b[head]) @ table[0 if alike else 1, head]
                    ) / SIZE**0.5
                weights = np.exp(scores - scores.max()) * mask[row, n]
                output[row, n, head] = weights / max(weights.sum(), 1e-9) @ value[:, head]
    return output.reshape(2, -1, HEADS * SIZE) @ kernels["output"]


def test_two_streams_are_the_equation(layer):
    mask = MASK | np.pad(np.eye(LENGTH, dtype=bool), ((0, 3), (0, 0)))
    mask[:, LENGTH:, 0] = True
    context = SegmentContext(segments=SEGMENTS, places=PLACES)
    both = np.concatenate([STATES, QUERIES], 1)
    found, weights = layer(both, context=context, attention_mask=mask, return_attention_scores=True)
    assert weights.shape == (2, HEADS, LENGTH + 3, LENGTH)
    places = np.tile(np.arange(LENGTH), (2, 1))
    expected = [equation(layer, STATES, places, mask), equation(layer, QUERIES, PLACES, mask[:, LENGTH:])]
    np.testing.assert_allclose(array(found), np.concatenate(expected, 1), atol=1e-5)


def test_one_stream_is_the_first_of_two(layer):
    context = SegmentContext(segments=SEGMENTS, places=PLACES)
    both = layer(np.concatenate([STATES, QUERIES], 1), context=context, attention_mask=MASK[:, :1])
    alone = layer(STATES, context=SegmentContext(segments=SEGMENTS), attention_mask=MASK[:, :1])
    np.testing.assert_allclose(array(both)[:, :LENGTH], array(alone), atol=1e-6)


def test_without_segments_it_is_transformer_xl(layer):
    keras.utils.set_random_seed(1)
    other = layers.MultiHeadAttention(HEADS, score={"type": "memory", "clamp_length": 3})
    other.build((None, None, 8))
    weights = {weight.path.split("/", 1)[1]: weight for weight in layer.weights}
    for weight in other.weights:
        weight.assign(weights[weight.path.split("/", 1)[1]])
    one = np.zeros((2, LENGTH), "int32")
    for found in (layer(STATES), layer(STATES, context=SegmentContext(segments=one))):
        np.testing.assert_allclose(array(found), array(other(STATES)), atol=1e-6)


def test_two_streams_drop_weights_of_their_own(layer):
    """Queries like the states at their places see the same: without dropout the two streams are equal."""
    made = SegmentAttention.from_config(layer.get_config() | {"dropout": 0.5})
    made.build((None, None, 8))
    made.set_weights(layer.get_weights())
    layers.number_seeds(layers.TransformerStack([made]))
    context = SegmentContext(segments=SEGMENTS, places=np.tile(np.arange(LENGTH), (2, 1)))
    for training in (False, True):
        with layers.dropout_seed(keras.ops.convert_to_tensor(3, "int32")):
            both = array(made(np.tile(STATES, (1, 2, 1)), context=context, training=training))
        differs = np.abs(both[:, :LENGTH] - both[:, LENGTH:]).max() > 0.01
        assert differs == training
    assert made.flops(7) == layers.MultiHeadAttention.flops(made, 7) + 2 * 2 * HEADS * SIZE
    more = made.activations(7, 2) - layers.MultiHeadAttention.activations(made, 7, 2)
    assert more == HEADS * (SIZE + 2) * 2 + 7


@pytest.mark.parametrize("places", [(), PLACES], ids=["one stream", "two streams"])
def test_the_mask_that_keras_carries_hides_keys(layer, places):
    context, seen = SegmentContext(segments=SEGMENTS, places=places), np.arange(LENGTH) < np.array([[5], [3]])
    rows = [STATES * seen[..., None], *([] if isinstance(places, tuple) else [QUERIES])]
    masked = keras.layers.Masking()(np.concatenate(rows, 1).astype("float32"))
    expected = array(layer(array(masked), context=context, attention_mask=seen[:, None]))
    for mask in ({}, {"attention_mask": np.ones((1, 1, LENGTH), "bool")}):
        np.testing.assert_allclose(array(layer(masked, context=context, **mask)), expected, atol=1e-6)


def test_a_row_that_sees_nothing_is_finite(layer):
    mask = np.zeros((2, LENGTH + 3, LENGTH), bool)
    context = SegmentContext(segments=SEGMENTS, places=PLACES)
    assert np.isfinite(array(layer(np.concatenate([STATES, QUERIES], 1), context=context, attention_mask=mask))).all()


def test_what_it_does_not_do_is_refused(layer):
    with pytest.raises(ValueError, match="`pattern` must be 'full'"):
        SegmentAttention(2, pattern={"type": "window", "neighborhood": 3})
    with pytest.raises(ValueError, match=r"position_dropout=1\.5"):
        SegmentAttention(2, position_dropout=1.5)
    for more in ({"value": STATES}, {"use_causal_mask": True}):
        with pytest.raises(ValueError, match=r"SegmentAttention: .*self-attention"):
            layer(STATES, context=SegmentContext(segments=SEGMENTS), **more)


def test_distances_of_queries_at_any_place():
    places = Places(np.array([[3, 0]]))  # two queries of 4 keys: distances -3 to 4
    by_distance = keras.ops.convert_to_tensor(np.tile(np.arange(-3.0, 5), (1, 1, 2, 1)))
    assert array(places.place(by_distance))[0, 0].tolist() == [[-3, -2, -1, 0], [0, 1, 2, 3]]
