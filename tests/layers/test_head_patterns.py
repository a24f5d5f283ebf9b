"""Heads with patterns of their own, beside what tests/layers/test_key_patterns.py tries of all patterns."""

# Nearest tests of: t2t_lite/layers/key_patterns.py, t2t_lite/layers/attention_kinds.py

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import check_layer
from tests.layers.kinds import needs
from tests.layers.patterns import HEADS, SCORES, X, dense, made, pattern


def test_an_encoders_heads_may_have_a_window(in_parts):
    options = {"num_heads": 2, "key_dim": 4}
    window, full = {"type": "window", "neighborhood": 5}, "full"
    layer = layers.MultiHeadAttention(**options, pattern=[full, window])
    layer.build((None, None, 8))
    outputs = []
    for kind in (full, window):
        one = layers.MultiHeadAttention(**options, pattern=kind)
        one.build((None, None, 8))
        kernels = [array(w) for w in layer.get_weights()]
        kernels[-1][4 * (kind == full) : 4 + 4 * (kind == full)] = 0  # the other head's part of the output
        one.set_weights(kernels)
        outputs.append(array(one(X, query_mask=np.arange(31) < np.array([[31], [14]]))))
    output = array(layer(X, query_mask=np.arange(31) < np.array([[31], [14]])))
    np.testing.assert_allclose(output[0], sum(outputs)[0], atol=1e-5)
    np.testing.assert_allclose(output[1, :14], sum(outputs)[1, :14], atol=1e-5)


def test_dropout_of_the_groups_of_heads_differs(in_parts):
    window = {"type": "window", "neighborhood": 4}
    layer = layers.MultiHeadAttention(2, dropout=0.5, pattern=[window, window])
    layer.build((None, None, 8))
    kernels = [array(w) for w in layer.get_weights()]
    for kernel in kernels[:3]:
        kernel[:, 4:] = kernel[:, :4]
    kernels[3] = np.concatenate([np.eye(8)[:4], -np.eye(8)[:4]])  # the heads' difference
    layer.set_weights(kernels)
    assert np.abs(array(layer(X, use_causal_mask=True))).max() < 1e-6
    with layers.dropout_seed(ops.convert_to_tensor(3, "int32")):
        layers.number_seeds(keras.Sequential([layer]))
        assert np.abs(array(layer(X, use_causal_mask=True, training=True))).max() > 0.1


@pytest.mark.long
def test_contract(in_parts, tmp_path):
    options = {"num_heads": 4, "pattern": pattern(HEADS[0]), "score": SCORES["relative_v2"], "dropout": 0.2}
    check_layer(layers.MultiHeadAttention, options, X, 6, tmp_path)


@needs("strided", "fixed")
def test_scores_are_those_of_each_head():
    layer = made((("strided", (3,)), ("fixed", (4, 2))))
    strided, fixed = (layers.MultiHeadAttention(4, pattern=p).pattern for p in layer.get_config()["pattern"])
    assert dense(layer).flops(64) == 2 * 4 * (5 + 3) * 64 > layer.flops(64) > 0
    assert layer.pattern.seen(64) == (strided.seen(64) + fixed.seen(64)) / 2 < 64


@needs("local_1d")
@pytest.mark.parametrize(
    "kind", [{"pattern": ["full", {"type": "local_1d", "block_length": 3}]}, {"type": "local_1d", "block_length": 3}]
)
def test_the_layer_of_a_kind(kind):
    layer = layers.make_self_attention(kind, 0, num_heads=2)
    assert layer.pattern.needs_order or layer.pattern.patterns[1].needs_order
    with pytest.raises(ValueError, match=r"`self_attention` .* encoder"):
        layers.make_self_attention(kind, 0, has_order=False, num_heads=2)
