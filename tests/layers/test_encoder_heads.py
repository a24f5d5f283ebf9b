"""The heads of encoders: contract of layers, and their equations."""

import itertools

import keras
import numpy as np
import pytest

from t2t_lite import layers
from t2t_lite.layers.encoder_heads import mean_and_maximum
from tests.layers.equations import array, gelu, normalized, softmax
from tests.layers.harness import X, check_layer


@pytest.mark.slow
def test_masked_ids(tmp_path):
    # Not relu, which may leave one small number in a row: normalized, its rounding in mixed precision is large.
    init = {"size": 6, "activation": "tanh", "epsilon": 1e-5}
    layer, output = check_layer(layers.MaskedIdsHead, init, X, 4, tmp_path)
    inner = np.tanh(X @ array(layer.dense.kernel) + array(layer.dense.bias))
    np.testing.assert_allclose(output, normalized(inner, 1e-5), atol=1e-4)


POOLERS = {None: lambda x: x, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0), "gelu": gelu}


@pytest.mark.parametrize("activation", POOLERS)
@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_classes(activation, dtype):
    pooler, weights = activation is not None, 2 if activation is None else 4
    layer = layers.ClassHead(3, pooler, pooler_activation=activation or "tanh", dtype=dtype)
    probabilities = softmax(array(layer(X)))
    assert keras.backend.standardize_dtype(layer(X).dtype) == "float32" and len(layer.trainable_weights) == weights
    x = POOLERS[activation](X @ array(layer.pooler.kernel)) if pooler else X
    assert (probabilities[..., 0] == 0).all()  # no class
    expected = softmax(x @ array(layer.dense.kernel))
    np.testing.assert_allclose(probabilities[..., 1:], expected, atol=1e-5 if dtype == "float32" else 0.01)
    assert array(layer(X, training=True)).shape == (*X.shape[:2], 4)
    again = layers.ClassHead.from_config(layer.get_config())
    assert again.get_config() == layer.get_config() and again(X).shape == (*X.shape[:2], 4)


def test_each_matrix_has_initial_values_of_its_own():
    """One object that draws them would draw the same for all of one shape."""
    initializer = keras.initializers.RandomNormal()
    heads = [layers.ClassHead(8, pooler=True, kernel_initializer=initializer) for _ in range(2)]
    heads += [layers.MaskedIdsHead(8, kernel_initializer=initializer)]
    for head in heads:
        head(X)
    drawn = [array(weight) for head in heads for weight in head.weights if "kernel" in weight.path]
    assert len(drawn) == 5 and all((one != two).all() for one, two in itertools.combinations(drawn, 2))


def test_spans():
    layer = layers.SpanHead()
    lengths = [5, 3, 1]
    allowed = np.arange(5) < np.array(lengths)[:, None]
    output = array(layer(X, allowed=allowed))
    assert layer.compute_output_shape(X.shape) == output.shape
    assert layer.compute_output_shape((None, None, 8)) == (None, 2, None)
    assert layer.compute_output_spec(keras.Input((5, 8)), keras.Input((5,))).shape == (None, 2, 6)
    expected = np.swapaxes(X @ array(layer.dense.kernel), 1, 2)
    for row, length in enumerate(lengths):
        probabilities = softmax(output[row])
        assert (probabilities[:, 0] == 0).all() and (probabilities[:, 1 + length :] == 0).all()
        np.testing.assert_allclose(probabilities[:, 1 : 1 + length], softmax(expected[row, :, :length]), atol=1e-5)
    again = layers.SpanHead.from_config(layer.get_config())
    assert again(X, allowed=allowed).shape == (3, 2, 6) and len(again.weights) == 2


def test_mean_and_maximum_of_a_text_leave_out_what_the_mask_does():
    lengths = [5, 3, 1]
    mask = np.arange(5) < np.array(lengths)[:, None]
    expected = [np.concatenate([row[:n].mean(0), row[:n].max(0)]) for row, n in zip(X, lengths, strict=True)]
    np.testing.assert_allclose(array(mean_and_maximum(X, mask)), expected, atol=1e-6)
    for length in (0, 5):  # nothing there, alone or beside longer texts
        of_nothing = mean_and_maximum(X[:, :length], np.zeros((3, length), bool))
        np.testing.assert_array_equal(array(of_nothing), np.zeros((3, 16)))
    mask[1] = False  # one text without a position, beside others
    assert not array(mean_and_maximum(X, mask))[1].any()
    long = mean_and_maximum(np.full((1, 1000, 1), 100, "float16"), np.ones((1, 1000), bool))
    np.testing.assert_array_equal(array(long), [[100, 100]])  # float16 cannot hold the sum
