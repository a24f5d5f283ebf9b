"""Cells of CSV files (RFC 4180), separated by commas or, as some spreadsheets write them, by semicolons or tabs."""

import csv
import itertools

from t2t_lite.corpora import plain_text
from t2t_lite.corpora.separators import FIRST_LINES, declared, find_separator, read_rows
from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import SEPARATORS

ENDING = ".csv"
_FIRST_CHARACTERS = 2**20  # of the lines that are looked at together


def read_cells(path, layout, on_bad_line=None):
    """Yields (number of the row's last line, separator, list of str) for every row that is not blank.

    The layout says what separates cells, or a first line such as `sep=;`, or the first lines: see `find_separator`. In
    quotes, a cell may have separators, line ends and doubled quotes. Where tabs separate, quotes are text.

    Args:
        path: see `plain_text.read_lines`.
        layout: `tables.Layout`.
        on_bad_line: None, or a function called with a message about each row that is skipped: one with bytes that are
            not UTF-8, or with a misplaced quote.

    Raises:
        UserError: as `plain_text.read_lines`; or a quote is misplaced or never closed, or several separators would do.
    """
    lines = plain_text.read_lines(path, errors="strict" if on_bad_line is None else "replace")
    csv.field_size_limit(plain_text.LONGEST_LINE)
    head, is_cut = _first_lines(lines)
    separator = declared(head[0])
    if separator:
        head[0] = ""
    if layout.separator:
        separator = SEPARATORS[layout.separator]
    separator = separator or find_separator(path, head, is_cut, layout)
    rows = read_rows(itertools.chain(head, lines), separator)
    while True:
        first = rows.line_num + 1
        try:
            cells = next(rows, None)
        except csv.Error as error:
            message = (
                f"{path}, line {first}: {error}. Expected a cell with {separator} or a quote in quotes, and its own "
                "quotes doubled."
            )
            if on_bad_line is None:
                raise UserError(message) from None
            on_bad_line(message)
            continue
        if cells is None:
            return
        if on_bad_line is not None and any("\ufffd" in cell for cell in cells):
            on_bad_line(f"{path}, line {rows.line_num}: bytes that are not UTF-8.")
        elif any(map(str.strip, cells)):
            yield rows.line_num, separator, cells


def _first_lines(lines):
    """Returns (list of the first lines that are not blank, and of the blank ones between, whether more may follow)."""
    head, count, size = [], 0, 0
    for line in lines:
        head.append(line)
        count += bool(line.strip())
        size += len(line)
        if count == FIRST_LINES or size > _FIRST_CHARACTERS:
            return head, True
    return head, False
