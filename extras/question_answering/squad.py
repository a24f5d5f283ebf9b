"""How SQuAD 1.1 compares answers (Rajpurkar et al. 2016; its evaluate-v1.1.py).

Answers without spaces are compared by their characters instead of words, as MLQA compares Chinese ones (Lewis et al.
2020; its mlqa_evaluation_v1.py).
"""

import collections
import functools
import re
import string
import unicodedata

import numpy as np

from t2t_lite.corpora.scripts import WITHOUT_SPACES, lacks_spaces
from t2t_lite.evaluation.answer_scores import AnswerMetric

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


@functools.lru_cache(2**16)  # references recur at each evaluation
def words_of(answer):
    """Returns the words that are compared, a tuple: in lower case, without punctuation and English articles."""
    return tuple(_ARTICLES.sub(" ", answer.lower().translate(_WITHOUT_PUNCTUATION)).split())


def characters_as_words(answer):
    """Returns an answer with spaces around each character of a script without them, and without their punctuation."""
    answer = WITHOUT_SPACES.sub(r" \g<0> ", answer)
    return "".join(character for character in answer if not unicodedata.category(character).startswith("P"))


def is_match(answer, golds):
    """Returns whether an answer has the words of one of the gold answers in their order."""
    return words_of(answer) in map(words_of, golds)


def word_f1(answer, golds):
    """Returns the F1 of an answer's words, regardless of their order, against the most similar gold answer.

    An answer without words matches the gold answer "" of a question that the context does not answer (SQuAD 2.0).
    """
    return max(_f1(words_of(answer), words_of(gold)) if gold else float(not words_of(answer)) for gold in golds)


def _f1(answer, gold):
    answer, gold = collections.Counter(answer), collections.Counter(gold)
    common = (answer & gold).total()
    return 2 * common / (answer.total() + gold.total()) if common else 0.0


def _of_golds(compare):
    """Returns the function of rows of a comparison of an answer with one gold answer, a str, or several."""

    def rows(predicted, expected):
        golds = [[gold] if isinstance(gold, str) else gold for gold in expected]
        return np.array([compare(a, b) for a, b in zip(predicted, golds, strict=True)], float)

    return rows


def _squad_f1(predicted, expected):
    """Returns the F1 of each answer: of its words, or of its characters if the gold answers have no spaces."""
    golds = [[gold] if isinstance(gold, str) else gold for gold in expected]
    if lacks_spaces([gold for of_one in golds for gold in of_one]):
        predicted = [*map(characters_as_words, predicted)]
        golds = [[*map(characters_as_words, of_one)] for of_one in golds]
    return _of_golds(word_f1)(predicted, golds)


OF_SPANS = {
    "exact_match": AnswerMetric(_of_golds(is_match), np.mean),
    "squad_f1": AnswerMetric(_squad_f1, np.mean),
}
