"""The position-wise feed-forward network (paper, section 3.3), and other registered kinds of feed-forward layers."""

from collections.abc import Callable

import keras
from keras import ops

from t2t_lite.layers.base import (
    GATED,
    GLOROT,
    Initializer,
    Layer,
    activation_function,
    dense_initializers,
    sublayer_initializers,
)
from t2t_lite.layers.checks import check_choices, check_rates, check_required_sizes, shape_of
from t2t_lite.layers.dense import Dense
from t2t_lite.layers.dropout import Dropout
from t2t_lite.layers.layer_kinds import added_options, kinds_config, name_and_options, named_kinds, read_kinds
from t2t_lite.registry import Registries, register_feed_forward

PLAIN = "dense_relu_dense"


@register_feed_forward("dense_relu_dense")
@keras.saving.register_keras_serializable("t2t_lite")
class FeedForward(Layer):
    """The position-wise feed-forward network, max(0, xW₁ + b₁)W₂ + b₂ (paper, equation 2).

    Args:
        filter_size: int, d_ff, the size of the inner layer.
        dropout: float in [0, 1), the dropout rate of the inner activations (tensor2tensor's relu_dropout; 0 in the
            paper).
        activation: "relu" (as in the paper), "gelu" (x Φ(x)), "gelu_tanh" (the tanh approximation used by BERT and
            GPT-2), "swish" (x σ(x), used by Marian and OPUS-MT), "swiglu" (swish(xW₁) · xV with a third matrix V,
            Shazeer 2020), another name in `keras.activations`, or a function.
        kernel_initializer, bias_initializer: initializers of the dense layers: see `keras.layers.Dense`.
        output_initializer: initializer of the last dense layer's kernel. Defaults to kernel_initializer.

    Raises:
        ValueError: if `filter_size` is not positive, the rate is outside [0, 1), or an activation or initializer is
            unknown.
    """

    def __init__(
        self,
        filter_size: int,
        dropout: float = 0.0,
        activation: str | Callable = "relu",
        kernel_initializer: Initializer = GLOROT,
        bias_initializer: Initializer = "zeros",
        output_initializer: Initializer = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_required_sizes(filter_size=filter_size)
        check_rates(dropout=dropout)
        self.filter_size = filter_size
        self.dropout_rate = dropout
        self.activation = activation
        self.activate = activation_function(activation)
        self.initializers = sublayer_initializers(kernel_initializer, bias_initializer, output_initializer)

    def build(self, input_shape):
        """Creates the two dense layers (three for swiglu), with biases."""
        hidden_size = input_shape[-1]
        self.require_size(input_shape)
        sizes = {"inner": (hidden_size, self.filter_size), "outer": (self.filter_size, hidden_size)}
        if self.activation == GATED:
            sizes["gate"] = (hidden_size, self.filter_size)
        for name, (inputs, outputs) in sizes.items():
            initializers = dense_initializers(self.initializers, name == "outer")
            dense = Dense(outputs, dtype=self.dtype_policy, name=name, **initializers)
            dense.build((None, inputs))
            setattr(self, name, dense)
        self.dropout = Dropout(self.dropout_rate, dtype=self.dtype_policy, name="dropout")

    def activations(self, length, compute):
        """Returns the number of bytes stored per position for the backward pass, with `compute` bytes per number."""
        inner, dropped = 1 if self.activation == "relu" else 4, self.dropout_rate > 0
        return self.filter_size * ((inner + dropped) * compute + dropped)

    def call(self, inputs, training=None):
        """Applies the network at each position, [..., hidden] -> [..., hidden]."""
        shape = shape_of(inputs)
        x = ops.reshape(inputs, (-1, shape[-1]))  # a product and a bias can only be fused if the inputs are 2-D
        inner = self.activate(self.inner(x))
        if self.activation == GATED:
            inner = inner * self.gate(x)
        return ops.reshape(self.outer(self.dropout(inner, training=training)), shape)


def kinds_of(feed_forward):
    """Returns the kinds in `feed_forward` as a list of (name, all options), which the layers use in turn.

    Raises:
        ValueError: if a name or an option is unknown, or a required option is missing.
    """
    return named_kinds("feed_forward", feed_forward, own_options)


def make_feed_forward(feed_forward, index, **options):
    """Creates the feed-forward sub-layer of one layer of a stack.

    Args:
        feed_forward: a kind, or a list of kinds that the layers use in turn. A kind is a registered name
            (`register_feed_forward`), or a dict with a name and options: {"type": "local_moe", "num_experts": 4}.
        index: int, the number of the layer in its stack.
        **options: arguments of `FeedForward`.

    Raises:
        ValueError: see `kinds_of`.
    """
    kinds = kinds_of(feed_forward)
    name, kind_options = kinds[index % len(kinds)]
    return Registries.feed_forwards.get(name)(**kind_options, **options)


def own_options(name):
    """Returns {option: default} for a kind of feed-forward layer. Raises `ValueError` if the kind is unknown."""
    check_choices(Registries.feed_forwards.names(), feed_forward=name)
    return added_options(Registries.feed_forwards.get(name), FeedForward)


def classes_of(name):
    """Returns the registered classes of a kind of feed-forward layer, whose `HPARAMS` are its hyperparameters."""
    return [Registries.feed_forwards.get(name)]


def spelled_kinds(text):
    """Parses `ffn_layer` into a constructor's argument, which only has the options that the text sets.

    Raises:
        ValueError: see `read_kinds` and `kinds_of`; also if kinds are joined with + or :, as those of attention may be.
    """
    kinds = read_kinds(text, "ffn_layer")
    for name, options in (name_and_options(kind, "feed_forward") for kind in kinds):
        if "+" in str(name) or "pattern" in options:
            raise ValueError(f"ffn_layer={text}: a layer has only one kind. Separate layers with /.")
    return kinds_config(named_kinds("feed_forward", kinds, own_options, fills=False))
