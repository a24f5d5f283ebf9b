"""The encoder layer and the decoder layer (paper, section 3.1)."""

import types
from collections.abc import Callable

import keras
from keras import ops

from t2t_lite.layers.attention import MultiHeadAttention
from t2t_lite.layers.base import GLOROT, Initializer, Layer
from t2t_lite.layers.checks import check_built, check_layers, check_rates, check_sequences, shape_of
from t2t_lite.layers.feed_forward import FeedForward
from t2t_lite.layers.masks import check_masks, merge_masks
from t2t_lite.layers.residual import Residual

_INITIALIZERS = ("kernel_initializer", "bias_initializer", "output_initializer")


class _TransformerLayer(Layer):
    """Base class of encoder and decoder layers, whose sub-layers are passed in or created from options."""

    def __init__(
        self,
        num_heads: int | None = None,
        filter_size: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        relu_dropout: float = 0.0,
        norm: str = "post",
        norm_epsilon: float = 1e-5,
        attention_bias: bool = False,
        activation: str | Callable = "relu",
        kernel_initializer: Initializer = GLOROT,
        bias_initializer: Initializer = "zeros",
        output_initializer: Initializer = None,
        self_attention: keras.layers.Layer | None = None,
        feed_forward: keras.layers.Layer | None = None,
        cross_attention: keras.layers.Layer | None = None,
        **kwargs,
    ):
        options = {name: value for name, value in locals().items() if name not in ("self", "kwargs", "__class__")}
        super().__init__(**kwargs)
        # Stored in an object that Keras does not search, so that each layer belongs only to its residual connection.
        self.options = types.SimpleNamespace(**options)
        self.input_spec = keras.InputSpec(ndim=3)
        check_rates(dropout=dropout, attention_dropout=attention_dropout, relu_dropout=relu_dropout)
        # Created here instead of in `build`, so that an invalid option is an error in the constructor.
        check_layers(self_attention=self_attention, feed_forward=feed_forward, cross_attention=cross_attention)
        self_attention = self._attention("self_attention") if self_attention is None else self_attention
        self.self_attention = self._residual(self_attention, "self_attention")
        self.feed_forward = self._residual(self._network() if feed_forward is None else feed_forward, "feed_forward")

    def _residual(self, layer, name):
        o = self.options
        return Residual(layer, o.norm, o.dropout, o.norm_epsilon, dtype=self.dtype_policy, name=name)

    def _attention(self, argument):
        """Creates an attention layer from the options of this layer, in place of one that `argument` could give."""
        o = self.options
        _check_given("num_heads", o.num_heads, argument)
        sizes = (o.num_heads, o.key_dim, o.value_dim, o.attention_dropout, o.attention_bias)
        return MultiHeadAttention(*sizes, **self._initializers(), dtype=self.dtype_policy, name="attention")

    def _network(self):
        """Creates a feed-forward network from the options of this layer."""
        o = self.options
        _check_given("filter_size", o.filter_size, "feed_forward")
        sizes = (o.filter_size, o.relu_dropout, o.activation)
        return FeedForward(*sizes, **self._initializers(), dtype=self.dtype_policy, name="network")

    def _fed_forward(self, x, context, training):
        options = {} if context is None else {"context": context.without_states()}
        return self.feed_forward(x, **options, training=training)

    def _initializers(self):
        return {name: getattr(self.options, name) for name in _INITIALIZERS}


def _with_keys(attention_mask, mask, inputs):
    """Applies the Keras mask of the inputs, [B, S] or None, to their keys, in addition to `attention_mask`."""
    if mask is None:
        return attention_mask
    batch, length, _ = shape_of(inputs)
    merged = merge_masks((batch, None, length, length), attention_mask, mask)
    # [B, T or 1, S] unless the heads differ, because keras.layers.MultiHeadAttention merges it with masks [B, T, S].
    return merged[:, 0] if merged.shape[1] == 1 else merged


def _with_queries(mask):
    """Adds the axis of the queries to a mask [B, S]; other masks, and None, are returned unchanged."""
    if mask is None:
        return None
    mask = ops.convert_to_tensor(mask)
    return ops.expand_dims(mask, 1) if len(mask.shape) == 2 else mask


def _check_given(name, value, instead):
    if value is None:
        raise ValueError(f"`{name}` is missing. Pass `{name}`, or a layer as `{instead}`.")


@keras.saving.register_keras_serializable("t2t_lite")
class TransformerEncoderLayer(_TransformerLayer):
    """An encoder layer: self-attention and a feed-forward network, each with a residual connection.

    Sub-layers can be passed as layers: `TransformerEncoderLayer(self_attention=RelativeAttention(8, 16),
    feed_forward=FeedForward(2048))`. Sub-layers that are not passed are created from the options, which are
    all arguments before `self_attention`.

    Args:
        num_heads: int, h, the number of heads.
        filter_size: int, d_ff, the size of the feed-forward network's inner layer.
        key_dim, value_dim: int, d_k and d_v, the sizes of a head. Both sizes default to hidden size / num_heads.
        dropout: float, the dropout rate of each sub-layer's output.
        attention_dropout: float, the dropout rate of the attention weights (0 in the paper).
        relu_dropout: float, the dropout rate of the feed-forward network's inner activations (0 in the paper).
        norm: "post" (as in the paper) or "pre".
        norm_epsilon: float, added to the variance in normalizations.
        attention_bias: bool, whether the projections of attention have biases.
        activation: "relu", "gelu", "swish", "swiglu", or another activation supported by `FeedForward`.
        kernel_initializer, bias_initializer: initializers of the dense layers: see `keras.layers.Dense`.
        output_initializer: initializer of the last kernel of each sub-layer. Defaults to kernel_initializer.
        self_attention: a layer with the same methods as `MultiHeadAttention`; or `keras.layers.MultiHeadAttention`,
            which has no decoding cache.
        feed_forward: a layer called with [B, S, hidden] and `training`, and with `context` if its `call` has this
            argument.

    Raises:
        ValueError: if an option is out of range, neither `num_heads` nor `self_attention` is given, or neither
            `filter_size` nor `feed_forward` is given.
    """

    def build(self, inputs_shape):
        """Builds the sub-layers."""
        self.require_size(inputs_shape)
        self.self_attention.build(inputs_shape)
        self.feed_forward.build(inputs_shape)

    def call(self, inputs, attention_mask=None, context=None, return_attention_scores=False, training=None, mask=None):
        """Encodes a sequence.

        Args:
            inputs: [B, S, hidden].
            attention_mask: bool [B, S, S] or [B, 1, S], True where visible: see `MultiHeadAttention.call`.
            context: `Context` or None, for the sub-layers that use it: see `MultiHeadAttention.call`.
            return_attention_scores: bool.
            training: bool.
            mask: bool [B, S], the mask that Keras attaches to `inputs`, applied in addition to `attention_mask`.

        Returns:
            The output [B, S, hidden]. With `return_attention_scores`, also the attention weights [B, heads, S, S].
        """
        check_masks(attention_mask=attention_mask, mask=mask)
        attention_mask = _with_keys(attention_mask, mask, inputs)
        attended = self.self_attention(
            inputs, attention_mask=attention_mask, context=context, return_attention_scores=return_attention_scores,
            training=training,
        )  # fmt: skip
        if not return_attention_scores:
            return self._fed_forward(attended, context, training)
        return self._fed_forward(attended[0], context, training), attended[1]


@keras.saving.register_keras_serializable("t2t_lite")
class TransformerDecoderLayer(_TransformerLayer):
    """A decoder layer: masked self-attention, attention to the encoder's output, and a feed-forward network.

    Args: those of `TransformerEncoderLayer`, and cross_attention: a layer with the same methods as
    `MultiHeadAttention`.
    """

    def build(self, inputs_shape, memory_shape=None):
        """Builds the sub-layers; without a memory, as in a language model, the layer has no cross-attention."""
        check_sequences(memory=memory_shape)
        self.require_size(inputs_shape)
        self.self_attention.build(inputs_shape)
        self.cross_attention = None
        if memory_shape is not None:
            attention = self.options.cross_attention or self._attention("cross_attention")
            self.cross_attention = self._residual(attention, "cross_attention")
            self.cross_attention.build(inputs_shape, memory_shape)
        self.feed_forward.build(inputs_shape)

    def init_cache(self, memory, batch, slots, prompt=(), lengths=()):
        """Returns this layer's cache for `step`, with the projected memory and an empty past.

        Args:
            memory: [B, S, hidden], the encoder's output; None for a layer without cross-attention.
            batch, slots: int, B, and the number of positions (times the number of beams) to allocate.
            prompt, lengths: the result of `prefill`, and int32 [B], the lengths of the prompts. Both arguments are ()
                if there are no prompts.

        Returns:
            {"self": Past}. With cross-attention, the dict also has "memory": Memory, and the Keras mask of the memory,
            if any, as "memory_mask": bool [B, S].

        Raises:
            ValueError: if this layer has not been built, or an attention layer, such as
                `keras.layers.MultiHeadAttention`, has no cache.
        """
        self._check_decodes()
        lengths = lengths if isinstance(lengths, tuple) else ops.convert_to_tensor(lengths, "int32")
        cache = {"self": self.self_attention.layer.empty_past(batch, slots)._replace(prompt=prompt, lengths=lengths)}
        if memory is not None:
            cache["memory"] = self.cross_attention.layer.memory(memory)
            mask = getattr(memory, "_keras_mask", None)
            if mask is not None:
                cache["memory_mask"] = mask
        return cache

    def _check_decodes(self):
        check_built(self)
        for part in (self.self_attention, self.cross_attention):
            if part is not None and not hasattr(part.layer, "empty_past"):
                raise ValueError(
                    f"{self.name}: {type(part.layer).__name__} has no cache, so it cannot decode step by step. "
                    "Expected t2t_lite.layers.MultiHeadAttention, or a layer with the same decoding methods."
                )

    def prefill(self, inputs):
        """Processes prompts [B, P, hidden] in one causal pass; returns (output [B, P, hidden], `Memory`)."""
        self._check_decodes()
        x, prompt = self.self_attention.around(self.self_attention.layer.prefill, inputs)
        return self.feed_forward(x, training=False), prompt

    def step(self, inputs, cache, position=None, attention_mask=None, memory_mask=None):
        """Decodes one position of every beam.

        Args:
            inputs: [B, K, hidden].
            cache: the cache from `init_cache` or from the previous step.
            position, attention_mask: see `MultiHeadAttention.step`.
            memory_mask: as in `call`, with T = K; applied in addition to the Keras mask of the memory.

        Returns:
            (output [B, K, hidden], the updated cache).

        Raises:
            ValueError: if a mask holds floats: see `check_masks`.
        """
        check_masks(memory_mask=memory_mask)

        def attend(x):
            return self.self_attention.layer.step(x, cache["self"], position, attention_mask)

        x, past = self.self_attention.around(attend, inputs)
        if self.cross_attention is not None:
            attend_to, memory_mask = self.cross_attention.layer.attend_to, _with_queries(memory_mask)
            mask = cache.get("memory_mask")
            if mask is not None:
                shape = (shape_of(inputs)[0], None, shape_of(inputs)[1], shape_of(mask)[1])
                memory_mask = merge_masks(shape, memory_mask, mask)
            x = self.cross_attention.around(lambda x: attend_to(x, cache["memory"], memory_mask), x)
        return self.feed_forward(x, training=False), {**cache, "self": past}

    def call(
        self,
        inputs,
        memory=None,
        attention_mask=None,
        memory_mask=None,
        context=None,
        return_attention_scores=False,
        training=None,
        mask=None,
    ):
        """Runs the layer on a whole target sequence. (To decode one position, use `step`.)

        Args:
            inputs: [B, T, hidden].
            memory: [B, S, hidden], the encoder's output.
            attention_mask: bool, the positions that each position sees. If None, each position sees itself and earlier
                positions.
            memory_mask: bool [B, T, S] or [B, 1, S], True where the memory is visible; or [B, S], a Keras mask.
            context: `Context` or None, for self-attention and for a feed-forward layer that uses it.
            return_attention_scores: bool.
            training: bool.
            mask: bool [B, T], the mask that Keras attaches to `inputs`, applied in addition to `attention_mask`.

        Returns:
            The output [B, T, hidden]. With `return_attention_scores`, a tuple of this output and the attention weights,
            {"self" [B, heads, T, T], "memory" [B, heads, T, S]}.

        Raises:
            ValueError: if the layer was built with a memory but is called without one, or vice versa; a tensor does
                not have three axes; or a mask holds floats: see `check_masks`.
        """
        check_masks(attention_mask=attention_mask, memory_mask=memory_mask, mask=mask)
        check_sequences(memory=memory)
        if (self.cross_attention is None) != (memory is None):
            built, called = ("without", "with") if self.cross_attention is None else ("with", "without")
            raise ValueError(f"{self.name} was built {built} a `memory`, but is called {called} `memory`.")
        is_causal = attention_mask is None
        attention_mask = _with_keys(attention_mask, mask, inputs)
        options = {"training": training, "return_attention_scores": return_attention_scores}
        masks = {"attention_mask": attention_mask, "use_causal_mask": is_causal}
        x = self.self_attention(inputs, **masks, context=context, **options)
        scores = {}
        if return_attention_scores:
            x, scores["self"] = x
        if self.cross_attention is not None:
            x = self.cross_attention(x, value=memory, attention_mask=_with_queries(memory_mask), **options)
            if return_attention_scores:
                x, scores["memory"] = x
        x = self._fed_forward(x, context, training)
        return (x, scores) if return_attention_scores else x
