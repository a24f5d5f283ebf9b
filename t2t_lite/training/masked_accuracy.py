"""The accuracy of predicted tokens, for `model.compile(metrics=…)`."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("t2t_lite")
class MaskedAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """The share of non-padding tokens (padding is id 0) whose most probable id is correct.

    Masks of the logits are applied as well.

    Args:
        name, dtype: see `keras.metrics.Metric`.
    """

    def __init__(self, name="masked_accuracy", dtype=None):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch.

        Args:
            y_true: int ids [batch, target_len], 0 is padding.
            y_pred: float logits or probabilities [batch, target_len, V].
            sample_weight: [batch], [batch, 1] or [batch, target_len]; None: 1.
        """
        y_true = ops.convert_to_tensor(y_true)
        weights = ops.cast(ops.not_equal(y_true, 0), "float32")
        if sample_weight is not None:
            weights = weights * token_weights(sample_weight, y_true)
        return super().update_state(y_true, y_pred, weights)


def token_weights(sample_weight, targets):
    """Returns float32 weights per token, with the shape of `targets`, or None.

    Args:
        sample_weight: [batch] or [batch, 1], one for all tokens of a row; [batch, target_len]; or None.
        targets: ids [batch, target_len].
    """
    if sample_weight is None:
        return None
    sample_weight, targets = ops.cast(sample_weight, "float32"), ops.convert_to_tensor(targets)
    missing = len(targets.shape) - len(sample_weight.shape)
    sample_weight = ops.reshape(sample_weight, (*ops.shape(sample_weight), *[1] * missing))
    # A copy, not a view, because with PyTorch Keras multiplies weights by masks in place.
    return sample_weight * ops.ones(ops.shape(targets))
