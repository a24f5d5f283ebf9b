"""The format of SQuAD (Rajpurkar et al. 2016, 2018): questions on texts, whose answers are spans of the text."""

import re
from typing import NamedTuple

from t2t_lite.corpora import plain_text
from t2t_lite.corpora.plain_text import report
from t2t_lite.errors import UserError, shown
from t2t_lite.files.safe_json import strict_json

_HALVES = re.compile("[\ud800-\udfff]")  # of surrogate pairs: JSON can escape one, but no text holds it


class Question(NamedTuple):
    """A question of a SQuAD file.

    Attributes:
        id: str.
        question, context: str.
        answers: list of (start, end), the character spans of correct answers in the context, without surrounding
            space; [] in SQuAD 2.0 if the context does not answer the question.
        place: str, the file and the id.
    """

    id: str
    question: str
    context: str
    answers: list
    place: str

    @property
    def answer(self):
        """The most frequent answer, or the first of several."""
        texts = [self.context[start:end] for start, end in self.answers]
        return self.answers[texts.index(max(texts, key=texts.count))]


def read_squad(path, with_answers=True, on_bad_line=None):
    """Yields the `Question`s of a file in the format of SQuAD 1.1 or 2.0.

    Args:
        path: path of the file, which may be compressed.
        with_answers: bool, whether answers are read; otherwise they may be missing.
        on_bad_line: None, or a function called with a message about each unreadable question, which is skipped: it has
            no answer, an answer is not at its offset in the context, or its text has bytes that are not UTF-8.

    Raises:
        UserError: as `plain_text.read_text`, or the file is not such JSON, a question has no answer and is not marked
            as impossible (SQuAD 2.0), or an answer is not at its offset in the context; the message says where it is.
    """
    errors = "strict" if on_bad_line is None else "replace"
    try:
        articles = strict_json("".join(plain_text.read_text(path, errors=errors)))["data"]
        paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    except ValueError as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path}: not JSON, or cut off: {error}. Expected a file in SQuAD's format.") from None
    except (TypeError, KeyError):
        paragraphs = None
    if not isinstance(paragraphs, list):
        raise _not_squad(path)
    names = set()
    for paragraph in paragraphs:
        try:
            context = _text(paragraph["context"])
            for entry in paragraph["qas"]:
                place = f"{path}, question {shown(_id(entry['id']))}"
                if _id(entry["id"]) in names:
                    raise UserError(f"{place}: its id occurs twice. Expected an id of its own for each question.")
                names.add(_id(entry["id"]))
                try:
                    question = _question(entry, context, place, with_answers, errors)
                except UserError as error:
                    report(str(error), on_bad_line)
                else:
                    yield question
        except (TypeError, KeyError, AttributeError):
            raise _not_squad(path) from None


def _question(entry, context, place, with_answers, errors):
    """Returns the `Question` of an entry of "qas". Raises `UserError` for bad answers or bytes."""
    question, is_impossible = _text(entry["question"]), entry.get("is_impossible") is True
    answers = entry["answers"] if with_answers and not is_impossible else ()
    if errors == "replace" and "\ufffd" in context + question:
        raise UserError(f"{place}: has bytes that are not UTF-8.")
    if with_answers and not (answers or is_impossible):
        raise UserError(
            f'{place}: has no answer. Expected one at least, a part of the context, or "is_impossible": true, as in '
            "SQuAD 2.0."
        )
    spans = [_span(context, answer["answer_start"], _text(answer["text"]), place) for answer in answers]
    return Question(_id(entry["id"]), question, context, spans, place)


def _text(value):
    """Returns a JSON string, with U+FFFD for half a surrogate pair. Raises `TypeError` for other values."""
    return _HALVES.sub("\ufffd", value)


def _id(value):
    """Returns an id as a str; some files number the questions. Raises `TypeError` for other values."""
    return str(value) if type(value) is int else _text(value)


def _span(context, start, text, place):
    if not text.strip() or type(start) is not int or start < 0 or context[start : start + len(text)] != text:
        raise UserError(
            f"{place}: the answer {shown(text)} is not in its context at character {shown(start)}. "
            f"{_where(context, start, text)} Expected the place of its first character, counted from 0."
        )
    start += len(text) - len(text.lstrip())
    return start, start + len(text.strip())


def _where(context, start, text):
    """Returns a sentence that says where an answer is."""
    if not text.strip():
        return "It is blank."
    places = [match.start() for match in re.finditer(re.escape(text), context)]
    if not places:
        return "It is nowhere in it."
    nearest = min(places, key=lambda place: abs(place - start)) if type(start) is int else places[0]
    return f"It is at character {nearest:,}{f', and {len(places) - 1:,} times elsewhere' if len(places) > 1 else ''}."


def _not_squad(path):
    return UserError(
        f'{path}: not in SQuAD\'s format. Expected {{"data": [{{"paragraphs": [{{"context", "qas": [{{"id", '
        '"question", "answers": [{"text", "answer_start"}]}]}]}]}.'
    )
