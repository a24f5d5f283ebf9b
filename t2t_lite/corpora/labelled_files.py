"""Files of labelled text: columns divided by tabs, CoNLL's columns, and SQuAD's JSON."""

import re
from typing import NamedTuple

from t2t_lite.corpora import plain_text
from t2t_lite.errors import UserError, counted, shown
from t2t_lite.files.safe_json import strict_json

_HALVES = re.compile("[\ud800-\udfff]")  # of surrogate pairs: JSON can escape one, but no text holds it


def read_columns(path, columns):
    """Yields (list of str, place for messages) for every line of columns divided by a tab; blank lines are left out.

    Args:
        path: path of the file, which may be compressed (`.gz`, `.bz2`, `.xz`).
        columns: list of str, the columns' names.

    Raises:
        UserError: as `plain_text.read_lines`, or a line has another number of columns, or a blank one.
    """
    for number, line in enumerate(plain_text.read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        cells = [plain_text.clean(cell) for cell in line.split("\t")]
        if len(cells) != len(columns) or not all(cells):
            raise UserError(
                f"{where}: found {counted(len(cells), 'column')}{'' if all(cells) else ', one of them blank'}. "
                f"Expected {len(columns)}: {'<TAB>'.join(columns)}."
            )
        yield cells, where


class Sentence(NamedTuple):
    """A sentence of a CoNLL file.

    Attributes:
        words, tags: list of str, equally many.
        place: str, the file and the line of its first word.
    """

    words: list
    tags: list
    place: str


def read_conll(path, with_tags=True):
    """Yields the `Sentence`s of a file of columns: the word is the first one, its tag the last one.

    Columns are divided by tabs, or by spaces where there is no tab. A blank line ends a sentence; lines of -DOCSTART-
    (CoNLL-2003) are left out.

    Args:
        path: path of the file, which may be compressed.
        with_tags: bool, whether a word needs a tag; without, a column of words is enough.

    Raises:
        UserError: as `plain_text.read_lines`, or a word has no tag, or a line has not as many columns as the first.
    """
    words, tags, place, expected = [], [], "", None
    for number, line in enumerate(plain_text.read_lines(path), 1):
        if not line.strip():
            if words:
                yield Sentence(words, tags, place)
                words, tags = [], []
            continue
        parts = line.split("\t") if "\t" in line else re.split(" +", line.strip(" "))
        cells = [plain_text.clean(part) for part in parts]
        if cells[0] == "-DOCSTART-":
            continue
        where = f"{path}, line {number}"
        expected = expected or max(1 + with_tags, len(cells))
        if len(cells) != expected or not (cells[0] and cells[-1]):
            raise UserError(
                f"{where}: found {counted(len(cells), 'column')}{'' if all(cells) else ', one of them blank'}. "
                f"Expected {expected}, the word first and its tag last, and a blank line after each sentence."
            )
        place = place if words else where
        words.append(cells[0])
        tags.append(cells[-1])
    if words:
        yield Sentence(words, tags, place)


class Question(NamedTuple):
    """A question of a SQuAD file.

    Attributes:
        id: str.
        question, context: str.
        answers: list of (start, end), the characters of the context that are a right answer, without surrounding space.
        place: str, the file and the id.
    """

    id: str
    question: str
    context: str
    answers: list
    place: str

    @property
    def answer(self):
        """The one of the answers that is given most often, the first of several."""
        texts = [self.context[start:end] for start, end in self.answers]
        return self.answers[texts.index(max(texts, key=texts.count))]


def read_squad(path, with_answers=True):
    """Yields the `Question`s of a file in the format of SQuAD 1.1 (Rajpurkar et al. 2016).

    Args:
        path: path of the file, which may be compressed.
        with_answers: bool, whether a question needs an answer; without, none is read.

    Raises:
        UserError: as `plain_text.read_text`, or it is no such JSON, a question has no answer (SQuAD 2.0), or an answer
            is not in its context at the place given.
    """
    try:
        articles = strict_json("".join(plain_text.read_text(path)))["data"]
        paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    except ValueError as error:
        raise UserError(f"{path}: not JSON, or cut off: {error}. Expected a file in SQuAD's format.") from None
    except (TypeError, KeyError):
        paragraphs = None
    if not isinstance(paragraphs, list):
        raise _not_squad(path)
    names = set()
    for paragraph in paragraphs:
        try:
            context, questions = _text(paragraph["context"]), paragraph["qas"]
            for found in questions:
                name, question = _text(found["id"]), _text(found["question"])
                place = f"{path}, question {shown(name)}"
                if name in names:
                    raise UserError(f"{place}: its id occurs twice. Expected an id of its own for each question.")
                names.add(name)
                answers = found["answers"] if with_answers else ()
                spans = [_span(context, answer["answer_start"], _text(answer["text"]), place) for answer in answers]
                if with_answers and not spans:
                    raise UserError(f"{place}: has no answer. Expected one at least, a part of the context.")
                yield Question(name, question, context, spans, place)
        except (TypeError, KeyError):
            raise _not_squad(path) from None


def _text(value):
    """Returns a text of JSON, with U+FFFD for half a surrogate pair. Raises `TypeError` for what is no text."""
    return _HALVES.sub("\ufffd", value)


def _span(context, start, text, place):
    if not text.strip() or type(start) is not int or start < 0 or context[start : start + len(text)] != text:
        raise UserError(
            f"{place}: the answer {shown(text)} is not in its context at character {shown(start)}. Expected the place "
            "of its first character, counted from 0."
        )
    start += len(text) - len(text.lstrip())
    return start, start + len(text.strip())


def _not_squad(path):
    return UserError(
        f'{path}: not in SQuAD\'s format. Expected {{"data": [{{"paragraphs": [{{"context", "qas": [{{"id", '
        '"question", "answers": [{"text", "answer_start"}]}]}]}]}.'
    )
