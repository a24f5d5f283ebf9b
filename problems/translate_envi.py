"""English to Vietnamese on IWSLT15 (tensor2tensor's translate_envi.py)."""

from t2t_lite import registry
from t2t_lite.problems.wmt_corpora import CorporaProblem


@registry.register_problem
class TranslateEnviIwslt32k(CorporaProblem):
    """133,000 pairs of talks; tst2012 (1,553 pairs) while training."""

    language_pair = ("en", "vi")
    train_corpora = ("iwslt15_vi",)
    dev_corpora = ("iwslt_tst2012_vi",)
    approx_vocab_size = 2**15
