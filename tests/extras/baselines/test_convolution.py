"""Convolution over positions against its sum, and its step against a pass over all positions."""

import numpy as np
import pytest

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import PAIR as X
from tests.layers.harness import check_layer


@pytest.mark.slow
def test_contract(tmp_path):
    check_layer(layers.Convolution, {"filters": 6, "kernel_size": 3, "dilation": 2}, X, 2, tmp_path)


@pytest.mark.parametrize(
    "kernel_size, dilation, causal, before",
    [(3, 1, False, 1), (3, 2, True, 2), (4, 1, False, 1), (1, 1, True, 0), (9, 3, True, 8)],
)
def test_it_is_the_sum_of_a_window(kernel_size, dilation, causal, before):
    layer = layers.Convolution(6, kernel_size, dilation, causal, bias_initializer="ones")
    mask = np.array([[True] * 5, [True] * 3 + [False] * 2])
    found = array(layer(X, mask=mask))
    kernels = array(layer.windows.kernel).reshape(kernel_size, 8, 6)
    for row, length in enumerate((5, 3)):
        for t in range(length):
            at = [t + (j - before) * dilation for j in range(kernel_size)]
            terms = [X[row, p] @ kernel for p, kernel in zip(at, kernels, strict=True) if 0 <= p < length]
            np.testing.assert_allclose(found[row, t], 1 + sum(terms), atol=1e-5)


@pytest.mark.parametrize("kernel_size, dilation", [(3, 1), (3, 2), (1, 1), (2, 4)])
def test_steps_are_the_positions_of_a_causal_pass(kernel_size, dilation):
    layer = layers.Convolution(6, kernel_size, dilation, causal=True)
    expected = array(layer(X))
    past = layer.first_past(2, 8)
    for t in range(5):
        found, past = layer.step(X[:, t], past)
        np.testing.assert_allclose(array(found), expected[:, t], atol=1e-6)


@pytest.mark.parametrize(
    "arguments, words", [((0, 3), "filters=0"), ((4, 0), "kernel_size=0"), ((4, 3, 0), "dilation=0")]
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        layers.Convolution(*arguments)
