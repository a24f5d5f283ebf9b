"""The settings that `translate_own` alone has."""

from t2t_lite.problems.own_settings import OwnSetting, are_strings, declare_settings
from t2t_lite.settings import ranges
from t2t_lite.settings.ranges import Range

WEIGHT = Range(most=1000, above=0)


def _are_weights(weights):
    return isinstance(weights, list) and all(type(weight) in (int, float) and weight in WEIGHT for weight in weights)


def _are_filters(thresholds):
    from t2t_lite.corpora.filters import ORDER

    return isinstance(thresholds, dict) and all(
        name in ORDER and (threshold is True or (type(threshold) in (int, float) and threshold >= 1))
        for name, threshold in thresholds.items()
    )


declare_settings(
    OwnSetting(
        "languages", list, None, fixed=True, fits=lambda codes: are_strings(codes) and len(codes) == 2,
        meaning="translate_own: of inputs,targets, such as en,de; from the files' endings.",
    ),
    OwnSetting(
        "corpus_weights", list, None, fixed=True, fits=_are_weights,
        meaning="translate_own: one weight per training corpus (default 1), how often each of its pairs occurs: "
        "2.5 is twice, and half of them once more; 0.3 is 30 % of them.",
    ),
    OwnSetting(
        "filters", list, None, fixed=True, fits=_are_filters,
        meaning="translate_own: of the training corpora: "
        "too_long=1000,length_ratio=3,copied,wrong_script,mojibake,duplicate, or all. None when left out.",
    ),
    OwnSetting(
        "held_out", int, None, ranges.PAIRS, fixed=True,
        meaning="translate_own without --dev_files: training pairs to evaluate on instead, 1000.",
    ),
    OwnSetting(
        "target_vocab_size", int, None, ranges.VOCAB_SIZE, fixed=True,
        meaning="translate_own: pieces of a vocabulary of the targets' own.",
    ),
    OwnSetting(
        "user_defined_symbols", list, None, fixed=True,
        meaning="translate_own: symbols that are always one piece, such as <2de>.",
    ),
)  # fmt: skip
