"""Restricted attention against full attention with the neighbourhood as its mask, written out in NumPy."""

# Nearest tests of: t2t_lite/layers/key_patterns.py, t2t_lite/layers/key_parts.py

import keras
import numpy as np
import pytest

from t2t_lite import layers
from tests.layers.equations import array, attention_in_numpy
from tests.layers.harness import check_layer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 6, 8)).astype("float32")
LONG = RNG.normal(size=(2, 203, 8)).astype("float32")  # computed in blocks of 32


def restricted(neighborhood):
    """A layer of four heads, whose keys have size 3, and values 5."""
    return layers.RestrictedAttention(4, neighborhood, key_dim=3, value_dim=5)


def neighborhood(length, r, causal=False, end=None):
    """bool [length, length]: row i has the r positions around i, moved inwards at the ends; written as loops."""
    end = length if end is None else end
    visible = np.zeros((length, length), bool)
    for i in range(length):
        first = i - r + 1 if causal else min(max(i - r // 2, 0), max(end - r, 0))
        for j in range(max(first, 0), min(first + r, i + 1 if causal else end)):
            visible[i, j] = True
    return visible


def test_neighborhood_of_three():
    assert neighborhood(5, 3).astype(int).tolist() == [
        [1, 1, 1, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 1, 1, 1, 0],
        [0, 0, 1, 1, 1],
        [0, 0, 1, 1, 1],
    ]
    assert neighborhood(4, 2, causal=True).astype(int).tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 1, 1],
    ]


def test_an_attend_of_ones_own_is_used_at_every_length():
    class Nothing(layers.RestrictedAttention):
        def attend(self, query, key, value, mask, training):
            output, weights = super().attend(query, key, value, mask, training)
            return output * 0, weights

    layer = Nothing(2, 3)
    assert not array(layer(X)).any() and not array(layer(LONG)).any()


def test_a_mask_of_one_column_is_that_of_all_keys():
    layer = layers.RestrictedAttention(2, 3)
    np.testing.assert_array_equal(array(layer(LONG, value_mask=np.ones((2, 1), bool))), array(layer(LONG)))


@pytest.mark.long
@pytest.mark.parametrize("x", [X, LONG], ids=["in_full", "in_blocks"])
def test_contract(x, tmp_path):
    check_layer(layers.RestrictedAttention, {"num_heads": 2, "neighborhood": 3}, x, 4, tmp_path)


@pytest.mark.few(
    "6-2-centred",
    "6-40-causal",
    "163-1-causal",
    "163-5-centred",
    "163-31-causal",
    "203-5-causal",
    "203-31-centred",
    "203-40-centred",
)
@pytest.mark.parametrize("causal", [False, True], ids=["centred", "causal"])
@pytest.mark.parametrize("r", [1, 2, 5, 31, 40])
@pytest.mark.parametrize("length", [6, 163, 203])
def test_equals_full_attention_under_the_mask(length, r, causal):
    x = LONG[:, :length]
    layer = restricted(r)
    output = array(layer(x, use_causal_mask=causal))
    np.testing.assert_allclose(output, attention_in_numpy(layer, x, x, neighborhood(length, r, causal)), atol=1e-5)


@pytest.mark.slow
@pytest.mark.few("5-causal", "40-centred")
@pytest.mark.parametrize("causal", [False, True], ids=["centred", "causal"])
@pytest.mark.parametrize("r", [5, 40])
def test_lengths_that_are_only_known_when_the_graph_runs(r, causal):
    layer = restricted(r)
    inputs = keras.Input((None, 8))
    model = keras.Model(inputs, layer(inputs, use_causal_mask=causal))
    for length in (1, 6, 163, 203):
        x = LONG[:, :length]
        expected = attention_in_numpy(layer, x, x, neighborhood(length, r, causal))
        np.testing.assert_allclose(model.predict(x, verbose=0), expected, atol=1e-5)
    assert model.predict(LONG[:, :0], verbose=0).shape == (len(LONG), 0, 8)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="other backends know all lengths")
@pytest.mark.parametrize("padding", [0, 4])
@pytest.mark.parametrize("score", ["dot_product", {"type": "relative", "max_relative_position": 3}], ids=str)
def test_in_a_graph_a_row_shorter_than_a_neighborhood_has_no_keys_beyond_its_end(score, padding):
    import tensorflow as tf

    layer = layers.RestrictedAttention(4, 40, score=score)
    layer.build(LONG.shape)
    graph = tf.function(layer, input_signature=[tf.TensorSpec([None, None, 8])], autograph=False)
    masked = keras.layers.Masking()
    graph_of_masked = tf.function(lambda x: layer(masked(x)), input_signature=graph.input_signature, autograph=False)
    for length in (1, 2, 6, 21, 39, 40):
        x = LONG[:, :length]
        padded = np.pad(x, ((0, 0), (0, padding), (0, 0)))
        found = (graph_of_masked if padding else graph)(padded)[:, :length]
        np.testing.assert_allclose(found, array(layer(x)), atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_padding_changes_nothing(causal):
    """The neighbourhood ends with the sentence, not with the batch, in blocks as in full."""
    layer = restricted(20)
    mask = np.arange(203)[None, None] < np.array([[[203]], [[150]]])
    padded = array(layer(LONG, attention_mask=mask, use_causal_mask=causal))[1, :150]
    alone = array(layer(LONG[1:, :150], use_causal_mask=causal))[0]
    short = attention_in_numpy(layer, LONG[1:, :150], LONG[1:, :150], neighborhood(150, 20, causal))[0]
    np.testing.assert_allclose(padded, alone, atol=1e-5)
    np.testing.assert_allclose(padded, short, atol=1e-5)


def test_so_many_scores_of_a_query_are_made():
    assert [restricted(7).pattern.seen(keys) for keys in (3, 7, 203)] == [3, 7, 7]
