"""The task of predicting the pieces of texts in random order."""

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.tasks.masked_language_model import MaskedLanguageModelTask


@registry.register_task("permutation_language_model")
class PermutationLanguageModelTask(MaskedLanguageModelTask):
    """Predicts words in a given order. Answers are those for masked words; a mask does not see the other masks."""

    model = "xlnet"
    needed_features = ("order",)

    @staticmethod
    def fit_labels(batch, features):
        """See `Task`: the ids to predict, for which models return logits."""
        return tf.boolean_mask(batch["targets"], batch["targets"] != 0)
