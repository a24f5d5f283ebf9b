"""English to Romanian (tensor2tensor's translate_enro.py)."""

from t2t_lite import registry
from t2t_lite.data.problem import VocabType
from t2t_lite.problems.wmt_corpora import CorporaProblem


class _Enro(CorporaProblem):
    """About 614,000 pairs; newsdev2016 while training."""

    language_pair = ("en", "ro")
    train_corpora = ("europarl_v7_ro", "setimes_ro")
    dev_corpora = ("newsdev2016",)


@registry.register_problem
class TranslateEnroWmt32k(_Enro):
    """32,768 pieces, which both languages share."""

    approx_vocab_size = 2**15


@registry.register_problem
class TranslateEnroWmt8k(_Enro):
    """8,192 pieces, for small models."""

    approx_vocab_size = 2**13


@registry.register_problem
class TranslateEnroWmtCharacters(_Enro):
    """UTF-8 bytes."""

    vocab_type = VocabType.CHARACTER
