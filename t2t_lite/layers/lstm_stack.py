"""LSTM layers on top of one another, in one direction (Hochreiter and Schmidhuber, 1997)."""

import keras

from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import check_sizes
from t2t_lite.layers.dropout import Dropout
from t2t_lite.layers.masks import check_masks


@keras.saving.register_keras_serializable("t2t_lite")
class LSTMStack(Layer):
    """Reads vectors from left to right; from the second layer on, the input is added to the output, as in ELMo.

    Args:
        num_layers: int.
        size: int, of the cells, the outputs, and the inputs if there are several layers.
        dropout: float, of each layer's input.
    """

    def __init__(self, num_layers: int, size: int, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        check_sizes(num_layers=num_layers, size=size)
        self.size = size
        own = {"dtype": self.dtype_policy}
        numbers = range(num_layers)
        self.dropouts = [Dropout(dropout, name=f"dropout_{i}", **own) for i in numbers]
        self.layers = [keras.layers.LSTM(size, return_sequences=True, name=f"{self.name}_{i}", **own) for i in numbers]
        self.input_spec = keras.InputSpec(ndim=3)
        self.supports_masking = True

    def build(self, input_shape):
        """Creates the weights for [B, T, n]."""
        for layer in self.layers:
            layer.build(input_shape)
            input_shape = (*input_shape[:-1], self.size)

    def call(self, inputs, training=None, mask=None):
        """[B, T, n] -> a list with each layer's output, [B, T, size].

        Padding on the right needs no mask: what comes later does not change an output. With a `mask`, bool [B, T], all
        layers skip the positions where it is False, wherever they are.
        """
        check_masks(mask=mask)
        found = []
        for layer, dropout in zip(self.layers, self.dropouts, strict=True):
            output = layer(dropout(found[-1] if found else inputs, training=training), mask=mask)
            found.append(output + found[-1] if found else output)
        return found

    def compute_mask(self, inputs, mask=None):
        """Returns the mask of the inputs for each layer's output."""
        return mask if mask is None else [mask] * len(self.layers)

    def compute_output_shape(self, input_shape):
        """Returns the shapes of the layers' outputs."""
        return [(*input_shape[:-1], self.size)] * len(self.layers)
