"""Losses and metrics: label-smoothed cross-entropy (paper, section 5.4), squared errors and masked accuracy."""

import math

import keras
from keras import ops

from t2t_lite.layers.checks import check_rates, may_be_equal
from t2t_lite.layers.encoder_heads import NEVER
from t2t_lite.layers.masks import with_mask
from t2t_lite.layers.token_embedding import check_ids
from t2t_lite.text.class_label_encoder import RealEncoder


def cross_entropy(logits, targets, label_smoothing=0.0, keeps_softmax=True):
    """Returns the training objective and the unsmoothed loss, summed over non-padding tokens; TensorFlow only.

    Smoothing assigns probability 1 - ε to the label and ε / (V - 1) to every other id. A constant is subtracted so that
    a perfect prediction has loss 0 (tensor2tensor's layers/common_layers.py, padded_cross_entropy). The classes of
    `ClassHead` are not smoothed: see `_smoothing`.

    Args:
        logits: float32 [batch, target_len, V]. In a graph, V may be unknown if label_smoothing is 0.
        targets: int32 [batch, target_len], where 0 is padding.
        label_smoothing: float, ε in [0, 1).
        keeps_softmax: bool, whether the softmax is stored for the gradient: see `_fused_losses`.

    Returns:
        (objective, nats), float32 scalars, which are sums over tokens. `nats` is not smoothed and has no gradient.
        Callers add the sums over replicas and accumulated batches, then divide once by the number of tokens.
    """
    import tensorflow as tf

    logits = tf.reshape(logits, (-1, logits.shape[-1] or tf.shape(logits)[-1]))
    labels = tf.reshape(targets, (-1,))
    weights = tf.cast(labels != 0, tf.float32)
    objective, nats = _fused_losses(logits, labels, label_smoothing, keeps_softmax)
    return tf.reduce_sum(objective * weights), tf.reduce_sum(tf.stop_gradient(nats) * weights)


def squared_error(logits, labels):
    """Returns the sum of squared errors, for numbers between 0 and 1; TensorFlow only.

    Args:
        logits: float32 [n, 1], the predicted numbers.
        labels: int [n], ids of a `RealEncoder`. Id 0 is not scored.

    Returns:
        float32 scalar.
    """
    import tensorflow as tf

    errors = logits[:, 0] - RealEncoder.place(tf.cast(labels, tf.float32))
    return tf.reduce_sum(tf.where(labels != 0, tf.square(errors), 0.0))


def _smoothing(logits, label_smoothing):
    """Returns (probability of the label, probability of each other id, their difference, entropy) after smoothing.

    Labels are not smoothed if id 0 is impossible, as with `ClassHead` and `SpanHead`. Even a tiny probability for id 0
    would give a loss of millions, and the gradients of the other ids would no longer sum to 0.
    """
    plain = 1.0, 0.0, 1.0, 0.0
    if not label_smoothing:
        return plain
    vocab_size = logits.shape[-1]
    high, low = 1.0 - label_smoothing, label_smoothing / (vocab_size - 1)
    entropy = -sum(n * p * math.log(p) for n, p in ((1, high), (vocab_size - 1, low)) if p > 0)
    is_smoothed = ops.all(ops.cast(logits[:, 0], "float32") > NEVER / 2)
    pairs = zip((high, low, high - low, entropy), plain, strict=True)
    return tuple(ops.where(is_smoothed, *(ops.cast(number, logits.dtype) for number in pair)) for pair in pairs)


def _fused_losses(logits, labels, label_smoothing, keeps_softmax=True):
    """Returns (objective [N], nats [N]) for float32 logits [N, V] and int32 labels [N], in TensorFlow.

    The objective is logsumexp(z) - (c - l) z[y] - l Σz, with c = 1 - ε and l = ε / (V - 1), minus the entropy. Only the
    softmax is stored for the gradient, which is softmax(z) minus the smoothed labels. The loss also uses the softmax:
    logsumexp(z) = max z - log max softmax(z). This saves passes over [N, V], the main cost of a loss. Scatter
    is avoided, because with deterministic operations it runs on the CPU.

    XLA computes e^z at no extra cost wherever it reads z, so with XLA the softmax is recomputed instead of stored. On
    25,000 tokens, the base model then writes and reads 3.7 GB less.
    """
    import tensorflow as tf

    vocab_size = logits.shape[-1] or tf.shape(logits)[-1]
    high, low, difference, entropy = _smoothing(logits, label_smoothing)

    @tf.custom_gradient
    def losses(z):
        if keeps_softmax:
            softmax = tf.nn.softmax(z)
            log_sum = tf.reduce_max(z, axis=-1) - tf.math.log(tf.reduce_max(softmax, axis=-1))
        else:
            log_sum = tf.reduce_logsumexp(z, axis=-1)
        at_label = tf.gather(z, labels, axis=1, batch_dims=1)
        objective = log_sum - difference * at_label - entropy
        if label_smoothing:
            objective = objective - tf.math.multiply_no_nan(tf.reduce_sum(z, axis=-1), low)

        def gradient(upstream, _):
            share = softmax if keeps_softmax else tf.exp(z - log_sum[:, None])
            return (share - tf.one_hot(labels, vocab_size, high, low, dtype=z.dtype)) * upstream[:, None]

        return (objective, log_sum - at_label), gradient

    return losses(logits)


def _losses(logits, labels, label_smoothing):
    """Returns the objective of `_fused_losses`, on any backend."""
    _, low, difference, entropy = _smoothing(logits, label_smoothing)
    at_label = ops.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    objective = ops.logsumexp(logits, axis=-1) - difference * at_label - entropy
    return objective - ops.where(low > 0, low * ops.sum(logits, axis=-1), 0.0) if label_smoothing else objective


@keras.saving.register_keras_serializable("t2t_lite")
class SmoothedCrossEntropy(keras.losses.Loss):
    """The label-smoothed training objective for `model.compile(loss=…)`, averaged over non-padding tokens.

    The logits' masks, sample weights and reductions work as in Keras' own losses. Padding (id 0) is also masked, as in
    `keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)`.

    Args:
        label_smoothing: float, ε in [0, 1). Only vocabulary ids are smoothed, not the classes of `ClassHead`.
        reduction: see `keras.losses.Loss`. "sum_over_batch_size" and "mean" divide by the number of unmasked tokens,
            and "mean_with_sample_weight" by the sum of their weights. "none" returns [batch, target_len], with 0 at
            padding.
        name, dtype: see `keras.losses.Loss`. Keras casts ids to `dtype`, so a vocabulary that is too large for this
            dtype is an error.

    Raises:
        ValueError: if label_smoothing is outside [0, 1), or the reduction is unknown.
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        reduction: str | None = "sum_over_batch_size",
        name: str = "smoothed_cross_entropy",
        dtype: str | None = None,
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        check_rates(label_smoothing=label_smoothing)
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Returns the loss of a batch, reduced as set by `reduction`.

        Args:
            y_true: int ids [batch, target_len], where 0 is padding.
            y_pred: float logits [batch, target_len, V].
            sample_weight: [batch] or [batch, 1], one weight for all tokens of a row, or [batch, target_len]. Defaults
                to 1.
        """
        return super().__call__(y_true, y_pred, token_weights(sample_weight, y_true))

    def call(self, y_true, y_pred):
        """Returns the loss of each token, [batch, target_len], with 0 at padding.

        Raises:
            ValueError: if the labels have the wrong shape, `dtype` is too small for the vocabulary, or (if the ids are
                known) an id is outside the vocabulary.
        """
        check_labels(y_true, y_pred)
        if len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] == 1:
            y_true = ops.squeeze(y_true, axis=-1)
        vocab_size = y_pred.shape[-1]  # None if the classes are positions in a text
        exact = {"bfloat16": 2**8, "float16": 2**11}.get(self.dtype, 2**24)
        if vocab_size is None and self.label_smoothing:
            raise ValueError(
                f"SmoothedCrossEntropy cannot smooth positions in a text: received label_smoothing="
                f"{self.label_smoothing}, expected 0."
            )
        if vocab_size is not None and vocab_size > exact:
            raise ValueError(
                f"SmoothedCrossEntropy with dtype={self.dtype} cannot represent ids above {exact:,}: received logits "
                f"of {vocab_size:,} ids. Remove `dtype`, or set it to 'float32'."
            )
        labels, logits = ops.reshape(ops.cast(y_true, "int32"), (-1,)), ops.reshape(y_pred, (-1, ops.shape(y_pred)[-1]))
        if vocab_size is not None:
            check_ids(labels, vocab_size)
        if keras.backend.backend() == "tensorflow":
            losses, _ = _fused_losses(logits, labels, self.label_smoothing)
        else:
            losses = _losses(logits, labels, self.label_smoothing)
        mask = ops.not_equal(y_true, 0)
        return with_mask(ops.where(mask, ops.reshape(losses, ops.shape(y_true)), 0.0), mask)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), "dtype": self.dtype, "label_smoothing": self.label_smoothing}


@keras.saving.register_keras_serializable("t2t_lite")
class MaskedAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """The proportion of non-padding tokens whose most probable id is correct; padding is id 0.

    Masks of the logits are applied as well.

    Args:
        name, dtype: see `keras.metrics.Metric`.
    """

    def __init__(self, name: str = "masked_accuracy", dtype: str | None = None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds the correct and total tokens of a batch to the accuracy.

        Args:
            y_true: int ids [batch, target_len], where 0 is padding.
            y_pred: float logits or probabilities [batch, target_len, V].
            sample_weight: [batch], [batch, 1] or [batch, target_len]. Defaults to 1.
        """
        y_true = ops.convert_to_tensor(y_true)
        check_labels(y_true, ops.convert_to_tensor(y_pred))  # `y_pred` itself may carry a mask
        weights = ops.cast(ops.not_equal(y_true, 0), "float32")
        if sample_weight is not None:
            weights = weights * token_weights(sample_weight, y_true)
        return super().update_state(y_true, y_pred, weights)


def check_labels(labels, logits):
    """Raises `ValueError` unless there is one label per row of logits [..., V]; a last axis of size 1 is allowed."""
    expected, shape = tuple(logits.shape[:-1]), tuple(labels.shape)
    if not may_be_equal(shape[:-1] if len(shape) > len(expected) and shape[-1] in (1, None) else shape, expected):
        hint = " Convert one-hot labels with argmax(axis=-1)." if may_be_equal(shape, logits.shape) else ""
        raise ValueError(
            f"The labels must be ids of shape {expected}, because the logits have shape {tuple(logits.shape)}: "
            f"received shape {shape}.{hint}"
        )


def token_weights(sample_weight, targets):
    """Returns float32 weights per token, with the shape of `targets`, or None.

    Args:
        sample_weight: [batch] or [batch, 1], one weight for all tokens of a row; [batch, target_len]; or None.
        targets: ids [batch, target_len], or classes [batch].

    Raises:
        ValueError: if the weights have another shape.
    """
    if sample_weight is None:
        return None
    sample_weight, targets = ops.cast(sample_weight, "float32"), ops.convert_to_tensor(targets)
    shape, missing = tuple(sample_weight.shape), len(targets.shape) - len(sample_weight.shape)
    if missing == -1 and shape[-1] in (1, None):  # weights [batch, 1] for classes [batch]
        sample_weight = ops.squeeze(sample_weight, axis=-1)
    broadcast = [None if size == 1 else size for size in sample_weight.shape]
    if not may_be_equal([*broadcast, *[None] * missing], targets.shape):
        raise ValueError(
            f"`sample_weight` must have the shape of the labels, {tuple(targets.shape)}, or [batch] or [batch, 1]: "
            f"received shape {shape}."
        )
    sample_weight = ops.reshape(sample_weight, (*ops.shape(sample_weight), *[1] * missing))
    # A copy, not a view, because Keras on the PyTorch backend multiplies weights by masks in place.
    return sample_weight * ops.ones(ops.shape(targets))
