"""Cells of CSV files (RFC 4180), separated by commas or, as some spreadsheets write them, by semicolons or tabs."""

import csv
import itertools

from t2t_lite.corpora import plain_text
from t2t_lite.errors import UserError

ENDING = ".csv"


def read_cells(path, on_bad_line=None):
    """Yields (number of the row's last line, separator, list of str) for every row that is not blank.

    The first line says what separates cells: tabs if it has any; semicolons if it has some, but no commas; or else
    commas. In quotes, a cell may have separators, line ends and doubled quotes. Where tabs separate, quotes are text.

    Args:
        path: see `plain_text.read_lines`.
        on_bad_line: None, or a function called with a message about each row that is skipped: one with bytes that are
            not UTF-8, or with a misplaced quote.

    Raises:
        UserError: as `plain_text.read_lines`; or a quote is misplaced or never closed.
    """
    lines = plain_text.read_lines(path, errors="strict" if on_bad_line is None else "replace")
    head = list(itertools.islice(lines, 1))
    while head and not head[-1].strip() and (more := next(lines, None)) is not None:
        head.append(more)
    separator = _separator("".join(head))
    lines = (f"{line}\n" for line in itertools.chain(head, lines))
    csv.field_size_limit(plain_text.LONGEST_LINE)
    options = {"quoting": csv.QUOTE_NONE} if separator == "\t" else {"strict": True}
    rows = csv.reader(lines, delimiter=separator, **options)
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


def _separator(line):
    return "\t" if "\t" in line else ";" if ";" in line and "," not in line else ","
