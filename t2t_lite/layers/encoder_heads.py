"""Heads that predict masked ids, classes and spans from an encoder's output (Devlin et al. 2019, "BERT")."""

from collections.abc import Callable

import keras
from keras import ops

from t2t_lite.layers.base import Initializer, Layer, activation_function, own_initializer
from t2t_lite.layers.checks import check_positive, check_rates, check_required_sizes
from t2t_lite.layers.dense import Dense
from t2t_lite.layers.dropout import Dropout
from t2t_lite.layers.masks import check_masks
from t2t_lite.layers.residual import LayerNormalization

NEVER = -1e9  # the logit of impossible ids; not infinite, so that no gradient is NaN
LOWEST = -1e4  # replaces masked states before a maximum; lower than any hidden state, and finite in float16


@keras.saving.register_keras_serializable("t2t_lite")
class MaskedIdsHead(Layer):
    """The head for masked ids, which consists of a dense layer, an activation and a normalization.

    A tied embedding then computes the logits from the head's outputs.

    Args:
        size: int, the size of the outputs, which must equal the size of the embeddings.
        activation: the activation after the dense layer: see `FeedForward`.
        epsilon: float, added to the variance in the normalization.
        kernel_initializer: initializer of the dense layer.
    """

    def __init__(
        self,
        size: int,
        activation: str | Callable = "gelu",
        epsilon: float = 1e-12,
        kernel_initializer: Initializer = "glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_required_sizes(size=size)
        self.size = size
        check_positive(epsilon=epsilon)
        self.activation = activation_function(activation)
        common = {"dtype": self.dtype_policy}
        self.dense = Dense(size, kernel_initializer=own_initializer(kernel_initializer), name="dense", **common)
        self.norm = LayerNormalization(epsilon=epsilon, name="norm", **common)

    def build(self, input_shape):
        """Creates the weights for inputs [..., hidden]."""
        self.require_size(input_shape)
        self.dense.build(input_shape)
        self.norm.build(self.compute_output_shape(input_shape))

    def call(self, inputs):
        """Computes the outputs, [..., hidden] -> [..., size]."""
        return self.norm(self.activation(self.dense(inputs)))

    def compute_output_shape(self, input_shape):
        """Returns the shape of the outputs, [..., size]."""
        return (*input_shape[:-1], self.size)


@keras.saving.register_keras_serializable("t2t_lite")
class ClassHead(Layer):
    """The head for classification: logits of classes 1 to C. Class 0 means "no class" and always has probability 0.

    Args:
        num_classes: int, C.
        pooler: bool, whether the head begins with a dense layer and an activation (BERT's pooler), to classify texts.
        dropout: float, the dropout rate before the last dense layer.
        kernel_initializer: initializer of the dense layers.
        pooler_activation: the activation of the pooler: see `FeedForward`.
    """

    def __init__(
        self,
        num_classes: int,
        pooler: bool = False,
        dropout: float = 0.1,
        kernel_initializer: Initializer = "glorot_uniform",
        pooler_activation: str | Callable = "tanh",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_required_sizes(num_classes=num_classes)
        self.num_classes, self.has_pooler, self.kernel_initializer = num_classes, pooler, kernel_initializer
        self.pooler, self.pooler_activation = None, activation_function(pooler_activation, "pooler_activation")
        check_rates(dropout=dropout)
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = self._dense(num_classes, name="dense")

    def _dense(self, size, **options):
        initializer = own_initializer(self.kernel_initializer)
        return Dense(size, kernel_initializer=initializer, dtype=self.dtype_policy, **options)

    def build(self, input_shape):
        """Creates the weights for inputs [..., hidden]."""
        self.require_size(input_shape)
        if self.has_pooler:
            self.pooler = self._dense(input_shape[-1], activation=self.pooler_activation, name="pooler")
            self.pooler.build(input_shape)
        self.dense.build(input_shape)

    def call(self, inputs, training=None):
        """Computes the logits, [..., hidden] -> float32 [..., 1 + num_classes]."""
        x = inputs if self.pooler is None else self.pooler(inputs)
        logits = ops.cast(self.dense(self.dropout(x, training=training)), "float32")
        return ops.concatenate([ops.full_like(logits[..., :1], NEVER), logits], axis=-1)

    def compute_output_shape(self, input_shape):
        """Returns the shape of the logits, [..., 1 + num_classes]."""
        return (*input_shape[:-1], 1 + self.num_classes)

    def compute_output_spec(self, inputs, training=None):
        """Returns symbolic logits, float32 whatever the dtype policy."""
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype="float32")


@keras.saving.register_keras_serializable("t2t_lite")
class SpanHead(Layer):
    """The head for spans: logits of a span's first and last position (BERT, section 4.2).

    Args:
        kernel_initializer: initializer of the dense layer.
    """

    def __init__(self, kernel_initializer: Initializer = "glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.input_spec = keras.InputSpec(ndim=3)
        common = {"kernel_initializer": own_initializer(kernel_initializer), "dtype": self.dtype_policy}
        self.dense = Dense(2, name="dense", **common)

    def build(self, inputs_shape):
        """Creates the weights for inputs [B, T, hidden]."""
        self.require_size(inputs_shape)
        self.dense.build(inputs_shape)

    def call(self, inputs, allowed):
        """Computes the logits.

        Args:
            inputs: [B, T, hidden].
            allowed: bool [B, T], the positions where an answer may begin or end.

        Returns:
            float32 [B, 2, 1 + T]. Id n + 1 stands for position n, and id 0 means "no span".

        Raises:
            ValueError: if `allowed` holds floats: see `check_masks`.
        """
        check_masks(allowed=allowed)
        logits = ops.transpose(ops.cast(self.dense(inputs), "float32"), (0, 2, 1))
        logits = ops.where(ops.expand_dims(allowed, 1), logits, NEVER)
        return ops.pad(logits, ((0, 0), (0, 0), (1, 0)), constant_values=NEVER)

    def compute_mask(self, inputs, mask=None):
        """Returns None, because a mask of positions does not apply to the logits."""

    def compute_output_shape(self, inputs_shape, allowed_shape=None):
        """Returns the shape of the logits, [B, 2, 1 + T]."""
        rows, length, _ = inputs_shape
        return rows, 2, None if length is None else 1 + length

    def compute_output_spec(self, inputs, allowed):
        """Returns symbolic logits, float32 whatever the dtype policy."""
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype="float32")


def mean_and_maximum(x, mask):
    """Concatenates the mean and maximum over unmasked positions: [B, T, n] -> [B, 2 n] (ULMFiT, section 3.3).

    The mask is bool [B, T]. If all positions are masked, the mean and the maximum are zero.
    """
    x = ops.pad(x, ((0, 0), (1, 0), (0, 0)))
    mask = ops.concatenate([~ops.any(mask, axis=1, keepdims=True), mask], axis=1)
    wide = keras.backend.result_type(x.dtype, "float32")  # 16 bits cannot hold the sum of a long text
    is_there = ops.expand_dims(ops.cast(mask, wide), -1)
    mean = ops.sum(ops.cast(x, wide) * is_there, axis=1) / ops.sum(is_there, axis=1)
    # `max` is not used, because its gradient in JAX compares x with the result, and XLA may compute x twice with
    # different rounding. `argmax` is not used, because Keras reinterprets floats as bits for it, which LiteRT lacks.
    by_channel = ops.swapaxes(ops.where(ops.expand_dims(mask, -1), x, LOWEST), 1, 2)
    highest = ops.top_k(by_channel, 1)[0][..., 0]
    return ops.concatenate([ops.cast(mean, x.dtype), highest], axis=-1)
