"""Declares the settings that only `qa_own` has, and describes those that it shares with other problems."""

from t2t_lite.problems.own_settings import OwnSetting, declare_settings, explain_settings
from t2t_lite.settings import ranges

explain_settings(train_files="qa_own: SQuAD's JSON.", sequence_length="Default for qa_own: 383.")
declare_settings(
    OwnSetting(
        "doc_stride",
        int,
        None,
        ranges.SEQUENCE_LENGTH,
        is_required=True,
        meaning="qa_own: the number of ids from the start of one context window to the start of the next. "
        "Default: 128.",
    )
)
