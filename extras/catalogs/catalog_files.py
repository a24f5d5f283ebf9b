"""Reads files of both catalog formats, and names the reasons why entries are not used for training."""

from t2t_lite.corpora import plain_text
from t2t_lite.errors import UserError

UNTRANSLATED, UNFINISHED = "entries without a translation", "fuzzy or obsolete entries"
_MOST_BYTES = 2**28


def read_catalog(source, advice):
    """Returns the bytes of a catalog. Raises `UserError` if the file is larger than 256 MiB.

    Args:
        source: see `plain_text.open_binary`.
        advice: str, sentences that tell the user what to do with a larger file.
    """
    with plain_text.naming_errors(source), plain_text.open_binary(source) as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise UserError(f"{source}: more than {_MOST_BYTES:,} bytes. {advice}")
    return data
