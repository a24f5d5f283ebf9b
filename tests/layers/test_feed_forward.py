"""The feed-forward network against section 3.3 of the paper."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import X, check_layer


@pytest.mark.few("swiglu-6")
@pytest.mark.slow
@pytest.mark.parametrize("activation, weights", [("relu", 4), ("gelu", 4), ("swish", 4), ("swiglu", 6)])
def test_contract(activation, weights, tmp_path):
    init = {"filter_size": 16, "dropout": 0.1, "activation": activation}
    check_layer(layers.FeedForward, init, X, weights, tmp_path)


def test_paper_equation():
    layer = layers.FeedForward(16)
    output = array(layer(X))
    w1, b1 = array(layer.inner.kernel), array(layer.inner.bias)
    w2, b2 = array(layer.outer.kernel), array(layer.outer.bias)
    np.testing.assert_allclose(output, np.maximum(0, X @ w1 + b1) @ w2 + b2, atol=1e-5)


def test_gelu_is_the_exact_one():
    layer = layers.FeedForward(16, activation="gelu")
    output = array(layer(X))
    inner = X @ array(layer.inner.kernel)
    phi = 0.5 * (1 + np.vectorize(math.erf)(inner / np.sqrt(2)))
    np.testing.assert_allclose(output, (inner * phi) @ array(layer.outer.kernel), atol=1e-5)


def test_gelu_tanh_is_its_approximation():
    layer = layers.FeedForward(16, activation="gelu_tanh")
    output = array(layer(X))
    x = X @ array(layer.inner.kernel)
    inner = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(output, inner @ array(layer.outer.kernel), atol=1e-5)
    assert layers.FeedForward.from_config(layer.get_config()).activation == "gelu_tanh"


def test_swish():
    layer = layers.FeedForward(16, activation="swish")
    output = array(layer(X))
    inner = X @ array(layer.inner.kernel)
    np.testing.assert_allclose(output, inner / (1 + np.exp(-inner)) @ array(layer.outer.kernel), atol=1e-5)


def test_swiglu():
    layer = layers.FeedForward(16, activation="swiglu")
    output = array(layer(X))
    inner = X @ array(layer.inner.kernel)
    gated = inner / (1 + np.exp(-inner)) * (X @ array(layer.gate.kernel))
    np.testing.assert_allclose(output, gated @ array(layer.outer.kernel), atol=1e-5)


@keras.saving.register_keras_serializable("tests")
def squared_relu(x):
    return ops.square(ops.relu(x))


ACTIVATIONS = {  # as given: (as it is in get_config, the function)
    "tanh": ("tanh", np.tanh),
    keras.activations.tanh: ("tanh", np.tanh),
    keras.activations.relu: ("relu", lambda x: np.maximum(x, 0)),
    squared_relu: (None, lambda x: np.maximum(x, 0) ** 2),
    None: (None, lambda x: x),
}


@pytest.mark.parametrize("given", ACTIVATIONS)
def test_activations_by_name_of_keras_and_as_functions(given):
    name, expected = ACTIVATIONS[given]
    layer = layers.FeedForward(16, activation=given)
    output = array(layer(X))
    inner = X @ array(layer.inner.kernel)
    np.testing.assert_allclose(output, expected(inner) @ array(layer.outer.kernel), atol=1e-5)
    if name:
        assert layer.get_config()["activation"] == name


@pytest.mark.few("squared_relu")
@pytest.mark.slow
@pytest.mark.parametrize("activation", [squared_relu, "softplus"])
def test_contract_with_other_activations(activation, tmp_path):
    check_layer(layers.FeedForward, {"filter_size": 16, "activation": activation}, X, 4, tmp_path)


def test_initializers():
    own = {"kernel_initializer": keras.initializers.RandomNormal(stddev=3.0), "bias_initializer": "ones"}
    layer = layers.FeedForward(300, activation="swiglu", **own)
    layer.build((None, None, 300))
    kernels = [array(dense.kernel) for dense in (layer.inner, layer.outer, layer.gate)]
    assert all(2.9 < kernel.std() < 3.1 for kernel in kernels)
    assert np.abs(kernels[0] - kernels[2]).max() > 1  # each drawn by itself
    assert (array(layer.inner.bias) == 1).all()
    config = layer.get_config()
    assert config["bias_initializer"] == "ones" and layers.FeedForward.from_config(config).get_config() == config


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"filter_size": 0}, "filter_size=0"),
        ({"filter_size": 16.0}, "filter_size=16.0"),
        ({"filter_size": 16, "dropout": -0.1}, "dropout=-0.1"),
        ({"filter_size": 16, "dropout": 1.5}, "dropout=1.5"),
        ({"filter_size": 16, "activation": "tangent"}, "relu, gelu, swish and tanh: received 'tangent'"),
        ({"filter_size": 16, "activation": 3}, "activation.* received 3"),
        ({"filter_size": 16, "kernel_initializer": "glorot"}, "kernel_initializer.*'glorot'"),
        ({"filter_size": 16, "bias_initializer": "nought"}, "bias_initializer.*'nought'"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        layers.FeedForward(**arguments)
