"""English to French on WMT14 (the paper, section 5.1; tensor2tensor's translate_enfr.py)."""

from t2t_lite import registry
from t2t_lite.data.problem import VocabType
from t2t_lite.problems.wmt_corpora import CorporaProblem


class _EnfrWmt14(CorporaProblem):
    """WMT14's 40.8 million pairs; newstest2013 while training, newstest2014 at the end."""

    language_pair = ("en", "fr")
    train_corpora = ("commoncrawl", "europarl_v7", "news_commentary_v9", "giga_fren", "un")
    test_corpora = ("newstest2014",)
    prepared_dataset = "wmt14_translate/fr-en"


class _EnfrSmall(CorporaProblem):
    """A million pairs of WMT14, and dev pairs of their own, as OpenNMT has drawn them; newstest2014 at the end."""

    language_pair = ("en", "fr")
    train_corpora = ("opennmt_1m_train",)
    dev_corpora = ("opennmt_1m_valid",)
    test_corpora = ("newstest2014",)


@registry.register_problem
class TranslateEnfrWmt32k(_EnfrWmt14):
    """The paper's size: 32,768 pieces, which both languages share."""

    approx_vocab_size = 2**15


@registry.register_problem
class TranslateEnfrWmt8k(_EnfrWmt14):
    """8,192 pieces, for small models."""

    approx_vocab_size = 2**13


@registry.register_problem
class TranslateEnfrWmtCharacters(_EnfrWmt14):
    """UTF-8 bytes."""

    vocab_type = VocabType.CHARACTER


@registry.register_problem
class TranslateEnfrWmtSmall32k(_EnfrSmall):
    """A million pairs, 32,768 pieces."""

    approx_vocab_size = 2**15


@registry.register_problem
class TranslateEnfrWmtSmall8k(_EnfrSmall):
    """A million pairs, 8,192 pieces."""

    approx_vocab_size = 2**13


@registry.register_problem
class TranslateEnfrWmtSmallCharacters(_EnfrSmall):
    """A million pairs, UTF-8 bytes."""

    vocab_type = VocabType.CHARACTER
