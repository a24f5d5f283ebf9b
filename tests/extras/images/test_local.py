"""Attention to blocks against dense attention under the papers' predicates, written as loops; also tests/layers."""

import keras
import numpy as np
import pytest

from t2t_lite import layers, registry
from tests.layers.equations import array, attention_in_numpy

ONE = {"type": "local_1d", "block_length": 3}
TWO = {"type": "local_2d", "block_height": 2, "block_width": 3, "image_width": 12, "blocks_above": 2}
X = np.random.default_rng(0).normal(size=(1, 89, 8)).astype("float32")


def sees(kind, i, j):
    if kind is ONE:
        return j <= i and i // 3 - j // 3 <= 1
    (row, column), (other_row, other_column) = (divmod(place // 6, 4) for place in (i, j))
    return j <= i and row - other_row <= 2 and abs(column - other_column) <= 1


def visible(kind, length):
    return np.array([[sees(kind, i, j) for j in range(length)] for i in range(length)])


@pytest.mark.parametrize(("kind", "most"), [(ONE, 6), (TWO, 48)], ids=["local_1d", "local_2d"])
def test_a_block_sees_itself_and_the_earlier_ones_around_it(kind, most):
    layer = layers.MultiHeadAttention(2, pattern=kind)
    layer.build((None, None, 8))
    for length in (1, 5, 89):  # 89: some of the fourth row of blocks, beyond what is made at once
        x = X[:, :length]
        expected = attention_in_numpy(layer, x, x, visible(kind, length))
        np.testing.assert_allclose(array(layer(x, use_causal_mask=True)), expected, atol=1e-5)
    i, j = np.mgrid[:89, :89]
    pattern = layer.pattern
    np.testing.assert_array_equal(array(pattern.visible(i, j, 89, True)), visible(kind, 89))
    for at in (0, 7, 40, 88):
        positions = array(pattern.positions(keras.ops.full((1, 1), at, "int32"), 89))[0]
        found = [p for p in positions.tolist() if 0 <= p <= at]
        assert {*found} >= {*np.flatnonzero(visible(kind, 89)[at]).tolist()} and len({*found}) == len(found)
    assert pattern.seen(1000) == most and pattern.seen(4) == 4


def test_defaults_and_sizes_that_are_refused():
    values = {name: setting.default for kind in ("local_1d", "local_2d")
              for name, setting in registry.Registries.patterns.get(kind).HPARAMS.items()}  # fmt: skip
    assert values == {
        "block_length": 256, "block_height": 16, "block_width": 16, "image_width": 32, "blocks_above": 1,
        "blocks_beside": 1,
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"image_width.*block_width.*=3.*image_width=13"):
        layers.MultiHeadAttention(2, pattern={**TWO, "image_width": 13})
    with pytest.raises(ValueError, match="block_height"):
        layers.MultiHeadAttention(2, pattern={**TWO, "block_height": 0})
