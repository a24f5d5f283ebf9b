"""English to German on WMT14 (the paper, section 5.1; tensor2tensor's translate_ende.py)."""

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, VocabType
from t2t_lite.problems.wmt_corpora import PARACRAWL_4, CorporaProblem


class _EndeWmt14(CorporaProblem):
    """WMT14's 4.5 million pairs; newstest2013 while training, newstest2014 at the end."""

    language_pair = ("en", "de")
    train_corpora = ("europarl_v7", "commoncrawl", "news_commentary_v9")
    test_corpora = ("newstest2014",)
    prepared_dataset = "wmt14_translate/de-en"


@registry.register_problem
class TranslateEndeWmt37k(_EndeWmt14):
    """The paper's: about 37,000 pieces, which both languages share."""

    approx_vocab_size = 37000


class _EndeUnderOldName(_EndeWmt14):
    differs_from_tensor2tensor = (
        "these are WMT14's corpora (Europarl v7, Common Crawl, News Commentary v9); tensor2tensor's problem of this "
        "name had News Commentary v13, so results are not the same"
    )


@registry.register_problem
class TranslateEndeWmt32k(_EndeUnderOldName):
    """tensor2tensor's name for 32,768 pieces."""

    approx_vocab_size = 2**15


@registry.register_problem
class TranslateEndeWmt8k(_EndeUnderOldName):
    """8,192 pieces, for small models."""

    approx_vocab_size = 2**13


@registry.register_problem
class TranslateEndeWmtCharacters(_EndeUnderOldName):
    """UTF-8 bytes."""

    vocab_type = VocabType.CHARACTER


@registry.register_problem
class TranslateEndePc32k(CorporaProblem):
    """ParaCrawl release 4 alone, with the vocabulary of `translate_ende_wmt32k`."""

    language_pair = ("en", "de")
    use_vocab_from_other_problem = TranslateEndeWmt32k()
    test_corpora = ("newstest2014",)

    def source_data_files(self, dataset_split):
        """See `TranslateProblem.source_data_files`."""
        last = [PARACRAWL_4] if dataset_split == DatasetSplit.TRAIN else []
        return [*super().source_data_files(dataset_split), *last]


@registry.register_problem
class TranslateEndeWmtPc32k(TranslateEndePc32k):
    """WMT14's corpora and ParaCrawl release 4, with the vocabulary of `translate_ende_wmt32k`."""

    train_corpora = _EndeUnderOldName.train_corpora
    differs_from_tensor2tensor = _EndeUnderOldName.differs_from_tensor2tensor
