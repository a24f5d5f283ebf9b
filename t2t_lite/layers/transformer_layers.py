"""The encoder's and the decoder's layer (paper, section 3.1)."""

import keras
from keras import ops

from t2t_lite.layers.attention import MultiHeadAttention, merge_masks
from t2t_lite.layers.checks import check_rates
from t2t_lite.layers.feed_forward import FeedForward
from t2t_lite.layers.keras_names import GLOROT, activation_config, initializer_config
from t2t_lite.layers.outputs import OutputsOnRequest
from t2t_lite.layers.relative_attention import RelativeAttention
from t2t_lite.layers.residual import Residual
from t2t_lite.layers.restricted_attention import RestrictedAttention

_INITIALIZERS = {"kernel_initializer": GLOROT, "bias_initializer": "zeros"}


class _TransformerLayer(OutputsOnRequest, keras.layers.Layer):
    """What encoder and decoder layers share: their options and how their sub-layers are made."""

    def __init__(
        self,
        num_heads,
        filter_size,
        key_dim=None,
        value_dim=None,
        dropout=0.1,
        attention_dropout=0.0,
        relu_dropout=0.0,
        norm="post",
        norm_epsilon=1e-5,
        attention_bias=False,
        activation="relu",
        max_relative_position=None,
        add_relative_to_values=False,
        neighborhood=None,
        attention_class=None,
        kernel_initializer=GLOROT,
        bias_initializer="zeros",
        **kwargs,
    ):
        options = {name: value for name, value in locals().items() if name not in ("self", "kwargs", "__class__")}
        super().__init__(**kwargs)
        self.options = {**options, "attention_class": _registered(attention_class)}
        self.supports_masking = True
        check_rates(dropout=dropout, attention_dropout=attention_dropout, relu_dropout=relu_dropout)
        if sum(option is not None for option in (max_relative_position, neighborhood, attention_class)) > 1:
            raise ValueError(
                "At most one of `max_relative_position`, `neighborhood` and `attention_class` can be given: received "
                f"{max_relative_position}, {neighborhood} and {attention_class}."
            )
        if add_relative_to_values and max_relative_position is None:
            raise ValueError("`add_relative_to_values` needs `max_relative_position`: received None.")
        # Made here, not in build: a bad option is refused where it is written.
        self.self_attention = self._residual(self._attention(for_self=True), "self_attention")
        network = FeedForward(
            filter_size,
            relu_dropout,
            activation,
            kernel_initializer,
            bias_initializer,
            dtype=self.dtype_policy,
            name="network",
        )
        self.feed_forward = self._residual(network, "feed_forward")

    def _residual(self, layer, name):
        o = self.options
        return Residual(layer, o["norm"], o["dropout"], o["norm_epsilon"], dtype=self.dtype_policy, name=name)

    def _attention(self, for_self):
        o = self.options
        common = {
            "num_heads": o["num_heads"],
            "key_dim": o["key_dim"],
            "value_dim": o["value_dim"],
            "dropout": o["attention_dropout"],
            "use_bias": o["attention_bias"],
            "dtype": self.dtype_policy,
            "name": "attention",
            # Only where it is asked for: an `attention_class` of a user's may not know of it.
            **{name: o[name] for name, default in _INITIALIZERS.items() if o[name] != default},
        }
        if for_self and o["max_relative_position"] is not None:
            return RelativeAttention(
                max_relative_position=o["max_relative_position"],
                add_relative_to_values=o["add_relative_to_values"],
                **common,
            )
        if for_self and o["neighborhood"] is not None:
            return RestrictedAttention(neighborhood=o["neighborhood"], **common)
        return (o["attention_class"] or MultiHeadAttention)(**common)

    def get_config(self):
        """Returns the constructor's arguments; `attention_class` by its registered name."""
        attention_class = self.options["attention_class"]
        name = None if attention_class is None else keras.saving.get_registered_name(attention_class)
        return {
            **super().get_config(),
            **self.options,
            "activation": activation_config(self.options["activation"]),
            "attention_class": name,
            **{name: initializer_config(self.options[name]) for name in _INITIALIZERS},
        }


def _registered(attention_class):
    """Returns a class, given it or the name under which Keras knows it."""
    if not isinstance(attention_class, str):
        return attention_class
    found = keras.saving.get_registered_object(attention_class)
    if found is None:
        raise ValueError(
            f"`attention_class` {attention_class!r} is not registered: decorate the class with "
            "@keras.saving.register_keras_serializable() and import its module first."
        )
    return found


@keras.saving.register_keras_serializable("t2t_lite")
class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and feed-forward network, each in its residual connection.

    Args:
        num_heads: int, h.
        filter_size: int, d_ff.
        key_dim, value_dim: int, d_k and d_v; None: hidden size / num_heads.
        dropout: float, on the output of each sub-layer.
        attention_dropout: float, on the attention weights (0 in the paper).
        relu_dropout: float, on the feed-forward network's inner activations (0 in the paper).
        norm: "post" (the paper) or "pre".
        norm_epsilon: float.
        attention_bias: bool, biases in the attention's projections.
        activation: "relu", "gelu", "swish", "swiglu", or what else `FeedForward` takes.
        max_relative_position: int: self-attention with relative positions, see `RelativeAttention`; None: without.
        add_relative_to_values: bool, of `RelativeAttention`.
        neighborhood: int, r: self-attention restricted to r positions, see `RestrictedAttention`; None: to none.
        attention_class: a subclass of `MultiHeadAttention` to use instead, or the name under which it is registered
            with Keras (which saving needs).
        kernel_initializer, bias_initializer: of all dense layers: see `keras.layers.Dense`.

    Raises:
        ValueError: an option is out of its range, or several kinds of attention are asked for at once.
    """

    def build(self, inputs_shape):
        """Builds the sub-layers."""
        self.self_attention.build(inputs_shape)
        self.feed_forward.build(inputs_shape)

    def call(self, inputs, attention_mask=None, return_attention_scores=False, training=None, mask=None):
        """Encodes.

        Args:
            inputs: [B, S, hidden].
            attention_mask: bool [B, S, S] or [B, 1, S], True where visible; see `MultiHeadAttention.call`.
            return_attention_scores: bool.
            training: bool.
            mask: bool [B, S], the mask that Keras carries with `inputs`; hides positions beside `attention_mask`.

        Returns:
            [B, S, hidden]; with `return_attention_scores` also the weights [B, heads, S, S].
        """
        if mask is not None:
            batch, length, _ = ops.shape(inputs)
            attention_mask = merge_masks(
                (batch, self.options["num_heads"], length, length), attention_mask, False, mask
            )
        attended = self.self_attention(
            inputs, attention_mask=attention_mask, return_attention_scores=return_attention_scores, training=training
        )
        if not return_attention_scores:
            return self.feed_forward(attended, training=training)
        return self.feed_forward(attended[0], training=training), attended[1]

    def compute_output_shape(self, inputs_shape):
        """Returns `inputs_shape`."""
        return inputs_shape


@keras.saving.register_keras_serializable("t2t_lite")
class TransformerDecoderLayer(_TransformerLayer):
    """Masked self-attention, attention to the encoder's output, feed-forward network.

    Args: as `TransformerEncoderLayer`; `max_relative_position` and `neighborhood` are of the self-attention alone.
    """

    def build(self, inputs_shape, memory_shape=None):
        """Builds the sub-layers; without a memory there is no cross-attention (a language model's layer)."""
        self.self_attention.build(inputs_shape)
        self.cross_attention = None
        if memory_shape is not None:
            self.cross_attention = self._residual(self._attention(for_self=False), "cross_attention")
            self.cross_attention.build(inputs_shape, memory_shape)
        self.feed_forward.build(inputs_shape)

    def init_cache(self, memory, empty_key, empty_value):
        """Returns the cache of this layer for `call`: the memory projected once, and no past.

        Args:
            memory: [B, S, hidden], the encoder's output; None for a layer without cross-attention.
            empty_key, empty_value: [B, heads, slots, key_dim or value_dim], zeros.
        """
        cache = {"self": {"key": empty_key, "value": empty_value}}
        if memory is not None:
            cache["memory"] = self.cross_attention.layer.memory_cache(memory)
        return cache

    def call(
        self,
        inputs,
        memory=None,
        attention_mask=None,
        memory_mask=None,
        cache=None,
        position=None,
        return_attention_scores=False,
        training=None,
    ):
        """Decodes.

        Args:
            inputs: [B, T, hidden].
            memory: [B, S, hidden], the encoder's output; not needed with a `cache`.
            attention_mask: bool, which positions see which; None: earlier ones and itself.
            memory_mask: bool [B, T, S] or [B, 1, S], True where the memory is visible; or [B, S], as Keras carries it.
            cache: from `init_cache` or an earlier call: T positions (or beams) of one step are decoded and added.
            position: int scalar, where in the cache, see `MultiHeadAttention.call`.
            return_attention_scores: bool.
            training: bool.

        Returns:
            [B, T, hidden]; with `return_attention_scores` also {"self" [B, heads, T, T], "memory" [B, heads, T, S]};
            with a `cache` also the new cache; as a tuple when there is more than the output.
        """
        options = {"training": training, "return_attention_scores": return_attention_scores}
        scores, new_cache = {}, None if cache is None else dict(cache)

        def attend(name, layer, x, **kwargs):
            output = layer(x, cache=None if cache is None else cache[name], **options, **kwargs)
            if not isinstance(output, tuple):
                return output
            output = list(output)
            if cache is not None:
                new_cache[name] = output.pop()
            if return_attention_scores:
                scores[name] = output.pop()
            return output[0]

        x = attend(
            "self",
            self.self_attention,
            inputs,
            attention_mask=attention_mask,
            use_causal_mask=attention_mask is None and cache is None,
            position=position,
        )
        if self.cross_attention is not None:
            if memory_mask is not None and len(memory_mask.shape) == 2:
                memory_mask = memory_mask[:, None, :]
            x = attend("memory", self.cross_attention, x, value=memory, attention_mask=memory_mask)
        x = self.feed_forward(x, training=training)
        results = (x, *([scores] if return_attention_scores else []), *([new_cache] if cache is not None else []))
        return results if len(results) > 1 else x

    def compute_output_shape(self, inputs_shape, memory_shape=None):
        """Returns `inputs_shape`."""
        return inputs_shape
