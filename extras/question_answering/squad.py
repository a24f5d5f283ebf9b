"""Reads files in SQuAD's format (Rajpurkar et al. 2016, 2018) and computes SQuAD's metrics (evaluate-v1.1.py).

Answers in scripts without spaces are compared by characters instead of words, as in MLQA (Lewis et al. 2020,
mlqa_evaluation_v1.py).
"""

import collections
import functools
import re
import string
import unicodedata
from typing import NamedTuple

import numpy as np

from t2t_lite.corpora import plain_text
from t2t_lite.corpora.plain_text import report
from t2t_lite.corpora.scripts import WITHOUT_SPACES, lacks_spaces
from t2t_lite.errors import UserError, counted, shown
from t2t_lite.evaluation.answer_scores import AnswerMetric
from t2t_lite.files.safe_json import strict_json

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


@functools.lru_cache(2**16)  # each evaluation reuses the same references
def words_of(answer):
    """Splits an answer into lower-case words, a tuple of str; removes punctuation and English articles."""
    return tuple(_ARTICLES.sub(" ", answer.lower().translate(_WITHOUT_PUNCTUATION)).split())


def characters_as_words(answer):
    """Puts spaces around each character of scripts without spaces, and removes punctuation."""
    answer = WITHOUT_SPACES.sub(r" \g<0> ", answer)
    return "".join(character for character in answer if not unicodedata.category(character).startswith("P"))


def is_match(answer, golds):
    """Returns whether an answer has the same words, in the same order, as one of the gold answers."""
    return words_of(answer) in map(words_of, golds)


def word_f1(answer, golds):
    """Returns the F1 of an answer's words, in any order, against the most similar gold answer.

    An answer without words matches the gold answer "", which means that the context does not answer the question (SQuAD
    2.0).
    """
    return max(_f1(words_of(answer), words_of(gold)) if gold else float(not words_of(answer)) for gold in golds)


def _f1(answer, gold):
    answer, gold = collections.Counter(answer), collections.Counter(gold)
    common = (answer & gold).total()
    return 2 * common / (answer.total() + gold.total()) if common else 0.0


def _listed(expected):
    """Returns the list of gold answers to each question; `expected` has a str or a list of str for each."""
    return [[gold] if isinstance(gold, str) else gold for gold in expected]


def _exact_match(predicted, expected):
    """Returns whether each answer is one of the gold answers."""
    return np.array([is_match(*pair) for pair in zip(predicted, _listed(expected), strict=True)], float)


def _squad_f1(predicted, expected):
    """Returns each answer's F1 over words, or over characters if the gold answers are in scripts without spaces."""
    golds = _listed(expected)
    if lacks_spaces([gold for answers in golds for gold in answers]):
        predicted = [*map(characters_as_words, predicted)]
        golds = [[*map(characters_as_words, answers)] for answers in golds]
    return np.array([word_f1(*pair) for pair in zip(predicted, golds, strict=True)], float)


SPAN_METRICS = {"exact_match": AnswerMetric(_exact_match, np.mean), "squad_f1": AnswerMetric(_squad_f1, np.mean)}


class Question(NamedTuple):
    """A question from a SQuAD file.

    Attributes:
        id: str.
        question, context: str.
        answers: list of (start, end), the character spans of correct answers in the context, without surrounding
            spaces; [] in SQuAD 2.0 if the context does not answer the question.
        place: str, the file and the question's id, for messages.
    """

    id: str
    question: str
    context: str
    answers: list
    place: str

    @property
    def answer(self):
        """The most frequent answer; ties go to the first."""
        texts = [self.context[start:end] for start, end in self.answers]
        return self.answers[texts.index(max(texts, key=texts.count))]


def read_squad(path, with_answers=True, on_bad_line=None):
    """Yields a `Question` for each question in a file in the format of SQuAD 1.1 or 2.0.

    Args:
        path: path of the file, which may be compressed.
        with_answers: bool, whether answers are read; if False, they may be missing.
        on_bad_line: None, or a function called with a message about each bad question, which is skipped. A question is
            bad if it has no answer, an answer is not at its offset in the context, or its text has bytes that are not
            UTF-8.

    Raises:
        UserError: as for `plain_text.read_text`, or the JSON is not in SQuAD's format, a question has no answer and is
            not marked as impossible (SQuAD 2.0), or an answer is not at its offset in the context. If an offset is
            wrong, the message contains the right offset.
    """
    try:
        articles = strict_json("".join(plain_text.read_text(path, on_bad_line, keeps_bad=True)))["data"]
        paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    except ValueError as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path}: not JSON, or truncated: {error}. Expected a file in SQuAD's format.") from None
    except (TypeError, KeyError):
        raise _not_squad(path) from None
    names = set()
    for paragraph in paragraphs:
        try:
            context = _text(paragraph["context"])
            for entry in paragraph["qas"]:
                place = f"{path}, question {shown(_id(entry['id']))}"
                if _id(entry["id"]) in names:
                    raise UserError(f"{place}: two questions have this id. Expected a different id for each question.")
                names.add(_id(entry["id"]))
                try:
                    question = _question(entry, context, place, with_answers, on_bad_line is None)
                except UserError as error:
                    report(str(error), on_bad_line)
                else:
                    yield question
        except (TypeError, KeyError, AttributeError):
            raise _not_squad(path) from None


def _question(entry, context, place, with_answers, allows_replacements):
    """Parses an entry of "qas" into a `Question`. Raises `UserError` for bad answers or bytes."""
    question, is_impossible = _text(entry["question"]), entry.get("is_impossible") is True
    answers = entry["answers"] if with_answers and not is_impossible else ()
    if "\ufffd" in context + question and not allows_replacements:
        raise UserError(f"{place}: has bytes that are not UTF-8.")
    if with_answers and not (answers or is_impossible):
        raise UserError(
            f'{place}: has no answer. Expected at least one part of the context, or "is_impossible": true as in SQuAD '
            "2.0."
        )
    spans = [_span(context, answer["answer_start"], _text(answer["text"]), place) for answer in answers]
    return Question(_id(entry["id"]), question, context, spans, place)


def _text(value):
    """Replaces unpaired surrogates in a JSON string with U+FFFD. Raises `TypeError` if the value is not a string."""
    return plain_text.SURROGATE.sub("\ufffd", value)


def _id(value):
    """Returns an id as a str, because some files use numbers as ids. Raises `TypeError` for other values."""
    return str(value) if type(value) is int else _text(value)


def _span(context, start, text, place):
    if not text.strip() or type(start) is not int or start < 0 or context[start : start + len(text)] != text:
        raise UserError(
            f"{place}: the answer {shown(text)} is not in its context at character {shown(start)}. "
            f"{_where(context, start, text)} Expected the offset of its first character, counted from 0."
        )
    start += len(text) - len(text.lstrip())
    return start, start + len(text.strip())


def _where(context, start, text):
    """Returns a sentence for error messages about the position of an answer in its context."""
    if not text.strip():
        return "It is blank."
    places = [match.start() for match in re.finditer(re.escape(text), context)]
    if not places:
        return "It does not occur in the context."
    nearest = min(places, key=lambda place: abs(place - start)) if type(start) is int else places[0]
    elsewhere = f", and {counted(len(places) - 1, 'time')} elsewhere" if len(places) > 1 else ""
    return f"It is at character {nearest:,}{elsewhere}."


def _not_squad(path):
    return UserError(
        f'{path}: not in SQuAD\'s format. Expected {{"data": [{{"paragraphs": [{{"context", "qas": [{{"id", '
        '"question", "answers": [{"text", "answer_start"}]}]}]}]}.'
    )
