"""English to Spanish (tensor2tensor's translate_enes.py)."""

from t2t_lite import registry
from t2t_lite.data.problem import VocabType
from t2t_lite.problems.wmt_corpora import CorporaProblem


class _Enes(CorporaProblem):
    """WMT13's corpora and ParaCrawl; newstest2013 while training."""

    language_pair = ("en", "es")
    train_corpora = ("commoncrawl", "europarl_v7", "un", "paracrawl_1")


@registry.register_problem
class TranslateEnesWmt32k(_Enes):
    """32,768 pieces, which both languages share."""

    approx_vocab_size = 2**15


@registry.register_problem
class TranslateEnesWmt8k(_Enes):
    """8,192 pieces, for small models."""

    approx_vocab_size = 2**13


@registry.register_problem
class TranslateEnesWmtCharacters(_Enes):
    """UTF-8 bytes."""

    vocab_type = VocabType.CHARACTER
