"""English to Setswana (tensor2tensor's translate_entn.py)."""

from t2t_lite import registry
from t2t_lite.problems.wmt_corpora import CorporaProblem


@registry.register_problem
class TranslateEntnRma(CorporaProblem):
    """The Autshumato corpus."""

    language_pair = ("en", "tn")
    train_corpora = ("autshumato_tn",)
    dev_corpora = ("autshumato_dev_tn",)
    approx_vocab_size = 2**15
