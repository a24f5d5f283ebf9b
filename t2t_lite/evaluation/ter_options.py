"""sacreBLEU's options of TER, which define a word."""

from t2t_lite.errors import UserError, nearest

TER_OPTIONS = {
    "normalized": "TER: split punctuation from words.",
    "no_punct": "TER: leave out punctuation.",
    "asian_support": "TER: with --ter_normalized, split Chinese and Japanese into characters; with --ter_no_punct, "
    "leave out their punctuation.",
    "case_sensitive": "TER: distinguish upper and lower case.",
}


def check_ter_options(options, prefix="ter_"):
    """Raises `UserError` for options that are unknown or have no effect.

    Args:
        options: {name in `TER_OPTIONS`: bool}.
        prefix: str, prefix of their names in the message.
    """
    for name in options:
        if name not in TER_OPTIONS:
            near = nearest(name, TER_OPTIONS, end=" ")
            raise UserError(f"{prefix}{name}: unknown. {near}All: {', '.join(TER_OPTIONS)}.")
    if options.get("asian_support") and not (options.get("normalized") or options.get("no_punct")):
        raise UserError(
            f"{prefix}asian_support: has no effect alone. Add {prefix}normalized, which then splits into characters, "
            f"or {prefix}no_punct."
        )
