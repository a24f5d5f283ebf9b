"""Every score with every pattern against dense attention under the pattern's predicate, written as loops."""

import sys

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers, registry
from t2t_lite.layers.cache import Past
from tests.layers.equations import array, attention_in_numpy
from tests.layers.harness import check_layer
from tests.layers.kinds import needs, registered

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 31, 8)).astype("float32")


def sees(i, j, kind, *sizes):
    """Whether position i sees position j, an earlier one or itself."""
    if kind == "full":
        return True
    if kind == "window":
        return i - j < sizes[0]
    if kind == "local_1d":
        return i // sizes[0] - j // sizes[0] <= 1
    if kind == "strided":
        return i - j < sizes[0] or (i - j) % sizes[0] == 0
    if kind == "fixed":
        return i // sizes[0] == j // sizes[0] or j % sizes[0] >= sizes[0] - sizes[1]
    height, width, image_width, above, beside = sizes
    blocks = image_width // width
    (row, column), (other_row, other_column) = (divmod(p // (height * width), blocks) for p in (i, j))
    return row - other_row <= above and abs(column - other_column) <= beside


def visible(length, case):
    kind, sizes = case
    rows = [[j <= i and sees(i, j, kind, *sizes) for j in range(length)] for i in range(length)]
    return np.array(rows, bool).reshape(length, length)


OPTIONS = {
    "full": [],
    "window": ["neighborhood"],
    "local_1d": ["block_length"],
    "strided": ["stride"],
    "fixed": ["stride", "summary"],
    "local_2d": ["block_height", "block_width", "image_width", "blocks_above", "blocks_beside"],
}
PATTERNS = [("window", (3,)), ("local_1d", (3,)), ("strided", (3,)), ("fixed", (3, 1)), ("fixed", (4, 2))]
PATTERNS = registered([*PATTERNS, ("local_2d", (2, 2, 4, 1, 1))])
SIZES = [(kind, sizes) for size in (1, 4) for kind, sizes in (("local_1d", (size,)), ("strided", (size,)))]
SIZES += [("fixed", (1, 1)), ("fixed", (4, 4)), ("local_2d", (1, 2, 6, 2, 1)), ("local_2d", (2, 3, 3, 1, 1))]
SIZES = registered(SIZES)
SCORES = {
    "relative": {"type": "relative", "max_relative_position": 4, "add_relative_to_values": True},
    "relative_v2": {"type": "relative_v2", "max_relative_position": 5, "add_relative_to_values": True},
    "one table": {"type": "relative_v2", "max_relative_position": 9, "heads_share_relative_embedding": True},
    "memory": {"type": "memory", "clamp_length": 7},
}
SCORES = registered(SCORES)


def named(case):
    return f"{case[0]}{case[1]}"


def made(case, score="dot_product", weights=None):
    """A layer with weights of the size of the inputs, so that a wrong row shows."""
    kind, sizes = case
    pattern = {"type": kind, **dict(zip(OPTIONS[kind], sizes, strict=True))}
    layer = layers.MultiHeadAttention(2, score=score, pattern=pattern)
    layer.build((None, None, 8))
    layer.set_weights([RNG.normal(size=w.shape) / 2 for w in layer.weights] if weights is None else weights)
    return layer


@pytest.fixture
def in_parts(monkeypatch):
    """Has short sequences computed in parts, as long ones are."""
    patterns = registry.Registries.patterns
    for module in {patterns.get(name).__module__ for name in patterns.names()}:
        if hasattr(sys.modules[module], "is_short"):
            monkeypatch.setattr(sys.modules[module], "is_short", lambda *sizes: False)


@pytest.mark.few("window(3,)", "local_1d(3,)", "strided(3,)", "fixed(4, 2)", "local_2d(2, 2, 4, 1, 1)")
@pytest.mark.slow
@pytest.mark.parametrize("case", PATTERNS + SIZES, ids=named)
def test_all_lengths_around_the_edges_of_blocks(case, in_parts):
    layer, size = made(case), 4 if case[0] == "local_2d" else case[1][0]
    assert layer(X[:, :0], use_causal_mask=True).shape == (2, 0, 8)
    for length in range(1, 4 * size + 4):
        expected = attention_in_numpy(layer, X[:, :length], X[:, :length], visible(length, case))
        output = array(layer(X[:, :length], use_causal_mask=True))
        np.testing.assert_allclose(output, expected, atol=1e-5, err_msg=str(length))


@pytest.mark.few("strided(3,)-relative", "fixed(4, 2)-relative_v2", "local_2d(2, 2, 4, 1, 1)-memory")
@pytest.mark.slow
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("case", PATTERNS, ids=named)
def test_any_score_goes_with_any_pattern(case, score, in_parts):
    layer = made(case, SCORES[score])
    full = made(("full", ()), SCORES[score], layer.get_weights())
    for length in (5, 14):
        expected = array(full(X[:, :length], attention_mask=visible(length, case)))
        np.testing.assert_allclose(array(layer(X[:, :length], use_causal_mask=True)), expected, atol=1e-5)


@pytest.mark.few("strided(3,)-relative", "fixed(4, 2)-relative_v2", "local_2d(2, 2, 4, 1, 1)-memory", "window(3,)-dot")
@pytest.mark.parametrize("score", ["dot", *SCORES])
@pytest.mark.parametrize("case", PATTERNS, ids=named)
def test_weights_are_of_visible_keys_alone_and_of_the_output_in_parts(case, score, in_parts):
    """The weights that are asked for are made in full: they must be those of the output that is made in parts."""
    layer, x = made(case, SCORES.get(score, "dot_product")), X[:, :14]
    output, weights = layer(x, use_causal_mask=True, return_attention_scores=True)
    weights = array(weights)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    np.testing.assert_array_equal(weights > 0, np.broadcast_to(visible(14, case), weights.shape))
    np.testing.assert_allclose(array(layer(x, use_causal_mask=True)), array(output), atol=1e-5)
    if score == "dot":
        values = array(layer.project(x, "value"))
        np.testing.assert_allclose(array(layer.project(weights @ values, "output")), array(output), atol=1e-5)


@pytest.mark.parametrize("case", PATTERNS, ids=named)
def test_padding_changes_nothing(case, in_parts):
    layer, there = made(case), np.arange(31) < np.array([[31], [14]])
    padded = array(layer(X, use_causal_mask=True, query_mask=there))
    np.testing.assert_allclose(padded[1, :14], array(layer(X[1:, :14], use_causal_mask=True))[0], atol=1e-5)
    np.testing.assert_allclose(padded[0], array(layer(X[:1], use_causal_mask=True))[0], atol=1e-5)
    left, seen = array(layer(X, use_causal_mask=True, query_mask=~there))[1], visible(31, case) & ~there[1]
    seen[:14] = True  # nothing is visible there, and anything may come out
    np.testing.assert_allclose(left[14:], attention_in_numpy(layer, X[1:], X[1:], seen)[0, 14:], atol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's graphs alone")
@pytest.mark.few("fixed(3, 2)")
@pytest.mark.slow
@pytest.mark.parametrize(
    "case", registered([("window", (3,)), ("local_1d", (3,)), ("strided", (3,)), ("fixed", (3, 2))]), ids=named
)
def test_a_graph_of_unknown_lengths_and_its_gradient(case):
    import tensorflow as tf

    layer = made(case, SCORES["relative"])
    full = made(("full", ()), SCORES["relative"], layer.get_weights())

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, None, 8])])
    def step(x):
        with tf.GradientTape() as tape:
            output = layer(x, use_causal_mask=True, training=True)
            loss = tf.reduce_sum(output * output)
        return output, tape.gradient(loss, layer.trainable_variables)

    for length in (0, 2, 23):
        output, gradients = step(X[:, :length])
        with tf.GradientTape() as tape:
            expected = full(X[:, :length], attention_mask=visible(length, case))
            loss = tf.reduce_sum(expected * expected)
        np.testing.assert_allclose(output, expected, atol=1e-5)
        for found, wanted in zip(gradients, tape.gradient(loss, full.trainable_variables), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-3, rtol=1e-4)


def steps(layer, x, prompt=None, lengths=None, slots=8, count=4):
    """Cached steps of one beam after prompts of several lengths: outputs [B, count, hidden]."""
    past = layer.empty_past(len(x), slots)
    seen = np.zeros((len(x), 0), bool)
    if prompt is not None:
        past = past._replace(prompt=layer.prefill(prompt)[1], lengths=ops.convert_to_tensor(lengths))
        seen = np.arange(prompt.shape[1]) < lengths[:, None]
    outputs = []
    for i in range(count):
        mask = np.concatenate([seen, np.tile(np.arange(slots) <= i, (len(x), 1))], axis=1)[:, None]
        output, past = layer.step(x[:, i : i + 1], past, ops.convert_to_tensor(i, "int32"), mask)
        outputs.append(array(output))
    return np.concatenate(outputs, axis=1)


@pytest.mark.few("local_1d(3,)-dot_product", "strided(3,)-memory", "fixed(4, 2)-relative")
@pytest.mark.slow
@pytest.mark.parametrize("score", ["dot_product", *SCORES])
@pytest.mark.parametrize("case", [("full", ()), *PATTERNS], ids=named)
def test_cached_steps_equal_one_pass(case, score):
    layer = made(case, SCORES.get(score, score))
    full, lengths = array(layer(X[:, :12], use_causal_mask=True)), np.array([8, 0, 3], "int32")
    rows = np.stack([X[0], X[1], X[0]])
    rest = np.stack([row[n : n + 4] for row, n in zip(rows, lengths, strict=True)])
    expected = np.stack([full[i, n : n + 4] for i, n in zip((0, 1, 0), lengths, strict=True)])
    np.testing.assert_allclose(steps(layer, rest, rows[:, :8], lengths), expected, atol=1e-5)
    none = steps(layer, X[:, :4], X[:, :0], np.zeros(2, "int32"), count=2)
    np.testing.assert_allclose(none, full[:, :2], atol=1e-5)
    np.testing.assert_allclose(steps(layer, X[:, :8], count=8), full[:, :8], atol=1e-5)


@pytest.mark.few("local_1d(3,)", "strided(3,)", "fixed(4, 2)")
@pytest.mark.parametrize("case", PATTERNS, ids=named)
def test_two_beams_read_their_own_slots(case):
    layer = made(case)
    full, past = array(layer(X[:, :9], use_causal_mask=True)), layer.empty_past(1, 18)
    for i in range(9):  # the two rows are the beams of one
        seen = (np.arange(18) // 2 <= i) & (np.arange(18) % 2 == np.arange(2)[:, None])
        output, past = layer.step(X[:, i].reshape(1, 2, 8), past, ops.convert_to_tensor(i, "int32"), seen[None])
        np.testing.assert_allclose(array(output)[0], full[:, i], atol=1e-5)


@pytest.mark.parametrize("case", registered([("local_1d", (3,)), ("strided", (3,)), ("fixed", (3, 1))]), ids=named)
def test_a_cached_step_reads_what_the_pattern_sees_alone(case):
    """NaN elsewhere is not even multiplied by 0. (Position 0 is read in the place of those that are not there.)"""
    layer, past = made(case), RNG.normal(size=(2, 1, 2, 30, 4)).astype("float32")
    unseen = ~visible(30, case)[25] & (np.arange(30) > 0) & (np.arange(30) < 20)
    past[..., unseen, :] = np.nan
    output, _ = layer.step(X[:1, :1], Past(*past), ops.convert_to_tensor(25, "int32"))
    assert unseen.sum() > 10 and np.isfinite(array(output)).all()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("case", registered([("full", ()), ("window", (5,)), ("strided", (3,))]), ids=named)
def test_distances_to_a_memory_are_counted_from_the_right(case, score):
    layer = made(case, SCORES[score])
    full = array(layer(X[:, :12], use_causal_mask=True))
    output = layer(X[:, 7:12], use_causal_mask=True, context=layers.Context(ops.convert_to_tensor(X[:, :7])))
    np.testing.assert_allclose(array(output), full[:, 7:], atol=1e-5)


@pytest.mark.long
@needs("memory")
@pytest.mark.parametrize("case", registered([("local_1d", (3,)), ("fixed", (3, 1))]), ids=named)
def test_contract(case, in_parts, tmp_path):
    pattern = {"type": case[0], **dict(zip(OPTIONS[case[0]], case[1], strict=True))}
    check_layer(layers.MultiHeadAttention, {"num_heads": 2, "pattern": pattern, "score": "memory"}, X, 7, tmp_path)


def test_kinds_of_ones_own():
    @registry.register_pattern("every_other")
    class EveryOther(layers.Pattern):
        def visible(self, i, j, end, causal):
            return (i - j) % 2 == 0

    @registry.register_score("near")
    class Near(layers.AttentionScore):
        def __init__(self, slope: float = 0.5):
            self.slope = slope

        def scores(self, layer, query, key, distances, training):
            content = super().scores(layer, query, key, distances, training)
            far = layers.by_key(distances, ops.shape(query)[-2], ops.shape(key)[-2], self.bias(query))
            return content - far

        def bias(self, query):
            def products(offsets, run):
                return self.slope * ops.cast(ops.abs(ops.expand_dims(offsets, -2)), query.dtype) + 0 * query[..., :1]

            return products

    try:
        layer = layers.make_self_attention("every_other+near", 0, num_heads=2)
        layer.build((None, None, 8))
        output, weights = layer(X[:, :6], use_causal_mask=True, return_attention_scores=True)
        assert ((array(weights) > 0) == np.tril(np.indices((6, 6)).sum(0) % 2 == 0)).all()
        np.testing.assert_allclose(steps(layer, X[:, :6], count=6, slots=6), array(output), atol=1e-5)
        again = layers.MultiHeadAttention.from_config(layer.get_config())
        assert (again.score.slope, type(again.pattern)) == (0.5, EveryOther)
    finally:
        registry.Registries.patterns.remove("every_other")
        registry.Registries.scores.remove("near")


@pytest.mark.parametrize(
    "options, words",
    registered(
        [
            ({"pattern": "loca_1d"}, "`pattern` must be one of .*full, .*: received pattern='loca_1d'"),
            ({"pattern": "local_1d"}, r"`pattern` local_1d has the options \['block_length'\]: received {}"),
            ({"pattern": {"type": "strided", "stride": 0}}, "stride=0"),
            ({"pattern": {"type": "fixed", "stride": 3, "summary": 4}}, "`summary` must be at most `stride`=3"),
            ({"score": {"type": "memory", "clamp_length": -1}}, "`clamp_length` must be"),
            ({"score": "mine"}, "`score` must be one of dot_product, .*relative, relative_v2"),
        ]
    ),
)
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        layers.MultiHeadAttention(2, **options)


def test_a_second_sequence_is_refused():
    with pytest.raises(ValueError, match="is self-attention"):
        made(("window", (3,)))(X, X)
