"""English to Indonesian (tensor2tensor's translate_enid.py)."""

from t2t_lite import registry
from t2t_lite.problems.wmt_corpora import CorporaProblem


@registry.register_problem
class TranslateEnidIwslt32k(CorporaProblem):
    """IWSLT17 (109,335 pairs) and PANL-BPPT (24,024), tokenized as they come; tst2017plus (1,478) while training."""

    language_pair = ("en", "id")
    train_corpora = (
        "iwslt17_id",
        "panl_economy_id",
        "panl_international_id",
        "panl_science_id",
        "panl_sport_id",
    )
    dev_corpora = ("iwslt_tst2017_id",)
    approx_vocab_size = 2**15
