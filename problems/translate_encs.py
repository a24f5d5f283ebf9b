"""English to Czech (tensor2tensor's translate_encs.py)."""

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, VocabType
from t2t_lite.problems.wmt_corpora import CZENG_1_6, CorporaProblem


class _Encs(CorporaProblem):
    """CzEng 1.6 and WMT's corpora; newstest2013 while training."""

    language_pair = ("en", "cs")
    train_corpora = ("news_commentary_v13", "commoncrawl", "europarl_v7")

    def source_data_files(self, dataset_split):
        """See `TranslateProblem.source_data_files`."""
        first = [CZENG_1_6] if dataset_split == DatasetSplit.TRAIN else []
        return [*first, *super().source_data_files(dataset_split)]


@registry.register_problem
class TranslateEncsWmt32k(_Encs):
    """32,768 pieces, which both languages share."""

    approx_vocab_size = 2**15


@registry.register_problem
class TranslateEncsWmtCharacters(_Encs):
    """UTF-8 bytes."""

    vocab_type = VocabType.CHARACTER
