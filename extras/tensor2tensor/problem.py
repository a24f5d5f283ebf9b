"""Mirrors tensor2tensor's data_generators/problem.py."""

from t2t_lite.data.problem import DatasetSplit as DatasetSplit
from t2t_lite.data.problem import Problem as Problem
from t2t_lite.extras.tensor2tensor import names_elsewhere

__getattr__ = names_elsewhere(__name__)


class SpaceID:
    """Ids of languages and tokenizations, which problems may return as `input_space_id`; this package ignores them."""

    GENERIC = 0
    EN_CHR, EN_TOK, EN_BPE_TOK = 2, 3, 4
    FR_CHR, FR_TOK = 5, 6
    DE_CHR, DE_TOK, DE_BPE_TOK = 7, 8, 9
    ZH_CHR, ZH_TOK = 14, 15
