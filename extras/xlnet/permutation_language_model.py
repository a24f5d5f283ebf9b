"""The task of predicting the pieces of a text in random order."""

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.tasks.masked_language_model import MaskedLanguageModelTask


@registry.register_task("permutation_language_model")
class PermutationLanguageModelTask(MaskedLanguageModelTask):
    """Predicts words in random order in training, and answers like the masked language model.

    Masks do not see each other.
    """

    model = "xlnet"
    needed_features = ("order",)

    @staticmethod
    def fit_labels(batch, features):
        """Returns the ids to predict, for which models return logits: see `Task`."""
        return tf.boolean_mask(batch["targets"], batch["targets"] != 0)
