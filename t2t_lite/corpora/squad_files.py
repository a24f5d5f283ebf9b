"""The format of SQuAD (Rajpurkar et al. 2016, 2018): questions on texts, of which a part is the answer."""

import re
from typing import NamedTuple

from t2t_lite.corpora import plain_text
from t2t_lite.errors import UserError, shown
from t2t_lite.files.safe_json import strict_json

_HALVES = re.compile("[\ud800-\udfff]")  # of surrogate pairs: JSON can escape one, but no text holds it


class Question(NamedTuple):
    """A question of a SQuAD file.

    Attributes:
        id: str.
        question, context: str.
        answers: list of (start, end), the characters of the context that are a right answer, without surrounding space.
            [] in SQuAD 2.0: the context does not answer it.
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


def read_squad(path, with_answers=True, on_bad_line=None):
    """Yields the `Question`s of a file in the format of SQuAD 1.1 or 2.0.

    Args:
        path: path of the file, which may be compressed.
        with_answers: bool, whether answers are read; without, there need not be any.
        on_bad_line: None, or a function that gets a message about each question that cannot be read, which is left out:
            it has no answer, one is not in the context at the place given, or its text has bytes that are not UTF-8.

    Raises:
        UserError: as `plain_text.read_text`, or it is no such JSON, a question has no answer that SQuAD 2.0 does not
            mark as impossible, or an answer is not in its context at the place given; the message says where it is.
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
                    if on_bad_line is None:
                        raise
                    on_bad_line(str(error))
                else:
                    yield question
        except (TypeError, KeyError, AttributeError):
            raise _not_squad(path) from None


def _question(entry, context, place, with_answers, errors):
    """Returns the `Question` of an entry of "qas". Raises `UserError` for its answers or its encoding."""
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
    """Returns a text of JSON, with U+FFFD for half a surrogate pair. Raises `TypeError` for what is no text."""
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
    """Returns a sentence about where an answer is."""
    if not text.strip():
        return "It is blank."
    places = [found.start() for found in re.finditer(re.escape(text), context)]
    if not places:
        return "It is nowhere in it."
    nearest = min(places, key=lambda place: abs(place - start)) if type(start) is int else places[0]
    return f"It is at character {nearest:,}{f', and {len(places) - 1:,} times elsewhere' if len(places) > 1 else ''}."


def _not_squad(path):
    return UserError(
        f'{path}: not in SQuAD\'s format. Expected {{"data": [{{"paragraphs": [{{"context", "qas": [{{"id", '
        '"question", "answers": [{"text", "answer_start"}]}]}]}]}.'
    )
