"""Reads answers from files: what t2t-decoder writes for a task, and the labelled files that its problems read."""

import logging
from typing import NamedTuple

from t2t_lite.corpora import conll, tables
from t2t_lite.corpora.conll import read_conll
from t2t_lite.corpora.squad import read_squad
from t2t_lite.errors import UserError, counted, shown
from t2t_lite.evaluation.score_files import read_lines
from t2t_lite.evaluation.unicode_forms import warning_of_forms
from t2t_lite.files.safe_json import parse_json
from t2t_lite.text.real_encoder import as_number

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
        task: str, in `answer_metrics.METRICS`.
        columns: of columns divided by tabs the label's or number's, of CoNLL's columns those of the word and of its
            tag: each a number from 1, or a name in the first line. Left out: see `path`.
        header: bool, whether the first line names the columns. None: a line that looks like it is refused.

    Raises:
        UserError: the file is missing, damaged or of another kind.
    """
    names = {"tagging": conll.LAYOUT.names, "spans": ()}.get(
        task, ("label",) if task == "classification" else ("number",)
    )
    layout = tables.Layout(names, tuple(columns), header).check()
    if task == "tagging":
        sentences = list(read_conll(path, layout=layout))
        return Reference(task, path, [s.tags for s in sentences], [s.words for s in sentences])
    if task == "spans":
        questions = list(read_squad(path))
        # A question without an answer (SQuAD 2.0) is answered right by an empty text, as in its official scores.
        golds = [[question.context[start:end] for start, end in question.answers] or [""] for question in questions]
        return Reference(task, path, golds, [question.id for question in questions])
    return Reference(task, path, *_column(path, task, layout))


def read_predictions(path, reference):
    """Returns the answers that were given, in the order of the reference; warns of texts in another form of Unicode.

    Args:
        path: str, a file as `read_reference` reads it, without texts; of spans, a JSON object {id: answer}, the format
            of SQuAD's official predictions. Questions without an answer count as wrong.
        reference: `Reference`.

    Raises:
        UserError: the file is missing, damaged, of another kind, or does not belong to the reference.
    """
    answers = _read(path, reference)
    if reference.task in ("classification", "spans"):
        golds = [gold if isinstance(gold, str) else next(iter(gold), "") for gold in reference.answers]
        if warning := warning_of_forms(answers, [golds], "answer"):
            _LOGGER.warning(f"{path}: {warning}")
    return answers


def _read(path, reference):
    if reference.task == "spans":
        return _spans(path, reference)
    if reference.task == "tagging":
        sentences = list(read_conll(path))
        _check_count(path, len(sentences), reference, "sentence")
        for sentence, words in zip(sentences, reference.keys, strict=True):
            if sentence.words != words:
                raise UserError(
                    f"{sentence.place}: the words {shown(' '.join(sentence.words))}, where {reference.path} has "
                    f"{shown(' '.join(words))}. Expected the same words in both files."
                )
        return [sentence.tags for sentence in sentences]
    answers, blanks = _column(path, reference.task)
    if blanks and blanks != reference.keys:
        at = min({*blanks} ^ {*reference.keys})
        raise UserError(
            f"{path}, line {at}: blank here or in {reference.path}, and not in the other. Expected an answer for each "
            "line of the reference; t2t-decoder leaves lines blank that it has skipped."
        )
    _check_count(path, len(answers), reference, "line")
    if reference.task == "classification" and not {*answers} & {*reference.answers}:
        raise UserError(
            f"{path}: no line begins with a label of {reference.path}, such as {shown(reference.answers[0])}. Expected "
            "the label in the first column of both files."
        )
    return answers


def _column(path, task, layout=tables.Layout(("label",), header=False)):  # noqa: B008  (it is immutable)
    """Returns (the labels or numbers in a column, numbers of blank lines); problems, too, leave these out."""
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
    if task == "classification":
        return [cell for _, cell in cells], blanks
    for at, cell in cells:
        if as_number(cell) is None:
            place = "first column" if not column else f"column {column + 1}"
            raise UserError(f"{path}, line {at}: found {shown(cell)} in the {place}. Expected a number.")
    return [as_number(cell) for _, cell in cells], blanks


def _spans(path, reference):
    answers = parse_json("\n".join(read_lines(path)), path, schema={str: str})
    missing = [key for key in reference.keys if key not in answers]
    if len(missing) == len(reference.keys):
        raise UserError(f"{path}: has no answer to a question of {reference.path}. Expected {{id: answer, …}}.")
    if missing:
        _LOGGER.warning(
            f"{path}: has no answer to {counted(len(missing), 'question')} of {len(reference.keys):,}, such as "
            f"{shown(missing[0])}. They count as wrong."
        )
    return [answers.get(key, "") for key in reference.keys]


def _check_count(path, count, reference, unit):
    if count != len(reference.answers):
        raise UserError(
            f"{path} has {counted(count, unit)}, {reference.path} has {len(reference.answers):,}. Expected as many "
            "predictions as references, in the same order."
        )
