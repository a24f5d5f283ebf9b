"""English to Macedonian (tensor2tensor's translate_enmk.py)."""

from t2t_lite import registry
from t2t_lite.data.problem import VocabType
from t2t_lite.problems.wmt_corpora import CorporaProblem


class _Enmk(CorporaProblem):
    """SETimes; MULTEXT-East's "1984" (4,986 pairs) while training."""

    language_pair = ("en", "mk")
    train_corpora = ("setimes_mk",)
    dev_corpora = ("mte_1984_mk",)


@registry.register_problem
class TranslateEnmkSetimes32k(_Enmk):
    """32,768 pieces, which both languages share."""

    approx_vocab_size = 2**15


@registry.register_problem
class TranslateEnmkSetimesCharacters(_Enmk):
    """UTF-8 bytes."""

    vocab_type = VocabType.CHARACTER
