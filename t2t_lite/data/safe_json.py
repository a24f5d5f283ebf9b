"""JSON that may come from anywhere: what no writer of ours would write is refused before it does harm."""

import json
import math

from t2t_lite.errors import UserError

MOST_BYTES = 2**24


def parse_json(text, where, most=MOST_BYTES):
    """Returns the value of a JSON text.

    Args:
        text: str or UTF-8 bytes.
        where: str, its name in errors, such as a path.
        most: int, the longest text that is read.

    Raises:
        UserError: not JSON; longer than `most`, nested too deeply, a name twice in an object, or a number that is not
            finite.
    """
    if len(text) > most:
        raise UserError(f"{where}: {len(text):,} bytes are too many for settings. Expected at most {most:,}.")
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite)
    except RecursionError:
        raise UserError(f"{where}: not readable as JSON: nested too deeply.") from None
    except ValueError as error:  # UnicodeDecodeError too
        raise UserError(f"{where}: not readable as JSON: {str(error).splitlines()[0]}. Copy the file again.") from None


def _object(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice[:80]!r} is there twice")
    return found


def _constant(name):
    raise ValueError(f"{name} is no number")


def _finite(digits):
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is too large a number")
    return number
