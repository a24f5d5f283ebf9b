"""`permutation_lm_own`: predicts words of the user's own text files in random order (XLNet).

    t2t-datagen --problem=permutation_lm_own --train_files=a.txt --dev_files=b.txt --vocab_size=8000 --data_dir=D

Files, rows and vocabulary are the same as for `masked_lm_own`. A new order is sampled whenever a batch is read.
"""

import types

from t2t_lite import registry
from t2t_lite.data.problem import VocabType
from t2t_lite.problems.languagemodel import LanguagemodelOwn
from t2t_lite.problems.masked_lm_own import MaskedLmOwn
from t2t_lite.problems.own_settings import own_settings


@registry.register_problem
class PermutationLmOwn(MaskedLmOwn):
    """Predicts some words of a text, one by one, from the other words. The texts are the user's own files.

    The vocabulary's mask token does not occur in training texts; `fill_mask` predicts the words at mask tokens.
    """

    task = "permutation_language_model"
    features = types.MappingProxyType({"inputs": 2, "targets": 2, "order": 2})
    # The model adds one position, for a total of 512 as published.
    settings = own_settings(
        *LanguagemodelOwn.settings, sequence_length=511, vocab_type=VocabType.SUBWORD.value
    )  # fmt: skip

    def feature_encoders(self, data_dir):
        """Returns one encoder for both inputs and targets: see `Problem.feature_encoders`."""
        from t2t_lite.data.corruption import ordinary_ids
        from t2t_lite.extras.xlnet.permutation import Permutation

        encoder = LanguagemodelOwn.feature_encoders(self, data_dir)["targets"]
        self.permutation = Permutation(ordinary_ids(encoder.pieces(range(encoder.vocab_size))))
        return {"inputs": encoder, "targets": encoder}

    def corrupt(self, batch, seeds):
        """Returns all ids as inputs, the ids to predict as targets, and their order."""
        targets, order = self.permutation(batch["targets"], seeds)
        return {"inputs": batch["targets"], "targets": targets, "order": order}
