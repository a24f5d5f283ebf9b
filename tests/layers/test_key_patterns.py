"""Every score with every pattern, also of each head its own, against dense attention under its predicate, in loops."""

# Nearest tests of: t2t_lite/layers/key_parts.py, t2t_lite/layers/attention_scores.py, extras/sparse/sparse.py
# Nearest tests of: extras/images/local.py

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers, registry
from t2t_lite.layers.cache import Past
from t2t_lite.layers.dropout import drawn_seeds
from tests.layers.equations import array, attention_in_numpy
from tests.layers.harness import check_layer
from tests.layers.kinds import needs, registered
from tests.layers.patterns import (
    HEADS,
    PATTERNS,
    RNG,
    SCORES,
    X,
    check_steps_of_beams,
    dense,
    made,
    named,
    pattern,
    steps,
    visible,
)

SIZES = [(kind, sizes) for size in (1, 4) for kind, sizes in (("local_1d", (size,)), ("strided", (size,)))]
SIZES += [("fixed", (1, 1)), ("fixed", (4, 4)), ("local_2d", (1, 2, 6, 2, 1)), ("local_2d", (2, 3, 3, 1, 1))]
SIZES = registered(SIZES)


@pytest.mark.few(
    "window(3,)", "local_1d(3,)", "strided(3,)", "fixed(4, 2)", "local_2d(2, 2, 4, 1, 1)", "strided(3,):fixed(4, 2)"
)
@pytest.mark.slow
@pytest.mark.parametrize("case", PATTERNS + SIZES + HEADS, ids=named)
def test_all_lengths_around_the_edges_of_blocks(case, in_parts):
    layer, size = made(case), 4 if case[0] == "local_2d" or case in HEADS else case[1][0]
    if keras.backend.backend() != "torch":  # whose maximum of no numbers has no shape in Keras
        assert layer(X[:, :0], use_causal_mask=True).shape == (2, 0, 8)
    for length in range(1, 4 * size + 4):
        expected = attention_in_numpy(layer, X[:, :length], X[:, :length], visible(length, case))
        output = array(layer(X[:, :length], use_causal_mask=True))
        np.testing.assert_allclose(output, expected, atol=1e-5, err_msg=str(length))


@pytest.mark.few(
    "strided(3,)-relative", "fixed(4, 2)-relative_v2", "local_2d(2, 2, 4, 1, 1)-memory",
    "strided(3,):fixed(4, 2)-relative_v2", "full():local_1d(3,)-memory",
)  # fmt: skip
@pytest.mark.slow
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("case", PATTERNS + HEADS, ids=named)
def test_any_score_goes_with_any_pattern(case, score, in_parts):
    layer = made(case, SCORES[score])
    full = dense(layer)
    for length in (5, 14):
        expected = array(full(X[:, :length], attention_mask=visible(length, case)))
        np.testing.assert_allclose(array(layer(X[:, :length], use_causal_mask=True)), expected, atol=1e-5)


@pytest.mark.few(
    "strided(3,)-relative", "fixed(4, 2)-relative_v2", "local_2d(2, 2, 4, 1, 1)-memory", "window(3,)-dot",
    "strided(3,):fixed(4, 2)-dot",
)  # fmt: skip
@pytest.mark.parametrize("score", ["dot", *SCORES])
@pytest.mark.parametrize("case", PATTERNS + HEADS, ids=named)
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


@pytest.mark.parametrize("case", PATTERNS + HEADS[:2], ids=named)
def test_padding_changes_nothing(case, in_parts):
    layer, there = made(case), np.arange(31) < np.array([[31], [14]])
    padded = array(layer(X, use_causal_mask=True, query_mask=there))
    np.testing.assert_allclose(padded[1, :14], array(layer(X[1:, :14], use_causal_mask=True))[0], atol=1e-5)
    np.testing.assert_allclose(padded[0], array(layer(X[:1], use_causal_mask=True))[0], atol=1e-5)
    left, seen = array(layer(X, use_causal_mask=True, query_mask=~there))[1], visible(31, case) & ~there[1]
    seen[..., :14, :] = True  # nothing is visible there, and anything may come out
    np.testing.assert_allclose(left[14:], attention_in_numpy(layer, X[1:], X[1:], seen)[0, 14:], atol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's own gradient")
@pytest.mark.parametrize("case", PATTERNS, ids=named)
def test_training_in_parts_has_the_gradient_of_dense_attention(case, in_parts):
    """In training, blocks are moved by other operations than in decoding."""
    import tensorflow as tf

    layer, x, found = made(case), X[:, :14], []
    full = dense(layer)
    for each, mask in ((layer, None), (full, visible(14, case))):
        with tf.GradientTape() as tape:
            output = each(x, use_causal_mask=True, attention_mask=mask, training=True)
            loss = tf.reduce_sum(output**3)
        found.append([output, *tape.gradient(loss, each.trainable_variables)])
    for ours, expected in zip(*found, strict=True):
        np.testing.assert_allclose(array(ours), array(expected), atol=1e-2, rtol=1e-4)


def test_an_encoders_blocks_in_training_see_their_neighbours(in_parts):
    layer = made(("window", (5,)))
    there = np.arange(31) < np.array([[31], [14]])
    kept, trained = (array(layer(X, query_mask=there, training=training)) for training in (False, True))
    np.testing.assert_allclose(trained[0], kept[0], atol=1e-5)
    np.testing.assert_allclose(trained[1, :14], kept[1, :14], atol=1e-5)


@pytest.mark.parametrize("case", PATTERNS, ids=named)
def test_dropout_drops_weights_in_parts(case, in_parts):
    layer = made(case, dropout=0.4)
    kept, trained = (array(layer(X, use_causal_mask=True, training=training)) for training in (False, True))
    assert np.abs(kept - trained).max() > 0.1
    layer = made(case, dropout=0.999999)
    layer.set_weights([np.ones(w.shape) for w in layer.weights])
    assert (array(layer(X, use_causal_mask=True, training=True)) == 0).mean() > 0.9


@needs("strided")
def test_dropout_of_the_parts_of_a_pattern_differs(in_parts, monkeypatch):
    layer = made(("strided", (3,)), dropout=0.5)
    masks, drop = [], layer.dropout.call

    def call(weights, training):
        masks.append(array(drop(ops.ones(50), training=training)).tolist())
        return weights

    monkeypatch.setattr(layer.dropout, "call", call)
    layers.number_seeds(keras.Sequential([layer]))
    with layers.dropout_seed(ops.convert_to_tensor(3, "int32")):
        layer(X, use_causal_mask=True, training=True)
        with drawn_seeds(layer):  # as in a stack that recomputes its layers
            layer(X, use_causal_mask=True, training=True)
    assert masks[0] != masks[1] and masks[:2] == masks[2:]


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's graphs alone")
@pytest.mark.few("fixed(3, 2)")
@pytest.mark.slow
@pytest.mark.parametrize(
    "case", registered([("window", (3,)), ("local_1d", (3,)), ("strided", (3,)), ("fixed", (3, 2))]), ids=named
)
def test_a_graph_of_unknown_lengths_and_its_gradient(case):
    import tensorflow as tf

    layer = made(case, SCORES["relative"])
    full = dense(layer)

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


@pytest.mark.few(
    "local_1d(3,)-dot_product", "strided(3,)-memory", "fixed(4, 2)-relative", "strided(3,):fixed(4, 2)-relative_v2",
    "full():local_1d(3,)-memory",
)  # fmt: skip
@pytest.mark.slow
@pytest.mark.parametrize("score", ["dot_product", *SCORES])
@pytest.mark.parametrize("case", [("full", ()), *PATTERNS, *HEADS], ids=named)
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


@pytest.mark.few("local_1d(3,)-True", "strided(3,)-False", "fixed(4, 2)-True", "full():window(3,)-False")
@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("case", PATTERNS + HEADS, ids=named)
def test_two_beams_read_their_own_slots(case, in_place):
    check_steps_of_beams(made(case), X[:, :9], in_place)


@pytest.mark.parametrize(
    "case", registered([("window", (4,)), ("local_1d", (3,)), ("strided", (3,)), ("fixed", (3, 1))]), ids=named
)
def test_a_cached_step_reads_what_the_pattern_sees_alone(case):
    """NaN elsewhere is not even multiplied by 0. (Position 0 is read in the place of those that are not there.)"""
    layer, sizes = made(case), (3, 5)
    unseen = ~visible(30, case)[25] & (np.arange(30) > 0) & (np.arange(30) < 20)
    past = [RNG.normal(size=(1, 4, 30, size)).astype("float32") for size in sizes]
    for each in past:
        each[..., unseen, :] = np.nan
    output, _ = layer.step(X[:1, :1], Past(*past), ops.convert_to_tensor(25, "int32"))
    assert unseen.sum() > 10 and np.isfinite(array(output)).all()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(
    "case", [*registered([("full", ()), ("window", (5,)), ("strided", (3,))]), HEADS[0]], ids=named
)
def test_distances_to_a_memory_are_counted_from_the_right(case, score):
    layer = made(case, SCORES[score])
    full = array(layer(X[:, :12], use_causal_mask=True))
    output = layer(X[:, 7:12], use_causal_mask=True, context=layers.Context(ops.convert_to_tensor(X[:, :7])))
    np.testing.assert_allclose(array(output), full[:, 7:], atol=1e-5)


@pytest.mark.long
@needs("memory")
@pytest.mark.parametrize("case", registered([("local_1d", (3,)), ("fixed", (3, 1))]), ids=named)
def test_contract(case, in_parts, tmp_path):
    check_layer(
        layers.MultiHeadAttention, {"num_heads": 2, "pattern": pattern(case), "score": "memory"}, X, 7, tmp_path
    )


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
    registered([
        ({"pattern": "loca_1d"}, "`pattern` .*full, .*'loca_1d'"),
        ({"pattern": ["full", "loca_1d"]}, "`pattern` .*'loca_1d'"),
        ({"pattern": []}, "0 kinds in `pattern`.*num_heads=2"),
        ({"pattern": ["full"] * 3}, "3 kinds in `pattern`.*num_heads=2"),
        ({"pattern": "local_1d"}, r"`pattern` local_1d .*block_length.*{}"),
        ({"pattern": {"type": "window", "neighborhood": 3, "stride": 5}}, "`pattern` window .*neighborhood.*stride"),
        ({"pattern": {"type": "strided", "stride": 0}}, "stride=0"),
        ({"pattern": {"type": "fixed", "stride": 3, "summary": 4}}, "`summary`.*`stride`=3"),
        ({"score": {"type": "memory", "clamp_length": -1}}, "`clamp_length`.*-1"),
        ({"score": "mine"}, "`score` .*dot_product, .*relative, relative_v2.*mine"),
    ]),
)  # fmt: skip
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        layers.MultiHeadAttention(2, **options)


def test_a_second_sequence_is_refused():
    with pytest.raises(ValueError, match="self-attention"):
        made(("window", (3,)))(X, X)
