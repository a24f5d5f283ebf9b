"""Reads cells of CSV files (RFC 4180) and fields of JSON lines such as {"en": "the house", "de": "das Haus"}.

The cells of CSV may be separated by commas or, as some spreadsheets write them, by semicolons or tabs. The separator is
detected from the first lines.
"""

import csv
import itertools
import re

from t2t_lite.corpora import plain_text
from t2t_lite.corpora.plain_text import report
from t2t_lite.errors import UserError, nearest, shown
from t2t_lite.files.safe_json import parse_json
from t2t_lite.settings.ranges import SEPARATORS

CSV, JSON_LINES = ".csv", (".jsonl", ".ndjson")
FIRST_LINES = 100  # number of lines from which the separator is detected
_FIRST_CHARACTERS = 2**20  # maximum total length of these lines
_DECLARATION = re.compile(r'"?sep=(\t|[^\w\s"])"?', re.IGNORECASE)


def read_cells(path, layout, on_bad_line=None):
    """Yields (number of the row's last line, separator, list of the cells) for every nonblank row of a CSV file.

    The separator comes from the layout or from a first line such as `sep=;` (which Excel reads, too). Otherwise
    it is detected from the first lines, see `_find_separator`. A quoted cell may contain separators, line ends and
    doubled quotes. If tabs separate the cells, quotation marks are ordinary characters.

    Args:
        path: see `plain_text.read_lines`.
        layout: `tables.Layout`.
        on_bad_line: None, or a function called with a message about each skipped row: a row that is not UTF-8, or that
            has a misplaced quote.

    Raises:
        UserError: see `plain_text.read_lines`; also if a quote is misplaced or never closed, or if several separators
            are possible.
    """
    lines = plain_text.read_lines(path, on_bad_line, keeps_bad=True)
    csv.field_size_limit(plain_text.LONGEST_LINE)
    head, is_cut = _first_lines(lines)
    if declared := _DECLARATION.fullmatch(head[0].strip(" ")):
        head[0] = ""
    separator = SEPARATORS[layout.separator] if layout.separator else declared and declared[1]
    separator = separator or _find_separator(path, head, is_cut, layout)
    for first, last, cells in _rows(itertools.chain(head, lines), separator):
        if isinstance(cells, csv.Error):
            expected = f"quotes around a cell that contains {separator} or a quote, and doubled quotes inside of it"
            report(f"{path}, line {first}: {cells}. Expected {expected}.", on_bad_line)
        elif any(map(plain_text.SURROGATE.search, cells)):
            on_bad_line(f"{path}, line {last}: contains bytes that are not UTF-8.")
        elif any(map(str.strip, cells)):
            yield last, separator, cells


def _first_lines(lines):
    """Returns (list of a file's first lines; whether the file may have more lines)."""
    head, size = [], 0
    for line in lines:
        head.append(line)
        size += len(line)
        if len(head) == FIRST_LINES or size > _FIRST_CHARACTERS:
            return head, True
    return head, False


def _rows(lines, separator):
    """Yields (first line, last line, cells) for each row: a list of str, or a `csv.Error` if the row is unreadable."""
    # A misplaced quotation mark is an error unless tabs separate the cells. A CR alone does not end a line.
    options = {"quoting": csv.QUOTE_NONE} if separator == "\t" else {"strict": True}
    rows = csv.reader((line.replace("\r", " ") + "\n" for line in lines), delimiter=separator, **options)
    while True:
        first = rows.line_num + 1
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            cells = error
        yield first, rows.line_num, cells


def _find_separator(path, lines, is_cut, layout):
    """Returns the only separator that splits all of a file's first lines into the expected columns.

    If no separator does, returns the separator that splits more than half of the lines in this way, or else the only
    separator that occurs, or else a comma. The caller then reports the first line that the separator does not fit.

    Args:
        path: the file, for errors.
        lines: list of str, the first lines of the file.
        is_cut: bool, whether the file has more lines, so that the last row may be incomplete.
        layout: `tables.Layout`.

    Raises:
        UserError: several separators are possible.
    """
    samples = {name: _sample(lines, separator, is_cut) for name, separator in SEPARATORS.items()}
    shares = {name: layout.share_of_fitting(rows) for name, rows in samples.items()}
    occurring = [name for name, rows in samples.items() if any(len(cells) > 1 for cells in rows)]
    exact = [name for name in occurring if shares[name] == 1]
    frequent = [name for name in occurring if shares[name] > 0.5]
    names = exact or frequent or occurring or ["comma"]
    if len(names) > 1:
        words, flags = " or ".join(f"{name}s" for name in names), " or ".join(f"--separator={name}" for name in names)
        raise UserError(f"{path}: {words} may separate the cells of the first lines. Name the separator: {flags}.")
    return SEPARATORS[names[0]]


def _sample(lines, separator, is_cut):
    """Returns the rows in a file's first lines, each a list of cells; an unreadable row is []."""
    sample = []
    for _, last, cells in _rows(lines, separator):
        if isinstance(cells, csv.Error):
            if is_cut and last == len(lines):
                break
            cells = []
        if not cells or any(map(str.strip, cells)):
            sample.append(cells)
    return sample


def read_fields(path, fields, on_bad_line=None):
    """Yields (line number, list of field values) for every nonblank line of a JSON lines file.

    Args:
        path: see `plain_text.read_lines`.
        fields: names of fields; `translation.en` is the field `en` of the object `translation`. The values must be
            strings or numbers.
        on_bad_line: None, or a function called with a message about each unreadable line, which is skipped.

    Raises:
        UserError: see `plain_text.read_lines`; also if a line is not an object or lacks a field.
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
            report(str(error), on_bad_line)
        else:
            yield number, texts


def _text(row, field, where):
    """Returns the value of a JSON field as text. Raises `UserError` if it is missing or is not a string or number."""
    value, names = row, [field] if field in row else field.split(".")
    for name in names:
        if not isinstance(value, dict) or name not in value:
            known = ", ".join(map(shown, row)) or "none"
            raise UserError(
                f"{where}: no field {shown(field)}, only {known}. {nearest(field, [*row], end=' ')}Name the fields, "
                "such as --fields=en,de or, if they are inside another field, --fields=translation.en,translation.de."
            )
        value = value[name]
    if isinstance(value, bool) or not isinstance(value, str | int | float) or plain_text.SURROGATE.search(str(value)):
        raise UserError(f"{where}: the field {shown(field)} is {shown(value)}. Expected a text or a number.")
    return plain_text.clean(str(value))
