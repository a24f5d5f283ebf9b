"""`permutation_lm_own`: models that learn from the user's own text files to predict words in random order (XLNet).

    t2t-datagen --problem=permutation_lm_own --train_files=a.txt --dev_files=b.txt --vocab_size=8000 --data_dir=D

Files, rows and vocabulary are those of `masked_lm_own`; an order is sampled each time that a batch is read.
"""

import types

from t2t_lite import registry
from t2t_lite.data.problem import VocabType
from t2t_lite.problems.languagemodel import LanguagemodelOwn
from t2t_lite.problems.masked_lm_own import MaskedLmOwn
from t2t_lite.problems.own_settings import own_settings


@registry.register_problem
class PermutationLmOwn(MaskedLmOwn):
    """The text files given to `configure`; a model predicts some of their words from the others, one by one.

    The mask of the vocabulary occurs in no text: `fill_mask` predicts the words in its place.
    """

    task = "permutation_language_model"
    features = types.MappingProxyType({"inputs": 2, "targets": 2, "order": 2})
    # The model adds one position: 512, as published.
    settings = own_settings(
        *LanguagemodelOwn.settings, sequence_length=511, vocab_type=VocabType.SUBWORD.value
    )  # fmt: skip

    def feature_encoders(self, data_dir):
        """See `Problem.feature_encoders`; inputs and targets share a vocabulary."""
        from t2t_lite.data.corruption import ordinary_ids
        from t2t_lite.extras.xlnet.permutation import Permutation

        encoder = LanguagemodelOwn.feature_encoders(self, data_dir)["targets"]
        self.permutation = Permutation(ordinary_ids(encoder.pieces(range(encoder.vocab_size))))
        return {"inputs": encoder, "targets": encoder}

    def corrupt(self, batch, seeds):
        """Returns all ids as inputs, the predicted ids as targets, and their order."""
        targets, order = self.permutation(batch["targets"], seeds)
        return {"inputs": batch["targets"], "targets": targets, "order": order}
