"""The residual connection with its normalization around a sub-layer (paper, section 3.1)."""

import inspect

import keras
from keras import ops

from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import check_positive, check_rates, check_required_layers
from t2t_lite.layers.dropout import Dropout
from t2t_lite.layers.masks import check_masks
from t2t_lite.layers.normalization import LayerNormalization


@keras.saving.register_keras_serializable("t2t_lite")
class Residual(Layer):
    """Wraps a layer: LayerNorm(x + Dropout(layer(x))), the paper's post-norm, or x + Dropout(layer(LayerNorm(x))).

    Arguments of attention go to the wrapped layer. Where that returns a tuple, the connection is made
    around its first element and the rest is passed on. One that needs a `value`, as `keras.layers.MultiHeadAttention`
    does, gets its first input again where there is no second one.

    Args:
        layer: the sub-layer; its output must have the shape of its first input.
        norm: "post" (the paper; tensor2tensor's sequences "none", "dan") or "pre" ("n", "da").
        dropout: float in [0, 1), on the sub-layer's output.
        norm_epsilon: float, added to the variance.

    Raises:
        ValueError: `norm` is neither "post" nor "pre", the rate is outside [0, 1), or `norm_epsilon` is not above 0.
    """

    def __init__(
        self, layer: keras.layers.Layer, norm: str = "post", dropout: float = 0.0, norm_epsilon: float = 1e-5, **kwargs
    ):
        super().__init__(**kwargs)
        if norm not in ("post", "pre"):
            raise ValueError(f"`norm` must be 'post' or 'pre': received norm={norm!r}.")
        check_rates(dropout=dropout)
        check_positive(norm_epsilon=norm_epsilon)
        check_required_layers(layer=layer)
        self.layer = layer
        value = inspect.signature(layer.call).parameters.get("value")
        self.needs_value = value is not None and value.default is value.empty
        self.norm = norm
        self.dropout_rate = dropout
        self.normalization = LayerNormalization(epsilon=norm_epsilon, dtype=self.dtype_policy, name="normalization")
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.supports_masking = True

    def build(self, inputs_shape, value_shape=None):
        """Builds the wrapped layer and the normalization. `value_shape`: of a second input such as a memory."""
        if not self.layer.built:
            if value_shape is None and self.needs_value:
                value_shape = inputs_shape
            self.layer.build(*(s for s in (inputs_shape, value_shape) if s is not None))
        self.normalization.build(inputs_shape)
        self.require_size(inputs_shape)

    def call(
        self,
        inputs,
        value=None,
        attention_mask=None,
        use_causal_mask=None,
        context=None,
        return_attention_scores=None,
        training=None,
    ):
        """Returns what the wrapped layer returns, its first element replaced by the connection's output.

        Args:
            inputs: [..., hidden].
            value, attention_mask, use_causal_mask, return_attention_scores: passed to the wrapped layer where given,
                see `MultiHeadAttention.call`. (By name: Keras refuses tensors in `**kwargs`.)
            context: None, or `Context`, passed to a wrapped layer that takes one.
            training: bool.
        """
        check_masks(attention_mask=attention_mask)
        if context is not None and self.norm == "pre":
            context = context.normalized(self.normalization)
        options = {
            "attention_mask": attention_mask,
            "use_causal_mask": use_causal_mask,
            "return_attention_scores": return_attention_scores,
        }
        options = {name: option for name, option in options.items() if option is not None}
        options |= {} if context is None else context.handed_to(self.layer)

        def run(x):
            second = x if value is None and self.needs_value else value
            return self.layer(x, training=training, **options, **({} if second is None else {"value": second}))

        return self.around(run, inputs, training)

    def around(self, function, inputs, training=False):
        """Makes the connection around a function of [..., hidden], such as a method of the wrapped layer."""
        output = function(self.normalization(inputs) if self.norm == "pre" else inputs)
        output, rest = (output[0], output[1:]) if isinstance(output, tuple) else (output, None)
        output = self.dropout(output, training=training)
        # Not `ops.add`, which takes an input without positions, [1, 0, hidden], for a bias and fails.
        output = ops.cast(inputs, output.dtype) + output  # which may be integers
        if self.norm == "post":
            output = self.normalization(output)
        return output if rest is None else (output, *rest)
