"""The feed-forward network against section 3.3 of the paper."""

import math

import numpy as np
import pytest

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import X, check_layer


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


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"filter_size": 0}, "filter_size=0"),
        ({"filter_size": 16.0}, "filter_size=16.0"),
        ({"filter_size": 16, "dropout": -0.1}, "dropout=-0.1"),
        ({"filter_size": 16, "dropout": 1.5}, "dropout=1.5"),
        ({"filter_size": 16, "activation": "tanh"}, "relu, gelu, swish, swiglu: received 'tanh'"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        layers.FeedForward(**arguments)
