"""Relative positions against their equations with a vector for every pair, and their cached steps."""

import numpy as np
import pytest

from t2t_lite import layers
from tests.layers.equations import array, softmax
from tests.layers.harness import check_layer
from tests.layers.patterns import check_steps_of_beams

RNG = np.random.default_rng(0)


X = RNG.normal(size=(2, 6, 8)).astype("float32")


def vectors(layer, table, length):
    """a[i, j] of every pair, for all heads or each: [heads or 1, T, T, d]."""
    distances = np.arange(length)[None] - np.arange(length)[:, None]
    limit = layer.score.max_relative_position
    if isinstance(layer, layers.LeftRelativeAttention):
        known = (distances <= 0) & (distances > -limit)
        return np.where(known[..., None], array(table)[:, np.where(known, distances, 0) + limit - 1], 0)
    return array(table)[np.clip(distances, -limit, limit) + limit][None]


def in_numpy(layer, x, visible):
    """Equations 3 to 5 of Shaw et al., with a vector made for every pair."""
    heads, length = layer.num_heads, x.shape[1]

    def pairs(table):
        a = vectors(layer, table, length)
        return np.broadcast_to(a, (heads, *a.shape[1:]))

    q, k, v = (
        (x @ array(getattr(layer, f"{role}_projection").kernel)).reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)
        for role in ("query", "key", "value")
    )
    scores = q @ k.swapaxes(2, 3) + np.einsum("bztd,ztsd->bzts", q, pairs(layer.key_table))
    weights = softmax(np.where(visible, scores / np.sqrt(layer.query_size), -np.inf))
    output = weights @ v
    if layer.value_table is not None:
        output = output + np.einsum("bzts,ztsd->bztd", weights, pairs(layer.value_table))
    output = output.transpose(0, 2, 1, 3).reshape(*x.shape[:2], -1)
    return output @ array(layer.output_projection.kernel), weights


SHAW, MUSIC = layers.RelativeAttention, layers.LeftRelativeAttention


KINDS = {
    "keys": (SHAW, {"max_relative_position": 2}),
    "values": (SHAW, {"max_relative_position": 2, "add_relative_to_values": True}),
    "far": (SHAW, {"max_relative_position": 9, "add_relative_to_values": True, "key_dim": 3, "value_dim": 5}),
    "music": (MUSIC, {"max_relative_position": 3}),
    "music one table": (
        MUSIC,
        {"max_relative_position": 3, "add_relative_to_values": True, "heads_share_relative_embedding": True},
    ),
    "music far": (MUSIC, {"max_relative_position": 9, "add_relative_to_values": True, "key_dim": 3, "value_dim": 5}),
}


kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def made(kind):
    """A layer whose tables have values of the size of the queries, so that a wrong row shows."""
    layer = kind[0](4, **{"key_dim": 3, "value_dim": 5, **kind[1]})
    layer.build(X.shape)
    for table in (layer.key_table, layer.value_table):
        if table is not None:
            table.assign(np.random.default_rng(4).normal(size=table.shape))
    return layer


@pytest.mark.few("music far")
@pytest.mark.slow
@kinds
def test_contract(kind, tmp_path):
    layer_class, options = kind
    weights = 5 + options.get("add_relative_to_values", False)
    check_layer(layer_class, {"num_heads": 2, **options}, X, weights, tmp_path)


@pytest.mark.parametrize("causal", [False, True])
@kinds
def test_equals_the_form_with_a_vector_for_every_pair(kind, causal):
    layer = made(kind)
    visible = np.tril(np.ones((6, 6), bool)) if causal else np.ones((6, 6), bool)
    output, weights = layer(X, use_causal_mask=causal, return_attention_scores=True)
    expected, expected_weights = in_numpy(layer, X, visible)
    np.testing.assert_allclose(array(output), expected, atol=1e-5)
    np.testing.assert_allclose(array(weights), expected_weights, atol=1e-6)


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("kind", ["far", "music far"])
def test_short_sequences(kind, length):
    layer = made(KINDS[kind])
    expected, _ = in_numpy(layer, X[:, :length], True)
    np.testing.assert_allclose(array(layer(X[:, :length])), expected, atol=1e-5)
    assert layer(X[:, :0]).shape == (2, 0, 8), "a prompt may be empty"


@pytest.mark.parametrize("layer_class", [SHAW, MUSIC], ids=["shaw", "music"])
def test_queries_and_keys_of_different_numbers(layer_class):
    """A product with zero tables is plain attention, whatever the shapes."""
    memory = RNG.normal(size=(2, 9, 8)).astype("float32")
    layer, plain = layer_class(4, 7, add_relative_to_values=True), layers.MultiHeadAttention(4)
    layer.build(X.shape, memory.shape)
    plain.build(X.shape, memory.shape)
    for table in (layer.key_table, layer.value_table):
        table.assign(np.zeros(table.shape))
    for role in ("query", "key", "value", "output"):
        getattr(layer, f"{role}_projection").set_weights(getattr(plain, f"{role}_projection").get_weights())
    for query, value in ((X, memory), (memory, X)):
        np.testing.assert_allclose(array(layer(query, value)), array(plain(query, value)), atol=1e-6)


@pytest.mark.few("keys-True", "values-False", "far-True", "music-False", "music one table-True", "music far-False")
@pytest.mark.parametrize("in_place", [True, False])
@kinds
def test_cached_steps_of_two_beams_equal_one_causal_call(kind, in_place):
    check_steps_of_beams(made(kind), X, in_place)


@pytest.mark.parametrize(
    "layer",
    [SHAW(2, 3), MUSIC(2, 3), layers.MultiHeadAttention(2, positions="rotary")],
    ids=["shaw", "music", "rotary"],
)
def test_only_the_distance_matters(layer):
    """Moved by some positions, a sentence is seen alike: what absolute positions do not give."""
    moved = np.pad(X, ((0, 0), (4, 0), (0, 0)))
    mask = np.arange(10)[None, None] >= 4
    np.testing.assert_allclose(array(layer(moved, attention_mask=mask))[:, 4:], array(layer(X)), atol=1e-5)


def test_tables_begin_as_tensor2tensors():
    """Shaw et al.'s: Glorot uniform; the Music Transformer's: N(0, size^-0.5)."""
    shaw, music = SHAW(4, 200, key_dim=3, value_dim=5), MUSIC(4, 200, True, key_dim=3, value_dim=5)
    for layer in (shaw, music):
        layer.build(X.shape)
    table = array(shaw.key_table)
    assert table.shape == (401, 3) and 0.9 < np.abs(table).max() / np.sqrt(6 / 404) <= 1
    for table, size in ((array(music.key_table), 3), (array(music.value_table), 5)):
        assert table.shape == (4, 200, size) and table.std() == pytest.approx(size**-0.5, rel=0.1)


@pytest.mark.parametrize("add_relative_to_values", [False, True])
@pytest.mark.parametrize("kind, rows", [(SHAW, 2 * 6 + 1), (MUSIC, 6)], ids=["shaw", "music"])
def test_operations_and_bytes_beyond_those_of_a_dot_product(kind, rows, add_relative_to_values):
    layer = kind(4, 6, add_relative_to_values, key_dim=3, value_dim=5)
    layer.build(X.shape)
    plain = layers.MultiHeadAttention(4, 3, 5)
    plain.build(X.shape)
    channels = 3 + 5 * add_relative_to_values
    assert layer.flops(7) - plain.flops(7) == 2 * rows * 4 * channels
    assert layer.activations(7, 2) - plain.activations(7, 2) == add_relative_to_values * 4 * 2 * 7 * 2


def test_an_attend_of_ones_own_needs_cached_steps_of_its_own():
    class Own(layers.RelativeAttention):
        def attend(self, query, key, value, mask, training):
            return super().attend(query, key, value, mask, training)

    layer = Own(2, 3)
    layer(X)
    with pytest.raises(NotImplementedError, match=r"Own .*`attend_cached`"):
        layer.step(X[:, :1], layer.empty_past(2, 6), 0)
