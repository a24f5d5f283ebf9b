"""Fields of JSON lines: files of which every line is an object, such as {"en": "the house", "de": "das Haus"}."""

import re

from t2t_lite.corpora import plain_text
from t2t_lite.errors import UserError, nearest, shown
from t2t_lite.files.safe_json import parse_json

ENDINGS = (".jsonl", ".ndjson")
_HALVES = re.compile("[\ud800-\udfff]")


def read_fields(path, fields, on_bad_line=None):
    """Yields (list of str, place for messages) for every line that is not blank.

    Args:
        path: see `plain_text.read_lines`.
        fields: names of fields; `translation.en` is the field `en` of the object `translation`. Their values are
            strings or numbers.
        on_bad_line: None, or a function called with a message about each unreadable line, which is skipped.

    Raises:
        UserError: as `plain_text.read_lines`; or a line is not an object, or lacks a field.
    """
    for number, line in enumerate(plain_text.read_lines(path, on_bad_line), 1):
        if line is None or not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = parse_json(line, where)
            if not isinstance(row, dict):
                raise UserError(f'{where}: {shown(row)}. Expected an object in each line, such as {{"en": "one"}}.')
            texts = [_text(row, field, where) for field in fields]
        except UserError as error:
            if on_bad_line is None:
                raise
            on_bad_line(str(error))
            continue
        yield texts, where


def _text(row, field, where):
    """Returns the text of a field. Raises `UserError` if there is none."""
    value, names = row, [field] if field in row else field.split(".")
    for name in names:
        if not isinstance(value, dict) or name not in value:
            known = ", ".join(map(shown, row)) or "none"
            raise UserError(
                f"{where}: no field {shown(field)}, but {known}. {nearest(field, [*row], end=' ')}Name the fields: "
                "--fields=en,de, or --fields=translation.en,translation.de inside of another one."
            )
        value = value[name]
    if isinstance(value, bool) or not isinstance(value, str | int | float) or _HALVES.search(str(value)):
        raise UserError(f"{where}: the field {shown(field)} is {shown(value)}. Expected a text.")
    return plain_text.clean(str(value))
