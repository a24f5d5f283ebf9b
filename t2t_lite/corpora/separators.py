"""The character that separates the cells of a CSV file, as its first lines show."""

import csv
import re

from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import SEPARATORS

FIRST_LINES = 100  # that are looked at
_DECLARATION = re.compile(r'"?sep=(\t|[^\w\s"])"?', re.IGNORECASE)


def declared(line):
    """Returns the separator that a first line declares as Excel reads it, `sep=;`, or None."""
    found = _DECLARATION.fullmatch(line.strip(" "))
    return found and found[1]


def read_rows(lines, separator):
    """Returns the `csv.reader` of lines without ends; it is strict about quotes, or takes them as text beside tabs."""
    options = {"quoting": csv.QUOTE_NONE} if separator == "\t" else {"strict": True}
    lines = (line.replace("\r", " ") + "\n" for line in lines)  # CR alone ends no line
    return csv.reader(lines, delimiter=separator, **options)


def find_separator(path, lines, is_cut, layout):
    """Returns the one separator by which all of a file's first lines have the expected columns.

    If there is none, returns the one that gives most lines the expected columns. Failing that, returns the
    only one that occurs in the lines, or a comma, so that messages name the line that is wrong.

    Args:
        path: the file, for errors.
        lines: list of str, the first lines.
        is_cut: bool, whether the file has more lines, so that the last row may be incomplete.
        layout: `tables.Layout`.

    Raises:
        UserError: several separators would do.
    """
    samples = {name: _sample(lines, separator, is_cut) for name, separator in SEPARATORS.items()}
    shares = {name: layout.share_of_fitting(rows) for name, rows in samples.items()}
    occurring = [name for name, rows in samples.items() if any(len(cells) > 1 for cells in rows)]
    of_all = [name for name in occurring if shares[name] == 1]
    of_most = [name for name in occurring if shares[name] > 0.5]
    found = of_all or of_most or occurring or ["comma"]
    if len(found) > 1:
        words = " and ".join(f"{name}s" for name in found)
        flags = " or ".join(f"--separator={name}" for name in found)
        columns = f"those of --columns={','.join(layout.columns)}" if layout.columns else ", ".join(layout.names)
        does_what = "each divide" if of_all or of_most else "occur, but do not divide"
        raise UserError(
            f"{path}: {words} {does_what} the first lines into the expected columns: {columns}. Say what separates "
            f"them: {flags}."
        )
    return SEPARATORS[found[0]]


def _sample(lines, separator, is_cut):
    """Returns the rows of the first lines, each a list of str; [] is one that cannot be read."""
    rows, sample = read_rows(lines, separator), []
    while True:
        try:
            cells = next(rows)
        except StopIteration:
            return sample
        except csv.Error:
            if is_cut and rows.line_num == len(lines):
                return sample
            cells = []
        if not cells or any(map(str.strip, cells)):
            sample.append(cells)
