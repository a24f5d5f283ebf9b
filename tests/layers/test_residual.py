"""The residual connection with its normalization: section 3.1 of the paper, and pre-norm."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import MEMORY, X, check_layer


@pytest.mark.few("pre")
@pytest.mark.slow
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_contract_and_equation(norm, tmp_path):
    init = {"layer": layers.FeedForward(16), "norm": norm}
    residual, output = check_layer(layers.Residual, init, X, 6, tmp_path)

    def normalized(x):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    if norm == "post":
        expected = normalized(X + array(residual.layer(X)))
    else:
        expected = X + array(residual.layer(ops.convert_to_tensor(normalized(X))))
    np.testing.assert_allclose(output, expected, atol=1e-5)


@pytest.mark.slow
def test_around_attention_with_a_second_input(tmp_path):
    init = {"layer": layers.MultiHeadAttention(2), "dropout": 0.1}
    check_layer(layers.Residual, init, X, 6, tmp_path, value=MEMORY)


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
    "arguments, words",
    [
        ({"norm": "none"}, "'post' or 'pre': received norm='none'"),
        ({"dropout": -0.1}, "dropout=-0.1"),
        ({"dropout": 1}, "dropout=1"),
        ({"norm_epsilon": 0}, "norm_epsilon=0"),
        ({"norm_epsilon": -1e-5}, "norm_epsilon=-1e-05"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        layers.Residual(layers.FeedForward(4), **arguments)
