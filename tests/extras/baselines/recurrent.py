"""An LSTM in NumPy, which the tests of models with LSTMs share."""

import numpy as np

from tests.layers.equations import array


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(layer, inputs, h=0.0, c=0.0):
    """Hochreiter and Schmidhuber (1997) with forget gates: (outputs [T, n], h, c) of inputs [T, m]."""
    kernel, recurrent, bias = (array(weight).astype("float64") for weight in layer.weights)
    h, c, outputs = np.zeros(recurrent.shape[0]) + h, c, []
    for x in inputs:
        i, f, new, o = np.split(x @ kernel + h @ recurrent + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs), h, c
