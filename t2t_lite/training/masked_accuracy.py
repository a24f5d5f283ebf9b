"""The accuracy of predicted tokens, for `model.compile(metrics=…)`."""

import keras
from keras import ops

from t2t_lite.training.tokens import token_weights


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
