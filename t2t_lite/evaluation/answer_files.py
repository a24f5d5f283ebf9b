"""Reads answers from files: the output of t2t-decoder, and the labelled files that problems read."""

import logging
from typing import NamedTuple

from t2t_lite import registry
from t2t_lite.corpora import tables
from t2t_lite.errors import UserError, counted, shown
from t2t_lite.evaluation.score_files import read_lines
from t2t_lite.evaluation.text_warnings import warning_of_forms

_LOGGER = logging.getLogger("t2t_lite")


class Reference(NamedTuple):
    """The expected answers.

    Attributes:
        task, path: str.
        answers: list of str, of floats, or of what else the task's metrics compare.
        keys: what the task has read beside them to match predictions; for columns the numbers of blank lines, from 1,
            which have no answer.
    """

    task: str
    path: str
    answers: list
    keys: list


def read_reference(path, task, columns=(), header=None):
    """Reads the expected answers.

    Args:
        path: str, a file of tab-separated columns, the first of which is the label or number; or another one that the
            task's `references` reads.
        task: str, the name of a task with metrics of answers.
        columns: those of the task's `columns`, such as that of the label or number: each a number from 1, or a name in
            the first line. Default: see `path`.
        header: bool, whether the first line names the columns. None: a line that looks like a header is refused.

    Raises:
        UserError: the file is missing, damaged or of another format.
    """
    task_class = registry.task(task)
    layout = tables.Layout(task_class.columns, tuple(columns), header).check()
    return Reference(task, path, *task_class.references(path, layout))


def read_predictions(path, reference):
    """Returns the predictions in the order of the reference; warns of texts in another normalization form of Unicode.

    Args:
        path: str, a file as for `read_reference`, without texts; or another one that the task's `predictions` reads.
        reference: `Reference`.

    Raises:
        UserError: the file is missing, damaged, of another format, or does not match the reference.
    """
    return registry.task(reference.task).predictions(path, reference)


def read_predicted_column(path, as_label, reference):
    """Returns the answers at the beginning of the lines of a file of predictions, after checking their number."""
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
    """Returns (the answers in a column, numbers of blank lines, which problems skip, too).

    Args:
        path: str.
        as_label: function of a cell that returns the answer, or None if the cell is not a number.
        layout: corpora.tables.Layout.
    """
    lines = [*enumerate(read_lines(path), 1)]
    rows = [(at, line.split("\t")) for at, line in lines if line.strip()]
    column = header = 0
    if rows:
        (first, cells), layout = rows[0], layout._replace(columns=layout.columns[:1])  # others may be missing
        some = [row for _, row in rows[1 : 1 + tables.LOOKED_AT]]
        (column, *_), _, names = tables.columns_of(f"{path}, line {first}", cells, layout, some)
        if names:
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
    """Warns if answers, a list of str, are in another normalization form of Unicode than the expected ones."""
    if warning := warning_of_forms(answers, [golds], "answer"):
        _LOGGER.warning(f"{path}: {warning}")


def check_count(path, count, reference, unit):
    """Raises `UserError` unless a file has as many predictions as the reference has answers."""
    if count != len(reference.answers):
        raise UserError(
            f"{path} has {counted(count, unit)}, {reference.path} has {len(reference.answers):,}. Expected as many "
            "predictions as references, in the same order."
        )
