"""The task of predicting pieces of texts in random orders."""

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.tasks.masked_language_model import MaskedLanguageModelTask


@registry.register_task("permutation_language_model")
class PermutationLanguageModelTask(MaskedLanguageModelTask):
    """Words predicted in an order. Answers are those of masked words: no mask is seen from another one."""

    model = "xlnet"
    needed_features = ("order",)

    @staticmethod
    def fit_labels(batch, features):
        """See `Task`: the predicted ids, of which models give the logits."""
        return tf.boolean_mask(batch["targets"], batch["targets"] != 0)
