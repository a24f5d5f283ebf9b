"""Position-wise feed-forward network (paper, section 3.3)."""

import functools

import keras
from keras import ops

from t2t_lite.layers.checks import check_rates, check_sizes
from t2t_lite.layers.dropout import Dropout

_ACTIVATIONS = {
    "relu": ops.relu,
    "gelu": functools.partial(ops.gelu, approximate=False),
    "swish": ops.silu,
    "swiglu": ops.silu,
}


@keras.saving.register_keras_serializable("t2t_lite")
class FeedForward(keras.layers.Layer):
    """max(0, xW₁ + b₁)W₂ + b₂ at every position (paper, equation 2).

    Args:
        filter_size: int, d_ff, size of the inner layer.
        dropout: float in [0, 1), on the inner activations (tensor2tensor's relu_dropout; 0 in the paper).
        activation: "relu" (the paper's), "gelu" (x Φ(x), not its tanh approximation), "swish" (x σ(x), Marian's
            and so OPUS-MT's), or "swiglu" (swish(xW₁) · xV, Shazeer 2020: a third matrix).

    Raises:
        ValueError: `filter_size` is not positive, the rate is outside [0, 1), or the activation is unknown.
    """

    def __init__(self, filter_size, dropout=0.0, activation="relu", **kwargs):
        super().__init__(**kwargs)
        check_sizes(filter_size=filter_size)
        check_rates(dropout=dropout)
        if activation not in _ACTIVATIONS:
            raise ValueError(f"`activation` must be one of {', '.join(_ACTIVATIONS)}: received {activation!r}.")
        self.filter_size = filter_size
        self.dropout_rate = dropout
        self.activation = activation
        self.supports_masking = True

    def build(self, input_shape):
        """Creates the two (swiglu: three) dense layers, Glorot uniform, with biases."""
        hidden_size = input_shape[-1]
        sizes = {"inner": (hidden_size, self.filter_size), "outer": (self.filter_size, hidden_size)}
        if self.activation == "swiglu":
            sizes["gate"] = (hidden_size, self.filter_size)
        for name, (inputs, outputs) in sizes.items():
            dense = keras.layers.Dense(outputs, dtype=self.dtype_policy, name=name)
            dense.build((None, inputs))
            setattr(self, name, dense)
        self.dropout = Dropout(self.dropout_rate, dtype=self.dtype_policy, name="dropout")

    def call(self, inputs, training=None):
        """[..., hidden] -> [..., hidden]."""
        shape = ops.shape(inputs)
        x = ops.reshape(inputs, (-1, shape[-1]))  # two dimensions: product and bias become one kernel
        inner = _ACTIVATIONS[self.activation](self.inner(x))
        if self.activation == "swiglu":
            inner = inner * self.gate(x)
        return ops.reshape(self.outer(self.dropout(inner, training=training)), shape)

    def compute_output_shape(self, input_shape):
        """Returns `input_shape`."""
        return input_shape

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "filter_size": self.filter_size,
            "dropout": self.dropout_rate,
            "activation": self.activation,
        }
