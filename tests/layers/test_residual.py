"""The residual connection with its normalization: section 3.1 of the paper, and pre-norm."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.layers import LayerNormalization
from tests.layers.equations import array, normalized
from tests.layers.harness import MEMORY, X, check_layer


@pytest.mark.few("pre")
@pytest.mark.slow
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_contract_and_equation(norm, tmp_path):
    init = {"layer": layers.FeedForward(16), "norm": norm}
    residual, output = check_layer(layers.Residual, init, X, 6, tmp_path)

    if norm == "post":
        expected = normalized(X + array(residual.layer(X)))
    else:
        expected = X + array(residual.layer(ops.convert_to_tensor(normalized(X))))
    np.testing.assert_allclose(output, expected, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_epsilon_is_the_normalizations(norm):
    residual = layers.Residual(layers.FeedForward(16, kernel_initializer="zeros"), norm=norm, norm_epsilon=0.7)
    expected = normalized(X, 0.7) if norm == "post" else X
    np.testing.assert_allclose(array(residual(X)), expected, atol=1e-5)
    assert residual.normalization.epsilon == 0.7


@pytest.mark.slow
def test_around_attention_with_a_second_input(tmp_path):
    init = {"layer": layers.MultiHeadAttention(2), "dropout": 0.1}
    check_layer(layers.Residual, init, X, 6, tmp_path, value=MEMORY)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_attention_of_keras_gets_its_first_input_again(norm):
    residual = layers.Residual(keras.layers.MultiHeadAttention(2, 4), norm=norm)
    output = array(residual(X))
    inner = normalized(X) if norm == "pre" else X
    attended = X + array(residual.layer(inner, inner))
    np.testing.assert_allclose(output, normalized(attended) if norm == "post" else attended, atol=1e-5)


def test_an_input_may_have_no_positions():
    """An empty prompt, say: of one row, Keras' `add` takes it for a bias."""
    assert layers.Residual(layers.FeedForward(16))(np.zeros((1, 0, 6), "float32")).shape == (1, 0, 6)


def test_what_else_the_layer_returns_is_passed_on():
    residual = layers.Residual(layers.MultiHeadAttention(2))
    output, scores = residual(X, value=MEMORY, return_attention_scores=True)
    np.testing.assert_array_equal(array(output), array(residual(X, value=MEMORY)))
    np.testing.assert_array_equal(
        array(scores), array(residual.layer(X, value=MEMORY, return_attention_scores=True)[1])
    )


def test_the_output_has_the_connections_dtype_whatever_the_layers():
    residual = layers.Residual(layers.FeedForward(16, dtype="float32"), dtype="mixed_bfloat16")
    assert keras.backend.standardize_dtype(residual(X).dtype) == "bfloat16"


@pytest.mark.parametrize(
    "kind, size", [(keras.layers.Dense, [1]), (keras.layers.Dense, [3]), (keras.layers.GlobalMaxPooling1D, [])]
)
def test_an_output_of_another_shape_is_refused(kind, size):
    layer = kind(*size)
    for call in (layers.Residual(layer), layers.TransformerEncoderLayer(2, feed_forward=layer)):
        with pytest.raises(ValueError, match=rf"{layer.name}' must have the shape of its input, \(3, 5, 8\): received"):
            call(X)


@pytest.mark.slow
def test_layer_normalization_keeps_the_contract_of_layers(tmp_path):
    layer, output = check_layer(LayerNormalization, {"epsilon": 1e-6}, X, 2, tmp_path)
    np.testing.assert_allclose(output, normalized(X, layer.epsilon), atol=1e-5)


@pytest.mark.parametrize("option", [{"axis": 1}, {"axis": [1, 2]}, {"center": False}, {"scale": False}])
def test_what_only_keras_own_has_is_refused(option):
    LayerNormalization(axis=2)(X), LayerNormalization(axis=[-1])(X)
    with pytest.raises(ValueError, match=r"axis=.*center=.*scale="):
        LayerNormalization(**option)(X)
    with pytest.raises(ValueError, match=r"use keras.layers.RMSNormalization"), pytest.warns(UserWarning):
        LayerNormalization(rms_scaling=True)(X)


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
