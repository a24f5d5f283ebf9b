"""`parsing_english_own`'s descriptions of the settings shared with other problems that read the user's own files."""

from t2t_lite.problems.own_settings import explain_settings

explain_settings(
    train_files="parsing_english_own: one file of bracketed trees.",
    vocab_size="parsing_english_own: 8000.",
    vocab_from="Not for parsing_english_own.",
)
