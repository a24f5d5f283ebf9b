"""Reads answers from files: what t2t-decoder writes for a task, and the labelled files that its problems read."""

import logging
from typing import NamedTuple

from t2t_lite import registry
from t2t_lite.corpora import tables
from t2t_lite.errors import UserError, counted, shown
from t2t_lite.evaluation.score_files import read_lines
from t2t_lite.evaluation.unicode_forms import warning_of_forms

_LOGGER = logging.getLogger("t2t_lite")


class Reference(NamedTuple):
    """The answers that are expected.

    Attributes:
        task, path: str.
        answers: list of a str, a float, a list of tags, or a list of str of which each is right.
        keys: of tags the words of each sentence, of answers the ids of their questions; of columns the numbers of blank
            lines, from 1, which have no answer.
    """

    task: str
    path: str
    answers: list
    keys: list


def read_reference(path, task, columns=(), header=None):
    """Reads the answers that are expected.

    Args:
        path: str, a file of columns divided by tabs whose first one is the label or the number; of tags, CoNLL's
            columns; of spans, SQuAD's JSON.
        task: str, the name of a task with metrics of answers.
        columns: of columns divided by tabs the label's or number's, of CoNLL's columns those of the word and of its
            tag: each a number from 1, or a name in the first line. Left out: see `path`.
        header: bool, whether the first line names the columns. None: a line that looks like it is refused.

    Raises:
        UserError: the file is missing, damaged or of another kind.
    """
    found = registry.task(task)
    layout = tables.Layout(found.columns, tuple(columns), header).check()
    return Reference(task, path, *found.references(path, layout))


def read_predictions(path, reference):
    """Returns the answers that were given, in the order of the reference; warns of texts in another form of Unicode.

    Args:
        path: str, a file as `read_reference` reads it, without texts; of spans, a JSON object {id: answer}, the format
            of SQuAD's official predictions. Questions without an answer count as wrong.
        reference: `Reference`.

    Raises:
        UserError: the file is missing, damaged, of another kind, or does not belong to the reference.
    """
    return registry.task(reference.task).predictions(path, reference)


def read_predicted_column(path, as_label, reference):
    """Returns the answers that begin the lines of a file of predictions, after checking that they are as many."""
    answers, blanks = read_column(path, as_label)
    if blanks and blanks != reference.keys:
        at = min({*blanks} ^ {*reference.keys})
        raise UserError(
            f"{path}, line {at}: blank here or in {reference.path}, and not in the other. Expected an answer for each "
            "line of the reference; t2t-decoder leaves lines blank that it has skipped."
        )
    check_count(path, len(answers), reference, "line")
    return answers


def read_column(path, as_label, layout=tables.Layout(("label",), header=False)):  # noqa: B008  (it is immutable)
    """Returns (the answers in a column, numbers of blank lines); problems, too, leave these out.

    Args:
        path: str.
        as_label: function of a cell, which returns the answer, or None if it is no number.
        layout: corpora.tables.Layout.
    """
    lines = [*enumerate(read_lines(path), 1)]
    rows = [(at, line.split("\t")) for at, line in lines if line.strip()]
    column = header = 0
    if rows:
        (first, names), where = rows[0], f"{path}, line {rows[0][0]}"
        if layout.has_header is None and tables.looks_like_header(names, layout):
            raise UserError(tables.header_question(where, names, layout))
        column = tables.column_index(where, names, layout.columns[0]) if layout.columns else 0
        if layout.has_header:
            header, rows = first, rows[1:]
    for at, row in rows:
        if column >= len(row):
            raise UserError(f"{path}, line {at}: found {counted(len(row), 'column')}. Expected {column + 1} at least.")
    cells = [(at, row[column].strip()) for at, row in rows]
    end = cells[-1][0] if cells else len(lines) + 1
    blanks = [at - header for at, line in lines if header < at < end and not line.strip()]
    for at, cell in cells:
        if as_label(cell) is None:
            place = "first column" if not column else f"column {column + 1}"
            raise UserError(f"{path}, line {at}: found {shown(cell)} in the {place}. Expected a number.")
    return [as_label(cell) for _, cell in cells], blanks


def warn_of_forms(path, answers, golds):
    """Warns if answers, a list of str, are in another form of Unicode than those expected."""
    if warning := warning_of_forms(answers, [golds], "answer"):
        _LOGGER.warning(f"{path}: {warning}")


def check_count(path, count, reference, unit):
    """Raises `UserError` unless a file has as many predictions as a reference."""
    if count != len(reference.answers):
        raise UserError(
            f"{path} has {counted(count, unit)}, {reference.path} has {len(reference.answers):,}. Expected as many "
            "predictions as references, in the same order."
        )
