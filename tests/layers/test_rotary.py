"""Rotary positions against the equation of the paper, and in attention with a cache."""

import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.layers.cache import Past
from t2t_lite.layers.positions import POSITIONS, rotation
from t2t_lite.settings.config import HParams
from tests.layers.equations import array
from tests.layers.harness import X, check_layer

HEADS = np.random.default_rng(0).normal(size=(3, 2, 5, 6)).astype("float32")  # [B, heads, T, d]


def in_numpy(x, positions):
    """Pairs as complex numbers, times e^(i · position · 10000^(-2j/d)); positions broadcast to [B, heads, T]."""
    half = x.shape[-1] // 2
    turns = np.exp(1j * np.asarray(positions)[..., None] * 10_000.0 ** (-2 * np.arange(half) / x.shape[-1]))
    turned = (x[..., :half] + 1j * x[..., half:]) * turns
    return np.concatenate([turned.real, turned.imag], axis=-1)


def test_pairs_are_turned_by_their_positions():
    np.testing.assert_allclose(
        array(rotation(6)(ops.convert_to_tensor(HEADS))), in_numpy(HEADS, np.arange(5)), atol=1e-5
    )
    for position in (7, np.array([0, 900, 3], "int32")):
        found = rotation(6)(ops.convert_to_tensor(HEADS), ops.convert_to_tensor(position, "int32"))
        expected = in_numpy(HEADS, np.reshape(position, (-1, 1, 1)))
        np.testing.assert_allclose(array(found), expected, atol=2e-4)  # float32 has 900 to within 6e-5


@pytest.mark.long
def test_contract(tmp_path):
    check_layer(layers.MultiHeadAttention, {"num_heads": 2, "positions": "rotary"}, X, 4, tmp_path)


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("restricted", [False, True])
def test_cached_steps_of_two_beams_equal_one_causal_call(in_place, restricted):
    layer = (
        layers.RestrictedAttention(2, 3, positions="rotary")
        if restricted
        else layers.MultiHeadAttention(2, positions="rotary")
    )
    layer.build(X.shape)
    full = array(layer(X, use_causal_mask=True))
    plain = type(layer).from_config({**layer.get_config(), "positions": "none"})
    plain.build(X.shape)
    plain.set_weights(layer.get_weights())
    assert np.abs(full - array(plain(X, use_causal_mask=True))).max() > 1e-3, "positions are not seen"
    slots = 10 if in_place else 0
    past = Past(*np.zeros((2, 1, 2, slots, 4), "float32"))
    for i in range(5):  # the two sentences of X are the beams of one
        seen = np.arange(max(slots, 2 * i + 2))
        mask = (seen // 2 <= i) & (seen % 2 == np.arange(2)[:, None])
        position = ops.convert_to_tensor(i, "int32") if in_place else None
        output, past = layer.step(X[:, i].reshape(1, 2, 8), past, position, mask[None])
        np.testing.assert_allclose(array(output)[0], full[:, i], atol=1e-5)


def test_a_memory_has_no_positions():
    layer = layers.MultiHeadAttention(2, positions="rotary")
    layer.build(X.shape)
    memory = layer.memory(ops.convert_to_tensor(X))
    moved = array(layer.attend_to(X[:, 2:3], memory))
    np.testing.assert_allclose(moved, array(layer.attend_to(X, memory))[:, 2:3], atol=1e-5)


def test_an_odd_head_is_refused():
    with pytest.raises(ValueError, match="even `key_dim`: received 3"):
        layers.MultiHeadAttention(2, key_dim=3, positions="rotary").build(X.shape)


def test_a_configuration_written_when_it_was_the_only_kind():
    config = layers.RestrictedAttention(2, 3, positions="rotary").get_config()
    del config["positions"]
    assert layers.RestrictedAttention.from_config({**config, "rotary": True}).positions == "rotary"
    assert layers.RestrictedAttention.from_config({**config, "rotary": False}).positions == "none"


def test_each_kind_of_position_is_a_choice_of_the_hyperparameter():
    assert {*POSITIONS} == {*HParams().settings()["pos"].values.values()}
