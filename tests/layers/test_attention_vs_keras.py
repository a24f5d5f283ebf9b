"""MultiHeadAttention against keras.layers.MultiHeadAttention on the same weights: outputs, scores, padding."""

# Nearest tests of: t2t_lite/layers/attention.py, t2t_lite/layers/masks.py

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite.layers import MultiHeadAttention

BATCH, HEADS, T, S, SIZE = 2, 4, 5, 7, 16
RNG = np.random.default_rng(2)
QUERY = RNG.normal(size=(BATCH, T, SIZE)).astype("float32")
VALUE = RNG.normal(size=(BATCH, S, SIZE)).astype("float32")
KEY = RNG.normal(size=(BATCH, S, SIZE)).astype("float32")


def pair(key_dim=4, value_dim=4, use_bias=True):
    """Returns our layer and Keras' with the same random weights, biases included."""
    ours = MultiHeadAttention(HEADS, key_dim, value_dim, use_bias=use_bias)
    keras_layer = keras.layers.MultiHeadAttention(HEADS, key_dim, value_dim, use_bias=use_bias)
    ours.build(QUERY.shape, VALUE.shape)
    keras_layer.build(QUERY.shape, VALUE.shape)
    for role in ("query", "key", "value", "output"):
        mine, peer = getattr(ours, f"{role}_projection"), getattr(keras_layer, f"{role}_dense")
        for weight, other in zip(mine.weights, peer.weights, strict=True):
            weight.assign(RNG.normal(scale=0.3, size=weight.shape))
            other.assign(ops.reshape(weight, other.shape))
    return ours, keras_layer


def assert_equal(ours, keras_layer, *inputs, rows=None, **arguments):
    """Compares outputs, at the bool [B, T] positions `rows`, and attention weights."""
    mine, weights = ours(*inputs, return_attention_scores=True, **arguments)
    output, scores = keras_layer(*inputs, return_attention_scores=True, **arguments)
    mine, weights, output, scores = map(ops.convert_to_numpy, (mine, weights, output, scores))
    rows = np.ones(mine.shape[:2], bool) if rows is None else rows
    np.testing.assert_allclose(mine[rows], output[rows], atol=1e-5)
    weights, scores = (np.moveaxis(x, 2, 1)[rows] for x in (weights, scores))
    np.testing.assert_allclose(weights, scores, atol=1e-6)


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("value_dim", [4, 6])
def test_query_value_and_key(value_dim, use_bias):
    assert_equal(*pair(value_dim=value_dim, use_bias=use_bias), QUERY, VALUE, KEY)


def test_keys_without_values():
    """The values are then those of the queries, as the docstring says."""
    ours, keras_layer = pair()
    assert_equal(ours, keras_layer, QUERY, QUERY, KEY[:, :T])
    found, expected = ours(QUERY, key=KEY[:, :T]), ours(QUERY, QUERY, KEY[:, :T])
    np.testing.assert_array_equal(ops.convert_to_numpy(found), ops.convert_to_numpy(expected))


def test_padding_masks():
    """A padded query is no output of use: Keras hides every key from it, ours computes it as any other."""
    query_mask, value_mask = np.arange(T) < [[3], [5]], np.arange(S) < [[7], [2]]
    masks = {"query_mask": query_mask, "value_mask": value_mask}
    assert_equal(*pair(), QUERY, VALUE, **masks, rows=query_mask)
    key_mask = np.arange(S) < [[1], [6]]
    assert_equal(*pair(), QUERY, VALUE, KEY, **masks, key_mask=key_mask, rows=query_mask)


def test_mixed_precision_is_as_near_to_float32_as_keras():
    ours, keras_layer = pair()
    expected = ops.convert_to_numpy(ours(QUERY, VALUE))
    errors = []
    for layer in (ours, keras_layer):
        low = type(layer).from_config({**layer.get_config(), "dtype": "mixed_bfloat16"})
        low.build(QUERY.shape, VALUE.shape)
        low.set_weights(layer.get_weights())
        errors.append(np.abs(ops.convert_to_numpy(ops.cast(low(QUERY, VALUE), "float32")) - expected).mean())
    assert errors[0] < 1.5 * errors[1]
