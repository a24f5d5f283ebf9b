"""Relative positions against their equations with a vector for every pair, and their cached steps."""

import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.equations import array, softmax
from tests.layers.harness import check_layer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 6, 8)).astype("float32")


def in_numpy(layer, x, visible):
    """Equations 3 to 5 of Shaw et al., with a[i, j] = w_clip(j - i) made for every pair: [T, T, d]."""
    heads, length = layer.num_heads, x.shape[1]
    distances = np.arange(length)[None] - np.arange(length)[:, None]
    rows = np.clip(distances, -layer.max_relative_position, layer.max_relative_position) + layer.max_relative_position
    a_key = array(layer.key_table)[rows]
    a_value = array(layer.value_table)[rows] if layer.value_table is not None else np.zeros((length, length, 1))
    q, k, v = (
        (x @ array(getattr(layer, f"{role}_projection").kernel)).reshape(*x.shape[:2], heads, -1)
        for role in ("query", "key", "value")
    )
    # z: head, t: query, s: key, d: size
    scores = np.einsum("btzd,bszd->bzts", q, k) + np.einsum("btzd,tsd->bzts", q, a_key)
    weights = softmax(np.where(visible, scores / np.sqrt(layer.query_size), -np.inf))
    output = np.einsum("bzts,bszd->btzd", weights, v)
    output = output + np.einsum("bzts,tsd->btzd", weights, np.broadcast_to(a_value, (length, length, v.shape[-1])))
    return output.reshape(*x.shape[:2], -1) @ array(layer.output_projection.kernel), weights


OPTIONS = [
    {"max_relative_position": 2},
    {"max_relative_position": 2, "add_relative_to_values": True},
    {"max_relative_position": 9, "add_relative_to_values": True, "key_dim": 3, "value_dim": 5},
]


def spread_tables(layer):
    """Gives the tables values of the size of the queries, so that a wrong row shows."""
    for table in (layer.key_table, layer.value_table):
        if table is not None:
            table.assign(np.random.default_rng(4).normal(size=table.shape))


@pytest.mark.parametrize("options, weights", list(zip(OPTIONS, (5, 6, 6), strict=True)))
def test_contract(options, weights, tmp_path):
    check_layer(layers.RelativeAttention, {"num_heads": 2, **options}, X, weights, tmp_path)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_equals_the_form_with_a_vector_for_every_pair(options, causal):
    layer = layers.RelativeAttention(2, **options)
    layer.build(X.shape)
    spread_tables(layer)
    visible = np.tril(np.ones((6, 6), bool)) if causal else np.ones((6, 6), bool)
    output, weights = layer(X, use_causal_mask=causal, return_attention_scores=True)
    expected, expected_weights = in_numpy(layer, X, visible)
    np.testing.assert_allclose(array(output), expected, atol=1e-5)
    np.testing.assert_allclose(array(weights), expected_weights, atol=1e-6)


@pytest.mark.parametrize("length", [1, 2])
def test_short_sequences(length):
    layer = layers.RelativeAttention(2, max_relative_position=3, add_relative_to_values=True)
    layer.build(X.shape)
    spread_tables(layer)
    expected, _ = in_numpy(layer, X[:, :length], True)
    np.testing.assert_allclose(array(layer(X[:, :length])), expected, atol=1e-5)


def test_queries_and_keys_of_different_numbers():
    """A product with zero tables is plain attention, whatever the shapes."""
    memory = RNG.normal(size=(2, 9, 8)).astype("float32")
    layer, plain = layers.RelativeAttention(2, 4, add_relative_to_values=True), layers.MultiHeadAttention(2)
    layer.build(X.shape, memory.shape)
    plain.build(X.shape, memory.shape)
    for table in (layer.key_table, layer.value_table):
        table.assign(np.zeros((9, 4)))
    for role in ("query", "key", "value", "output"):
        getattr(layer, f"{role}_projection").set_weights(getattr(plain, f"{role}_projection").get_weights())
    for query, value in ((X, memory), (memory, X)):
        np.testing.assert_allclose(array(layer(query, value)), array(plain(query, value)), atol=1e-6)


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("options", OPTIONS)
def test_cached_steps_of_two_beams_equal_one_causal_call(options, in_place):
    layer = layers.RelativeAttention(2, **options)
    layer.build(X.shape)
    spread_tables(layer)
    full = array(layer(X, use_causal_mask=True))
    slots = 12 if in_place else 0
    cache = {
        "key": np.zeros((1, 2, slots, layer.query_size), "float32"),
        "value": np.zeros((1, 2, slots, layer.value_size), "float32"),
    }
    for i in range(6):  # the two sentences of X are the beams of one
        seen = np.arange(max(slots, 2 * i + 2))
        mask = (seen // 2 <= i) & (seen % 2 == np.arange(2)[:, None])
        position = ops.convert_to_tensor(i, "int32") if in_place else None
        step = X[:, i].reshape(1, 2, 8)
        output, cache = layer(step, attention_mask=mask[None], cache=cache, position=position)
        np.testing.assert_allclose(array(output)[0], full[:, i], atol=1e-5)


def test_only_the_distance_matters():
    """Moved by some positions, a sentence is seen alike: what absolute positions do not give."""
    layer = layers.RelativeAttention(2, max_relative_position=3)
    moved = np.pad(X, ((0, 0), (4, 0), (0, 0)))
    mask = np.arange(10)[None, None] >= 4
    np.testing.assert_allclose(array(layer(moved, attention_mask=mask))[:, 4:], array(layer(X)), atol=1e-5)


def test_bad_distance():
    with pytest.raises(ValueError, match="max_relative_position=0"):
        layers.RelativeAttention(2, max_relative_position=0)
