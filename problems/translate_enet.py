"""English to Estonian on WMT18 (tensor2tensor's translate_enet.py)."""

from t2t_lite import registry
from t2t_lite.data.problem import VocabType
from t2t_lite.problems.wmt_corpora import CorporaProblem


class _Enet(CorporaProblem):
    """About 2.2 million pairs; newsdev2018 while training."""

    language_pair = ("en", "et")
    train_corpora = ("europarl_v8", "paracrawl_1", "rapid_2016")
    dev_corpora = ("newsdev2018",)


@registry.register_problem
class TranslateEnetWmt32k(_Enet):
    """32,768 pieces, which both languages share."""

    approx_vocab_size = 2**15


@registry.register_problem
class TranslateEnetWmtCharacters(_Enet):
    """UTF-8 bytes."""

    vocab_type = VocabType.CHARACTER
