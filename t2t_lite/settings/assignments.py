"""The grammar of tensor2tensor's `--hparams` and `--decode_hparams`: `name=value,name=[1,2]`."""

import json
import re

from t2t_lite.errors import UserError, shown


def parse_assignments(text, where):
    """Splits `name=value,name=[1,2]` into a dict of strings and lists of strings; blanks are ignored.

    A value that is JSON and begins with { or [{ is a string, whatever commas are in it.

    Args:
        text: the assignments; "" gives {}.
        where: what to call the text in errors, such as "--decode_hparams".

    Raises:
        UserError: not of that form, or a name given twice.
    """
    found, rest = {}, text.strip()
    while rest:
        name, value, rest = _json_assignment(rest) or _assignment(rest, where)
        if name in found:
            raise UserError(f"{where}: {shown(name)} is given twice.")
        found[name] = value
    return found


def _assignment(text, where):
    """Returns (name, value, what follows) of the first assignment."""
    match = re.match(r"\s*([A-Za-z][\w.]*)\s*=\s*(\[[^\]]*\]|[^,\[]*)\s*(?:,|$)", text)
    if not match:
        raise UserError(f"{where}: cannot read {shown(text)}. Expected name=value,name=value.")
    value = match[2].strip()
    if value.startswith("["):
        value = [item.strip() for item in value[1:-1].split(",") if item.strip()]
    return match[1], value, text[match.end() :]


def _json_assignment(text):
    """Returns (name, value, what follows) of a first assignment whose value is JSON with braces; else None."""
    begin = re.match(r"\s*([A-Za-z][\w.]*)\s*=\s*(?=\[?\s*\{)", text)
    try:
        _, end = json.JSONDecoder().raw_decode(text, begin.end()) if begin else (None, 0)
    except ValueError:
        return None
    after = begin and re.match(r"\s*(?:,|$)", text[end:])
    return (begin[1], text[begin.end() : end], text[end + after.end() :]) if after else None
