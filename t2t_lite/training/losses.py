"""Label-smoothed cross-entropy (paper, section 5.4), in closed form."""

import math

import keras
import tensorflow as tf


def cross_entropy(logits, targets, label_smoothing=0.0):
    """Sums of the training objective and of the plain loss over the tokens that are not padding.

    The smoothing gives 1 - ε to the label and ε / (V - 1) to every other id, less the constant that makes a perfect
    prediction score 0 (tensor2tensor's layers/common_layers.py, padded_cross_entropy).

    Args:
        logits: float32 [batch, target_len, V].
        targets: int32 [batch, target_len], 0 is padding.
        label_smoothing: float, ε in [0, 1).

    Returns:
        (objective, nats): float32 scalars, sums over tokens; `nats` is without smoothing and carries no gradient. Add
        them over replicas and accumulated batches, then divide once by the number of tokens.
    """
    logits = tf.reshape(logits, (-1, logits.shape[-1]))
    labels = tf.reshape(targets, (-1,))
    weights = tf.cast(labels != 0, tf.float32)
    objective, nats = _token_losses(logits, labels, label_smoothing)
    return tf.reduce_sum(objective * weights), tf.reduce_sum(tf.stop_gradient(nats) * weights)


def _token_losses(logits, labels, label_smoothing):
    """float32 [N, V], int32 [N] -> (objective [N], nats [N]).

    logsumexp(z) - (c - l) z[y] - l Σz, with c = 1 - ε and l = ε / (V - 1). For the gradient, softmax(z) less the
    smoothed labels, the softmax alone is kept; logsumexp(z) = max z - log max softmax(z) follows from it. Passes over
    [N, V] are what a loss costs. No scatter: on a GPU that can be repeated it would run on the CPU.
    """
    vocab_size = logits.shape[-1]
    high, low = 1.0 - label_smoothing, label_smoothing / (vocab_size - 1)
    entropy = -sum(n * p * math.log(p) for n, p in ((1, high), (vocab_size - 1, low)) if p > 0)

    @tf.custom_gradient
    def losses(z):
        softmax = tf.nn.softmax(z)
        log_sum = tf.reduce_max(z, axis=-1) - tf.math.log(tf.reduce_max(softmax, axis=-1))
        at_label = tf.gather(z, labels, axis=1, batch_dims=1)
        objective = log_sum - (high - low) * at_label - entropy
        if low:
            objective = objective - low * tf.reduce_sum(z, axis=-1)

        def gradient(upstream, _):
            return (softmax - tf.one_hot(labels, vocab_size, high, low, dtype=z.dtype)) * upstream[:, None]

        return (objective, log_sum - at_label), gradient

    return losses(logits)


@keras.saving.register_keras_serializable("t2t_lite")
class SmoothedCrossEntropy(keras.losses.Loss):
    """The training objective for `model.compile(loss=…)`: mean over the tokens that are not padding.

    Args:
        label_smoothing: float, ε in [0, 1).
    """

    def __init__(self, label_smoothing=0.1, name="smoothed_cross_entropy", **kwargs):
        super().__init__(name=name, reduction=None, **kwargs)
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"`label_smoothing` must be in [0, 1): received label_smoothing={label_smoothing}.")
        self.label_smoothing = label_smoothing

    def call(self, y_true, y_pred):
        """int ids [batch, target_len], float32 logits [batch, target_len, V] -> scalar."""
        objective, _ = cross_entropy(y_pred, tf.cast(y_true, tf.int32), self.label_smoothing)
        return objective / tf.maximum(tf.reduce_sum(tf.cast(y_true != 0, tf.float32)), 1.0)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {"name": self.name, "dtype": self.dtype, "label_smoothing": self.label_smoothing}
