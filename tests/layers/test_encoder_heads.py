"""The heads of encoders: contract of layers, and their equations."""

import numpy as np
import pytest

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import X, check_layer


def softmax(logits):
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.slow
def test_masked_ids(tmp_path):
    init = {"size": 6, "activation": "relu", "epsilon": 1e-5}
    layer, output = check_layer(layers.MaskedIdsHead, init, X, 4, tmp_path)
    inner = np.maximum(0, X @ array(layer.dense.kernel) + array(layer.dense.bias))
    deviation = np.sqrt(inner.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(output, (inner - inner.mean(-1, keepdims=True)) / deviation, atol=1e-4)


@pytest.mark.parametrize("pooler, weights", [(False, 2), (True, 4)])
@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_classes(pooler, weights, dtype):
    layer = layers.ClassHead(3, pooler, dtype=dtype)
    probabilities = softmax(array(layer(X)))
    assert layer(X).dtype == "float32" and len(layer.trainable_weights) == weights
    x = np.tanh(X @ array(layer.pooler.kernel)) if pooler else X
    assert (probabilities[..., 0] == 0).all()  # no class
    expected = softmax(x @ array(layer.dense.kernel))
    np.testing.assert_allclose(probabilities[..., 1:], expected, atol=1e-5 if dtype == "float32" else 0.01)
    assert array(layer(X, training=True)).shape == (*X.shape[:2], 4)
    again = layers.ClassHead.from_config(layer.get_config())
    assert again.get_config() == layer.get_config() and again(X).shape == (*X.shape[:2], 4)


def test_spans():
    layer = layers.SpanHead()
    allowed = np.arange(5) < np.array([[5], [3]])
    output = array(layer(X, allowed=allowed))
    expected = np.swapaxes(X @ array(layer.dense.kernel), 1, 2)
    for row, length in enumerate([5, 3]):
        probabilities = softmax(output[row])
        assert (probabilities[:, 0] == 0).all() and (probabilities[:, 1 + length :] == 0).all()
        np.testing.assert_allclose(probabilities[:, 1 : 1 + length], softmax(expected[row, :, :length]), atol=1e-5)
    again = layers.SpanHead.from_config(layer.get_config())
    assert again(X, allowed=allowed).shape == (2, 2, 6) and len(again.weights) == 2
