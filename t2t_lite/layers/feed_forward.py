"""The position-wise feed-forward network (paper, section 3.3), and the registered kinds of such networks."""

import inspect
from collections.abc import Callable

import keras
from keras import ops

from t2t_lite.layers.base import (
    GATED,
    GLOROT,
    Initializer,
    Layer,
    activation_function,
    check_initializers,
    dense_initializers,
)
from t2t_lite.layers.checks import check_rates, check_required_sizes, shape_of
from t2t_lite.layers.dense import Dense
from t2t_lite.layers.dropout import Dropout
from t2t_lite.layers.layer_kinds import in_words, kinds_config, named_kinds, read_kinds
from t2t_lite.registry import Registries, register_feed_forward

PLAIN = "dense_relu_dense"


@register_feed_forward("dense_relu_dense")
@keras.saving.register_keras_serializable("t2t_lite")
class FeedForward(Layer):
    """max(0, xW₁ + b₁)W₂ + b₂ at every position (paper, equation 2).

    Args:
        filter_size: int, d_ff, size of the inner layer.
        dropout: float in [0, 1), on the inner activations (tensor2tensor's relu_dropout; 0 in the paper).
        activation: "relu" (the paper's), "gelu" (x Φ(x)), "gelu_tanh" (its approximation by tanh, BERT's and GPT-2's),
            "swish" (x σ(x), Marian's and so OPUS-MT's), "swiglu" (swish(xW₁) · xV, Shazeer 2020: a third matrix),
            another name of `keras.activations`, or a function.
        kernel_initializer, bias_initializer: initializers of the dense layers: see `keras.layers.Dense`.
        output_initializer: initializer of the last dense layer's kernel; None: kernel_initializer.

    Raises:
        ValueError: `filter_size` is not positive, the rate is outside [0, 1), or an activation or initializer unknown.
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
        self.initializers = {
            "kernel_initializer": kernel_initializer,
            "bias_initializer": bias_initializer,
            "output_initializer": output_initializer,
        }
        check_initializers(**self.initializers)
        self.supports_masking = True

    def build(self, input_shape):
        """Creates the two (swiglu: three) dense layers, with biases."""
        hidden_size = input_shape[-1]
        self.require_size(input_shape)
        sizes = {"inner": (hidden_size, self.filter_size), "outer": (self.filter_size, hidden_size)}
        if self.activation == GATED:
            sizes["gate"] = (hidden_size, self.filter_size)
        for name, (inputs, outputs) in sizes.items():
            own = dense_initializers(self.initializers, name == "outer")
            dense = Dense(outputs, dtype=self.dtype_policy, name=name, **own)
            dense.build((None, inputs))
            setattr(self, name, dense)
        self.dropout = Dropout(self.dropout_rate, dtype=self.dtype_policy, name="dropout")

    def activations(self, length, compute):
        """Returns the bytes that one position keeps for the backward pass; each number has `compute` bytes."""
        inner, dropped = 1 if self.activation == "relu" else 4, self.dropout_rate > 0
        return self.filter_size * ((inner + dropped) * compute + dropped)

    def call(self, inputs, training=None):
        """[..., hidden] -> [..., hidden]."""
        shape = shape_of(inputs)
        x = ops.reshape(inputs, (-1, shape[-1]))  # with two dimensions, product and bias become one kernel
        inner = self.activate(self.inner(x))
        if self.activation == GATED:
            inner = inner * self.gate(x)
        return ops.reshape(self.outer(self.dropout(inner, training=training)), shape)


def kinds_of(feed_forward):
    """Returns the kinds of `make_feed_forward` as a list of (name, all options), one per layer until they repeat.

    Raises:
        ValueError: an unknown name, an option that the kind does not have, or one that is missing.
    """
    return named_kinds("feed_forward", feed_forward, own_options)


def make_feed_forward(feed_forward, index, **options):
    """Makes the feed-forward layer of a layer.

    Args:
        feed_forward: a kind, or a list of kinds that take turns over the layers. A kind is a registered name
            (`register_feed_forward`), or a dict of a name and options: {"type": "local_moe", "num_experts": 4}.
        index: int, number of the layer in its stack.
        **options: arguments of `FeedForward`.

    Raises:
        ValueError: as `kinds_of`.
    """
    kinds = kinds_of(feed_forward)
    name, own = kinds[index % len(kinds)]
    return Registries.feed_forwards.get(name)(**own, **options)


def feed_forward_config(feed_forward):
    """Returns the argument of `make_feed_forward` with all options: a kind, or a list of kinds."""
    return kinds_config(kinds_of(feed_forward))


def own_options(name):
    """Returns {name: default} of the options of a kind. Raises `ValueError` for an unknown one."""
    if name not in Registries.feed_forwards:
        names = ", ".join(Registries.feed_forwards.names())
        raise ValueError(f"`feed_forward` must be one of {names}: received feed_forward={name!r}.")
    base = inspect.signature(FeedForward).parameters
    parameters = inspect.signature(Registries.feed_forwards.get(name)).parameters.values()
    own = (p for p in parameters if p.name not in base and p.kind is p.POSITIONAL_OR_KEYWORD)
    return {p.name: p.default for p in own}


def own_hparams(text):
    """Returns {name: setting} of the hyperparameters that the kinds in `ffn_layer` declare.

    Raises:
        ValueError: as `spelled_kinds`.
    """
    settings = {}
    for kind in spelled_kinds(text):
        settings |= getattr(Registries.feed_forwards.get(kind["type"]), "HPARAMS", {})
    return settings


def spelled_kinds(text):
    """Returns the kinds in `ffn_layer` as dicts for `make_feed_forward`, with options as strings: see `read_kinds`.

    Raises:
        ValueError: not of that form, an unknown name, or an option that the kind does not have.
    """
    kinds = []
    for [word, *others], *groups in read_kinds(text, "ffn_layer"):
        if others or groups:
            raise ValueError(f"ffn_layer={text}: a layer has one kind. Expected / between those of several layers.")
        options = own_options(word.name)
        for option in word.options:
            if option not in options:
                expected = " or ".join(options) or "none"
                raise ValueError(f"ffn_layer={text}: {word.name} has no option {option}. Expected {expected}.")
        kinds.append({"type": word.name, **word.options})
    return kinds


def words_of(name, options):
    """Returns a kind in the form that `spell_kind` takes; the arguments are as in `kinds_of`."""
    return in_words(name, options)
