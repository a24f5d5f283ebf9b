"""The settings that `masked_lm_own`, and the problems that derive from it, alone have."""

from t2t_lite.problems.own_settings import OwnSetting, declare_settings
from t2t_lite.settings import ranges
from t2t_lite.settings.ranges import Choices

declare_settings(
    OwnSetting(
        "mask_rate", float, 0.15, ranges.MASK_RATE, fixed=True, is_required=True,
        meaning="masked_lm_own, next_sentence_own, sentence_order_own: share of the ids to predict, 0.15.",
    ),
    OwnSetting(
        "mask_unit", str, "word", Choices(ranges.MASK_UNITS), fixed=True, is_required=True,
        meaning="As --mask_rate: what is masked as a whole; phrase: see --phrase_file. Default: word.",
    ),
    OwnSetting(
        "phrase_file", str, None, key="phrases", is_path=True,
        meaning="With --mask_unit=phrase: a text with a phrase per line.",
    ),
)  # fmt: skip
