"""Masks of attention: which shapes they may have, what they hide, and those that are refused by name."""

# Nearest tests of: t2t_lite/layers/attention.py

import warnings

import keras
import numpy as np
import pytest

from t2t_lite import layers
from t2t_lite.layers.masks import Visible, causal_mask, with_mask
from tests.layers.backend import compiled
from tests.layers.equations import array, attention_in_numpy
from tests.layers.harness import MEMORY, X

RNG = np.random.default_rng(0)
KEYS = np.arange(7) < np.array([[4], [7], [2]])  # which of each memory are there
QUERIES = np.arange(5) < np.array([[3], [5], [1]])


def test_a_mask_may_be_attached_outside_of_a_layer():
    """As where a model's or a loss's `call` is called directly."""
    np.testing.assert_array_equal(array(compiled(lambda x: with_mask(x, x[..., 0] > 0), X)), X)


@pytest.mark.parametrize(
    "call, visible",
    [
        ({"use_causal_mask": True}, np.tril(np.ones((5, 5), bool))),
        ({"mask": QUERIES}, QUERIES[:, None]),
        ({"mask": QUERIES, "use_causal_mask": True}, QUERIES[:, None] & np.tril(np.ones((5, 5), bool))),
        ({"query_mask": QUERIES, "mask": QUERIES[::-1]}, QUERIES[:, None]),
        ({"value": MEMORY, "value_mask": KEYS}, KEYS[:, None]),
        ({"value": MEMORY, "key": MEMORY, "key_mask": KEYS}, KEYS[:, None]),
        ({"value": MEMORY, "query_mask": QUERIES & False}, np.ones((5, 7), bool)),
        ({"value": MEMORY, "value_mask": KEYS, "attention_mask": KEYS[0][None]}, KEYS[:, None] & KEYS[0]),
    ],
    ids=["causal", "mask", "mask and causal", "of queries", "of values", "of keys", "queries hide no key", "two masks"],
)
def test_what_each_mask_hides(call, visible):
    """With a mask that Keras carries with queries, those that are hidden see what others see."""
    layer = layers.MultiHeadAttention(2)
    output = array(layer(X, **call))
    np.testing.assert_allclose(output, attention_in_numpy(layer, X, call.get("value", X), visible), atol=1e-5)


def test_mask_in_two_three_and_four_dimensions():
    mask = RNG.random((5, 7)) > 0.4
    mask[:, 0] = True
    layer = layers.MultiHeadAttention(2)
    layer.build(X.shape, MEMORY.shape)
    expected = attention_in_numpy(layer, X, MEMORY, mask)
    for m in (mask, np.tile(mask, (3, 1, 1)), np.tile(mask, (3, 2, 1, 1))):
        np.testing.assert_allclose(array(layer(X, MEMORY, attention_mask=m)), expected, atol=1e-5)


@pytest.mark.parametrize(
    "shape", [(7,), (3, 7), (7, 5), (2, 5, 7), (3, 4, 7), (3, 3, 5, 7), (2, 3, 5, 7), (1, 3, 2, 5, 7)], ids=str
)
def test_a_mask_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"`attention_mask` must be .*\(3, 2, 5, 7\): received \("):
        layers.MultiHeadAttention(2)(X, MEMORY, attention_mask=np.ones(shape, bool))


@pytest.mark.parametrize("shape", [(), (3,), (5,), (2, 5), (3, 4), (3, 5, 1), (3, 5, 5)], ids=str)
@pytest.mark.parametrize(
    "call",
    [
        lambda mask: layers.MultiHeadAttention(2)(X, mask=mask),
        lambda mask: layers.MultiHeadAttention(2)(X, X, value_mask=mask),
        lambda mask: layers.MultiHeadAttention(2)(X, X, X, key_mask=mask),
        lambda mask: layers.RestrictedAttention(2, 3)(X, query_mask=mask),
        lambda mask: layers.TransformerEncoderLayer(2, 8)(X, mask=mask),
        lambda mask: layers.TransformerStack([layers.TransformerDecoderLayer(2, 8)])(X, MEMORY, mask=mask),
    ],
    ids=["mask", "value_mask", "key_mask", "query_mask", "encoder", "stack"],
)
def test_a_mask_of_another_sequence_is_refused(call, shape):
    with pytest.raises(ValueError, match=r"mask of a sequence must be \[B, S\], .*\(3, 5\): received \("):
        call(np.ones(shape, bool))


@pytest.mark.parametrize("shape", [(1, 7), (5, 1), (3, 1, 7), (1, 5, 7), (1, 2, 1, 7), (3, 1, 5, 1)], ids=str)
def test_sizes_of_1_in_a_mask_broadcast(shape):
    layer, mask = layers.MultiHeadAttention(2), RNG.random(shape) > 0.4
    full = np.broadcast_to(mask[:, None] if len(shape) == 3 else mask, (3, 2, 5, 7))
    output = array(layer(X, MEMORY, attention_mask=mask))
    np.testing.assert_allclose(output, array(layer(X, MEMORY, attention_mask=full)), atol=1e-5)


def test_a_causal_mask_of_other_queries_than_keys():
    assert array(causal_mask(2, 5, 1)).astype(int).tolist() == [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
    assert array(causal_mask(3, 2)).astype(int).tolist() == [[1, 0], [1, 1], [1, 1]]
    merged = Visible(True, np.array([[True, False, True]]), None, 1).merged(2, 3)
    assert array(merged)[0, 0].astype(int).tolist() == [[1, 0, 0], [1, 0, 1]]
    assert Visible().merged(2, 3) is None


ADDITIVE = np.where(np.tril(np.ones((5, 5))), 0, -1e9).astype("float32")  # what other libraries add to scores


DOORS = {
    "attention_mask": lambda mask: layers.MultiHeadAttention(2)(X, attention_mask=mask),
    "value_mask": lambda mask: layers.MultiHeadAttention(2)(X, X, value_mask=mask[:3]),
    "key_mask": lambda mask: layers.MultiHeadAttention(2)(X, X, X, key_mask=mask[:3]),
    "query_mask": lambda mask: layers.MultiHeadAttention(2)(X, X, query_mask=mask[:3]),
    "attention_mask of RestrictedAttention": lambda mask: layers.RestrictedAttention(2, 3)(X, attention_mask=mask),
    "mask of RestrictedAttention": lambda mask: layers.RestrictedAttention(2, 3)(X, mask=mask[:3]),
    "attention_mask of Residual": lambda mask: layers.Residual(keras.layers.MultiHeadAttention(2, 4))(
        X, attention_mask=mask
    ),
    "attention_mask of an encoder": lambda mask: layers.TransformerStack([layers.TransformerEncoderLayer(2, 8)])(
        X, attention_mask=mask
    ),
    "mask of an encoder": lambda mask: layers.TransformerEncoderLayer(2, 8)(X, mask=mask[:3]),
    "attention_mask of a decoder": lambda mask: layers.TransformerDecoderLayer(2, 8)(X, attention_mask=mask),
    "memory_mask of a decoder": lambda mask: layers.TransformerDecoderLayer(2, 8)(X, X, memory_mask=mask[:3]),
    "attention_mask of attend_to": lambda mask: attend_to(mask),
    "memory_mask of a step": lambda mask: step(mask[:3]),
    "mask of masked_softmax": lambda mask: layers.masked_softmax(X[..., :5], mask),
    "allowed of SpanHead": lambda mask: layers.SpanHead()(X, mask[:3]),
}


def attend_to(mask):
    layer = layers.MultiHeadAttention(2)
    layer.build(X.shape)
    return layer.attend_to(X, layer.memory(X), mask)


def step(mask):
    layer = layers.TransformerDecoderLayer(2, 8)
    layer.build(X.shape, X.shape)
    return layer.step(X[:, :1], layer.init_cache(X, 3, 5), 0, memory_mask=mask)[0]


@pytest.mark.parametrize("door", DOORS)
def test_a_mask_that_is_added_elsewhere_is_refused_by_name(door):
    visible, integers = ADDITIVE == 0, ADDITIVE.astype("int32")
    wrong = {"float32": ADDITIVE, "from -1000000000 to 0": integers, "from 0 to 2": 2 * visible.astype("int32")}
    for words, mask in wrong.items():
        with pytest.raises(ValueError, match=rf"`{door.partition(' ')[0]}` .*{words}: expected bool"):
            DOORS[door](mask)
    assert tuple(DOORS[door](visible.astype("int32")).shape) == tuple(DOORS[door](visible).shape)


def test_a_mask_of_floats_is_refused_in_a_graph():
    layer = layers.MultiHeadAttention(2)
    layer.build(X.shape)
    with pytest.raises(ValueError, match="`attention_mask` is of dtype float32"):
        compiled(lambda x, mask: layer(x, attention_mask=mask), X, ADDITIVE[None])


def test_one_key_alone_is_seen_without_a_warning():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*softmax over axis")
        layers.TransformerDecoderLayer(2, 8)(X[:, :1], MEMORY[:, :1])
        attention, hidden = layers.MultiHeadAttention(2), {"attention_mask": np.zeros((1, 1, 1), bool)}
        for query, memory, options in ((X, MEMORY[:, :1], {}), (X[:, :1], None, hidden)):
            _, weights = attention(query, memory, **options, return_attention_scores=True)
            np.testing.assert_array_equal(array(weights), 1)


@pytest.mark.parametrize("floatx", ["float32", "float16"])
@pytest.mark.parametrize("pattern", ["full", {"type": "window", "neighborhood": 3}], ids=["full", "window"])
def test_a_row_without_visible_keys_is_finite(pattern, floatx):
    layer = layers.MultiHeadAttention(2, pattern=pattern)
    keras.config.set_floatx(floatx)
    try:
        assert np.isfinite(array(layer(X, attention_mask=np.zeros((3, 5, 5), bool)))).all()
        assert np.isfinite(array(layer(X, mask=np.zeros((3, 5), bool)))).all()
    finally:
        keras.config.set_floatx("float32")


@pytest.mark.parametrize("size", [1, 1e3, 1e12])
def test_no_score_outweighs_the_mask(size):
    scores = size * np.array([[3.0, 1.0, 2.0]] * 2, "float32")
    weights = array(layers.masked_softmax(scores, np.array([[False, False, True], [False] * 3])))
    np.testing.assert_allclose(weights, [[0, 0, 1], [1 / 3] * 3], atol=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's graphs alone")
def test_the_mask_is_not_added_to_the_product_itself():
    """oneDNN would fuse the two into one operation, which is up to a hundred times as slow."""
    import tensorflow as tf

    layer = layers.MultiHeadAttention(2)
    call = tf.function(lambda x: layer(x, use_causal_mask=True), autograph=False)
    operations = call.get_concrete_function(tf.TensorSpec([None, None, 8])).graph.get_operations()
    assert any(operation.type == "BatchMatMulV2" for operation in operations), "not a test otherwise"
    sums = [operation for operation in operations if operation.type in ("Add", "AddV2")]
    assert "BatchMatMulV2" not in {tensor.op.type for operation in sums for tensor in operation.inputs}


@pytest.mark.parametrize("causal", [False, True])
def test_a_mask_for_each_query_is_seen_where_blocks_would_not_hold_it(causal, in_parts):
    layer, mask = layers.RestrictedAttention(2, 3), (RNG.random((5, 5)) > 0.4) | np.eye(5, dtype=bool)
    first = [i - 2 if causal else min(max(i - 1, 0), 2) for i in range(5)]  # of the three keys that query i sees
    near = np.array([[first[i] <= j < first[i] + 3 for j in range(5)] for i in range(5)])
    output = array(layer(X, attention_mask=mask, use_causal_mask=causal))
    np.testing.assert_allclose(output, attention_in_numpy(layer, X, X, mask & near), atol=1e-5)
