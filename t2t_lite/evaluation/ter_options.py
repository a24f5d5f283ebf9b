"""sacreBLEU's options for TER, which define what counts as a word."""

from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import Choices, typed_value

TER_OPTIONS = {
    "normalized": "TER: split punctuation from words.",
    "no_punct": "TER: ignore punctuation.",
    "asian_support": "TER: with --ter_normalized, split Chinese and Japanese into characters; with --ter_no_punct, "
    "ignore their punctuation.",
    "case_sensitive": "TER: distinguish upper and lower case.",
}


def check_ter_options(options, prefix="ter_"):
    """Raises `UserError` if an option is unknown or has no effect.

    Args:
        options: {name in `TER_OPTIONS`: bool}.
        prefix: str, prefix of the options' names in the message.
    """
    for name in options:
        typed_value("ter", name, str, Choices(tuple(TER_OPTIONS)))
    if options.get("asian_support") and not (options.get("normalized") or options.get("no_punct")):
        raise UserError(
            f"{prefix}asian_support has no effect by itself. Add {prefix}normalized to split into characters, or "
            f"{prefix}no_punct to ignore punctuation."
        )
