import keras
import numpy as np
import pytest

from t2t_lite.layers import LayerNormalization
from tests.layers.equations import array
from tests.layers.harness import X, check_layer


@pytest.mark.slow
def test_layer_normalization_keeps_the_contract_of_layers(tmp_path):
    layer, output = check_layer(LayerNormalization, {"epsilon": 1e-6}, X, 2, tmp_path)
    # Ba et al. 2016, equation 4, with gain 1 and bias 0
    deviation = np.sqrt(X.var(-1, keepdims=True) + layer.epsilon)
    np.testing.assert_allclose(output, (X - X.mean(-1, keepdims=True)) / deviation, atol=1e-5)


@pytest.mark.parametrize("option", [{"axis": 1}, {"axis": [1, 2]}, {"center": False}, {"scale": False}])
def test_what_only_keras_own_has_is_refused(option):
    LayerNormalization(axis=2)(X)
    with pytest.raises(ValueError, match="is of the last axis, with center and scale"):
        LayerNormalization(**option)(X)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_layer_normalization_is_keras_own(dtype):
    ours, theirs = (kind(epsilon=1e-5, dtype=dtype) for kind in (LayerNormalization, keras.layers.LayerNormalization))
    x = 100 + X  # far from zero: the mean of squares less the square of the mean would lose digits
    for layer in (ours, theirs):
        layer.build(x.shape)
        layer.set_weights([np.linspace(0.5, 2, 8), np.linspace(-1, 1, 8)])
    close = {"atol": 1e-4} if dtype == "float32" else {"atol": 0.05, "rtol": 0.01}
    np.testing.assert_allclose(array(ours(x)).astype("float32"), array(theirs(x)).astype("float32"), **close)
    assert ours(x).dtype == theirs(x).dtype


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's own gradient")
def test_training_has_the_gradient_that_tensorflow_derives():
    import tensorflow as tf

    draw = np.random.default_rng(0)
    x, upstream = (tf.constant(draw.normal(size=(3, 5, 8)) + 1) for _ in range(2))  # float64
    gamma, beta = (tf.constant(draw.normal(size=8)) for _ in range(2))
    layer = LayerNormalization(epsilon=1e-3, dtype="float64")
    layer.build(x.shape)
    layer.set_weights([gamma, beta])
    outputs, gradients = [], []
    for training in (True, False):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs.append(layer(x, training=training))
            loss = tf.reduce_sum(outputs[-1] * upstream)
        gradients.append(tape.gradient(loss, [x, *layer.trainable_variables]))
    np.testing.assert_array_equal(*outputs)
    for ours, derived in zip(*gradients, strict=True):
        np.testing.assert_allclose(ours, derived, atol=1e-12)
