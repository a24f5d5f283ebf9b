"""The feed-forward network against section 3.3 of the paper, and its kinds."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.layers.feed_forward import make_feed_forward, spelled_kinds
from t2t_lite.registry import Registries, register_feed_forward
from tests.layers.equations import array, gelu
from tests.layers.harness import X, check_layer


@keras.saving.register_keras_serializable("tests")
def squared_relu(x):
    return ops.square(ops.relu(x))


def swish(x):
    return x / (1 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0)


ACTIVATIONS = {  # as given: (as it is in get_config, the function)
    "relu": ("relu", relu),
    "gelu": ("gelu", gelu),
    "gelu_tanh": ("gelu_tanh", lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
    "swish": ("swish", swish),
    "swiglu": ("swiglu", swish),  # of the gate
    "tanh": ("tanh", np.tanh),
    keras.activations.tanh: ("tanh", np.tanh),
    keras.activations.relu: ("relu", relu),
    squared_relu: (None, lambda x: relu(x) ** 2),
    None: (None, lambda x: x),
}


@pytest.mark.parametrize("given", ACTIVATIONS)
def test_paper_equation(given):
    name, function = ACTIVATIONS[given]
    layer = layers.FeedForward(16, activation=given, bias_initializer=keras.initializers.RandomNormal(stddev=1.0))
    output = array(layer(X))

    def dense(part, x):
        return x @ array(part.kernel) + array(part.bias)

    inner = function(dense(layer.inner, X)) * (dense(layer.gate, X) if given == "swiglu" else 1)
    np.testing.assert_allclose(output, dense(layer.outer, inner), atol=1e-5)
    if name:
        assert layer.get_config()["activation"] == name
        assert layers.FeedForward.from_config(layer.get_config()).activation == name


@pytest.mark.parametrize(
    "activation, dropout, expected",
    [
        ("relu", 0.0, 16 * 4),
        ("relu", 0.1, 16 * (2 * 4 + 1)),
        ("gelu", 0.0, 16 * 4 * 4),
        ("swiglu", 0.1, 16 * (5 * 4 + 1)),
    ],
)
def test_bytes_of_a_position(activation, dropout, expected):
    """Of 16 inner numbers of 4 bytes: what activations keep, and after a dropout another copy and a mask's byte."""
    assert layers.FeedForward(16, dropout, activation).activations(7, 4) == expected


@pytest.fixture
def scaled():
    @register_feed_forward("scaled")
    class Scaled(layers.FeedForward):
        def __init__(self, filter_size, factor, power=2, **kwargs):
            super().__init__(filter_size, **kwargs)
            self.factor, self.power = factor, power

    yield Scaled
    Registries.feed_forwards.remove("scaled")


def test_kinds_take_turns_over_the_layers(scaled):
    kinds = ["dense_relu_dense", {"type": "scaled", "factor": 3}, {"type": "scaled", "factor": 5, "power": 7}]
    made = [make_feed_forward(kinds, i, filter_size=16) for i in range(5)]
    assert [getattr(layer, "factor", None) for layer in made] == [None, 3, 5, None, 3]
    assert [getattr(layer, "power", None) for layer in made] == [None, 2, 7, None, 2]
    text = "dense_relu_dense/scaled(factor=3)/scaled(factor=5;power=7)"
    spelled = ["dense_relu_dense", {"type": "scaled", "factor": "3"}, {"type": "scaled", "factor": "5", "power": "7"}]
    assert spelled_kinds(text) == spelled


@pytest.mark.parametrize(
    "text, words",
    [
        ("scaled+scaled", r"ffn_layer=scaled\+scaled.*only one kind.*/"),
        ("scaled:dense_relu_dense", "ffn_layer=scaled:dense_relu_dense.*only one kind.*/"),
        ("scaled(sum=3)", "`feed_forward` scaled has the options .*factor.*power.*sum"),
        ("dense_relu_dense(factor=3)", r"dense_relu_dense has the options \[\]: .*factor"),
        ("skaled", "dense_relu_dense, .*'skaled'"),
    ],
)
def test_kinds_that_cannot_be_read(text, words, scaled):
    with pytest.raises(ValueError, match=words):
        spelled_kinds(text)


@pytest.mark.few("swiglu", "function")
@pytest.mark.slow
@pytest.mark.parametrize(
    "activation, weights",
    [("relu", 4), ("gelu", 4), ("swish", 4), ("swiglu", 6), (lambda: squared_relu, 4)],
    ids=["relu", "gelu", "swish", "swiglu", "function"],
)
def test_contract(activation, weights, tmp_path):
    init = {"filter_size": 16, "dropout": 0.1, "activation": activation}
    check_layer(layers.FeedForward, init, X, weights, tmp_path)


def test_initializers():
    own = {"kernel_initializer": keras.initializers.RandomNormal(stddev=3.0), "bias_initializer": "ones"}
    own["output_initializer"] = keras.initializers.RandomNormal(stddev=7.0)
    layer = layers.FeedForward(300, activation="swiglu", **own)
    layer.build((None, None, 300))
    kernels = [array(dense.kernel) for dense in (layer.inner, layer.outer, layer.gate)]
    assert [round(float(kernel.std())) for kernel in kernels] == [3, 7, 3]
    assert np.abs(kernels[0] - kernels[2]).max() > 1  # each drawn by itself
    assert (array(layer.inner.bias) == 1).all()
    config = layer.get_config()
    assert config["bias_initializer"] == "ones" and layers.FeedForward.from_config(config).get_config() == config
