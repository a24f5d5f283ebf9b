"""Declares the settings of `qa_own`, and describes the settings that it shares with other problems."""

from t2t_lite.problems.own_settings import OwnSetting, declare_settings, explain_settings
from t2t_lite.settings import ranges

explain_settings(train_files="qa_own: SQuAD's JSON.", sequence_length="qa_own: 383.")
declare_settings(
    OwnSetting(
        "doc_stride",
        int,
        None,
        ranges.SEQUENCE_LENGTH,
        is_required=True,
        meaning="qa_own: number of context ids from the start of one window to the start of the next, by default 128.",
    )
)
