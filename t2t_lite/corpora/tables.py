"""Reads tables: tab-separated lines, CSV or JSON lines (`cells`), depending on the extension of the file.

Columns are chosen by number or by their names in a header, and fields of JSON lines by name. If a header were mistaken
for data, it would become a class or a sentence pair. So a first line that looks like a header raises an error, unless
the user has specified whether the file has a header.
"""

import collections
import re
from typing import NamedTuple

from t2t_lite.corpora import plain_text
from t2t_lite.corpora.cells import CSV, JSON_LINES, read_cells, read_fields
from t2t_lite.corpora.plain_text import report
from t2t_lite.errors import UserError, counted, flag_list, nearest, shown

_NAME = re.compile(r"[^\W\d][\w.\-/]*( [^\W\d][\w.\-/]*){0,2}")
_TEXTS = """
    text texts sentence sentences title body content review comment tweet utterance document headline description
    question questions answer answers premise hypothesis first second query passage
"""
# Names that headers use for the columns of a layout.
_WORDS = {
    "label": "label labels class category categories topic intent sentiment polarity target targets gold",
    "number": "score scores rating stars number value similarity relatedness label gold",
    **dict.fromkeys(("text", "first", "second"), _TEXTS),
    "inputs": "source src input inputs original",
    "targets": "target targets tgt trg output outputs translation reference",
    "word": "word words token tokens form text",
    "tag": "tag tags pos upos xpos ner chunk label labels",
}
_IDS = {"id", "ids", "index", "idx", "guid", "uid", "pairid", "qid", "split"}
_OTHER_WORDS = """
    lemma english german french spanish italian portuguese dutch russian ukrainian polish czech slovak romanian
    hungarian finnish swedish danish norwegian greek turkish arabic hebrew persian hindi bengali urdu chinese japanese
    korean vietnamese thai indonesian
"""


class Layout(NamedTuple):
    """The columns of a table to read, and how to find them in a file.

    Attributes:
        names: tuple of str, the fields to read, such as ("label", "text").
        columns: tuple of str, the column of each field: a number from 1, or a name in the header. () means that the
            table has exactly the columns `names`, in this order.
        header: bool, whether the first line names the columns. If None, this is unknown, and a first line that looks
            like a header raises an error.
        languages: for sentence pairs, the language codes that a header may contain.
        fields: tuple of str, the JSON field for each name. If (), the fields are `columns` if these are names,
            or else `languages`, or else `names`.
        separator: str, the name of the separator between cells, one of `ranges.SEPARATORS`. If None, tabs separate the
            cells, except in CSV, where the separator is detected from the first lines.
    """

    names: tuple
    columns: tuple = ()
    header: bool | None = None
    languages: tuple = ()
    fields: tuple = ()
    separator: str | None = None

    def check(self):
        """Returns self. Raises `UserError` if `columns` or `fields` do not fit `names`."""
        flag = f"--columns={flag_list(self.columns)}"
        for option, chosen in (("columns", self.columns), ("fields", self.fields)):
            is_right = len(chosen) == len({*chosen}) == len(self.names) and all(chosen)
            if chosen and not is_right:
                raise UserError(
                    f"--{option}={flag_list(chosen)}: expected {len(self.names)} different {option}, for "
                    f"{' and '.join(self.names)}."
                )
        if any(is_number(column) and int(column) < 1 for column in self.columns):
            raise UserError(f"{flag}: expected numbers from 1, or names in the first line.")
        if self.header is False and not all(map(is_number, self.columns)):
            raise UserError(
                f"{flag} with --header=false: names can only be used with a header. Expected numbers, such as 1,2."
            )
        return self

    @property
    def json_fields(self):
        """The names of the JSON fields to read."""
        named = () if any(map(is_number, self.columns)) else self.columns
        return self.fields or named or self.languages or self.names

    def share_of_fitting(self, rows):
        """Returns the fraction, from 0 to 1, of the rows (lists of str) that have the expected number of columns."""
        counts = collections.Counter(map(len, rows))
        if not self.columns:
            return counts[len(self.names)] / max(1, len(rows))
        header = {plain_text.clean(cell).casefold() for cell in rows[0]} if rows else {}
        if any(not is_number(column) and column.casefold() not in header for column in self.columns):
            return 0.0
        least = max((int(column) for column in self.columns if is_number(column)), default=1)
        return max((counts[width] for width in counts if width >= least), default=0) / max(1, len(rows))

    @property
    def has_header(self):
        """Whether the first line is a header that names the columns, or None if this is unknown."""
        return True if not all(map(is_number, self.columns)) else self.header


def is_number(column):
    """Returns whether a column is given by its number instead of its name."""
    return column.isascii() and column.isdigit() and len(column) < 6


def read_table(path, layout, on_bad_line=None, allows_blank=False):
    """Yields (list of the chosen cells, "<path>, line <number>" for messages) for every nonblank row of a table.

    Args:
        path: path of the file, or another source that `plain_text.read_lines` takes.
        layout: `Layout`.
        on_bad_line: None, or a function called with a message about each unreadable line, which is skipped.
        allows_blank: bool, whether a cell may be blank.

    Raises:
        UserError: the first line looks like a header or lacks a chosen name; a line has too few columns, a blank column
            or, if no columns were chosen, too many columns. See also `plain_text.read_lines`, `cells.read_cells` and
            `cells.read_fields`.
    """
    if plain_text.kind(path) in JSON_LINES:
        yield from _read_json(path, layout, on_bad_line, allows_blank)
        return
    is_csv = layout.separator or plain_text.kind(path) == CSV
    numbers = width = names = None
    all_cells = read_cells(path, layout, on_bad_line) if is_csv else _read_cells(path, on_bad_line)
    for number, separator, cells in all_cells:
        where = f"{path}, line {number}"
        mark, by = ("<TAB>", "one tab") if separator == "\t" else (separator, separator)
        if numbers is None:
            numbers, width, names = columns_of(where, cells, layout, mark)
            if names:
                continue
        texts = [plain_text.clean(cells[at]) for at in numbers if at < len(cells)]
        is_right = len(texts) == len(numbers) and len(cells) == (width or len(cells))
        if is_right and (allows_blank or all(texts)):
            yield texts, where
            continue
        blank = ", one of them blank" if is_right else ""
        expected = f"at least {max(numbers) + 1}" if width is None else f"{width}: {mark.join(layout.names)}"
        message = f"{where}: found {counted(len(cells), 'column')}{blank}. Expected {expected}, separated by {by}."
        if on_bad_line is None and not layout.columns and len(cells) > width:
            columns = _chosen_names(layout, names) if names else ",".join(map(str, range(1, width + 1)))
            message += f" Choose the columns for {' and '.join(layout.names)}, such as --columns={columns}."
        report(message, on_bad_line)


def _read_cells(path, on_bad_line):
    """Yields (line number, separator, list of the cells) for tab-separated lines; see `cells.read_cells`."""
    for number, line in enumerate(plain_text.read_lines(path, on_bad_line), 1):
        if line is not None and line.strip():
            yield number, "\t", line.split("\t")


def _read_json(path, layout, on_bad_line, allows_blank):
    for number, texts in read_fields(path, layout.json_fields, on_bad_line):
        where = f"{path}, line {number}"
        if allows_blank or all(texts):
            yield texts, where
            continue
        blank = layout.json_fields[texts.index("")]
        report(f"{where}: the field {shown(blank)} is blank. Expected a text.", on_bad_line)


def columns_of(where, cells, layout, mark="<TAB>"):
    """Finds a layout's columns from the first line of a table; for the arguments see `header_question`.

    Returns:
        (indices of the columns to read, required number of columns per line, names of all columns). The required number
        is None if lines may have any number of columns. The names are None if the line is not a header.

    Raises:
        UserError: the line looks like a header, lacks a chosen column, or has the layout's columns in a different
            order, or a column is chosen twice.
    """
    if layout.has_header is None and looks_like_header(cells, layout):
        raise UserError(header_question(where, cells, layout, mark))
    names, count = [*map(plain_text.clean, cells)], len(layout.names)
    header = names if layout.has_header else None
    if layout.columns:
        places = [column_index(where, names, column) for column in layout.columns]
        if len({*places}) < len(places):  # once by its number and once by its name, for example
            raise UserError(
                f"{where}: --columns={flag_list(layout.columns)}: a column is given twice. Expected different columns."
            )
        return places, None, header
    named = named_columns(layout, names) if header else {}
    if len(named) == count == len(names) and [*named.values()] != [*range(count)]:
        raise UserError(
            f"{where}: the header {shown(mark.join(names))} is in a different order than {mark.join(layout.names)}. "
            f"Name the columns: --columns={_chosen_names(layout, names)}."
        )
    return range(count), count, header


def column_index(where, names, column):
    """Returns the index of a column, given its name or its number from 1. Raises `UserError` if the name is unknown."""
    if is_number(column):
        return int(column) - 1
    folded = [name.casefold() for name in names]
    indices = [at for at, name in enumerate(names) if name == column]
    indices = indices or [at for at, name in enumerate(folded) if name == column.casefold()]
    if len(indices) != 1:
        raise UserError(
            f"{where}: {'no column' if not indices else f'{len(indices)} columns'} {shown(column)} in the header "
            f"{shown('<TAB>'.join(names))}. {nearest(column, names, end=' ')}Expected a name that occurs "
            "once, or a number from 1."
        )
    return indices[0]


def read_pairs(path, layout, on_bad_line=None):
    """Yields {"inputs": str, "targets": str} from a table, in which cells may be blank; see `read_table`."""
    for (inputs, targets), _ in read_table(path, layout, on_bad_line, allows_blank=True):
        yield {"inputs": inputs, "targets": targets}


def header_words(*names):
    """Returns the set of words that headers use for columns with the given contents, such as "label" or "text"."""
    return {word for name in names for word in _WORDS.get(name, name).split()}


def looks_like_header(cells, layout):
    """Returns whether the cells of a table's first line look like the names of columns; `layout` is a `Layout`."""
    names = [plain_text.clean(cell).casefold() for cell in cells]
    if len(names) < len(layout.names) or not all(map(_NAME.fullmatch, names)):
        return False
    words = {*_IDS, *_OTHER_WORDS.split(), *header_words(*_WORDS), *map(str.casefold, layout.languages)}
    are_known = [_is_known(name, words) for name in names]
    # A sentence pair, for example in a dictionary, may contain one of these words. So in a header of sentence pairs,
    # every cell must be such a word. A label or a labelled text is seldom such a word, so fewer cells are enough.
    return all(are_known) if layout.languages else are_known[0] or (len(are_known) > 1 and all(are_known[1:]))


def _is_known(name, words):
    """Returns whether a name, or the first or last part of a name such as `gold_label`, is among `words`."""
    parts = [re.split(r"[_./-]", word.rstrip("0123456789")) for word in name.split(" ")]
    return name in words or all(words & {part[0], part[-1]} for part in parts)


def is_name(cell):
    """Returns whether a cell is a single word, like most names of columns in a header."""
    return bool(_NAME.fullmatch(cell)) and " " not in cell


def header_question(where, cells, layout, mark="<TAB>"):
    """Returns the error message for a first line that looks like a header.

    Args:
        where: str, the path and the line number, for the message.
        cells: list of str, the cells of the first line.
        layout: `tables.Layout`.
        mark: str that represents the separator in messages.
    """
    names = [plain_text.clean(cell) for cell in cells]
    columns = _chosen_names(layout, names)
    alone = "--header, or " if columns == flag_list(names) else ""
    return (
        f"{where}: {shown(mark.join(names))} looks like a header. If it is data, set --header=false. If it is a "
        f"header, set {alone}the names of the columns: --columns={columns}."
    )


def _chosen_names(layout, names):
    """Returns a value of --columns for a header; a capitalized name stands for a column that it does not identify."""
    named = named_columns(layout, names)
    others = [name for at, name in enumerate(names) if at not in named.values()]
    rest = iter(others if len(names) == len(layout.names) else ())
    return flag_list(names[named[name]] if name in named else next(rest, name.upper()) for name in layout.names)


def named_columns(layout, names):
    """Returns {name in `layout.names`: index of its column} for the columns that the header identifies.

    Args:
        layout: `tables.Layout`.
        names: list of str, the names of the columns.
    """
    chosen = {}
    for name, language in zip(layout.names, layout.languages or layout.names, strict=False):
        words = {*header_words(name), language.casefold()}
        known = (at for at, one in enumerate(names) if at not in chosen.values() and _is_known(one.casefold(), words))
        if (at := next(known, None)) is not None:
            chosen[name] = at
    return chosen
