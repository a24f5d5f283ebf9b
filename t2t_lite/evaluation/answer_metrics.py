"""Metrics of answers: classes, numbers, tags of words, and parts of texts, from 0 (or -1) to 1."""

import dataclasses
from collections.abc import Callable

import numpy as np

from t2t_lite.corpora.scripts import lacks_spaces
from t2t_lite.errors import UserError, needs, shown
from t2t_lite.extras.question_answering.squad import characters_as_words, is_match, word_f1
from t2t_lite.extras.tagging.entities import EXPECTED, are_of_entities, entity_counts


@dataclasses.dataclass(frozen=True)
class AnswerMetric:
    """A metric of answers in two steps, the second of which can be repeated for many samples of the answers.

    Attributes:
        rows: function of (predicted, expected), two lists of answers, that returns an array with a row for each.
        score: function of such rows, at least one, that returns a float.
        check: function that raises `UserError` if the metric needs a package that is not installed.
        allows: function of the list of all answers that returns whether the metric is meaningful for them.
        is_registered: bool, whether evaluations compute it from answers; False: a metric of that name is in the graph.
    """

    rows: Callable
    score: Callable
    check: Callable = lambda: None
    allows: Callable = lambda answers: True
    is_registered: bool = True

    @property
    def __wrapped__(self):
        """A function of the module that defines the metric, by which `inspect` finds the module."""
        return self.rows

    def __call__(self, predicted, expected):
        """Returns the score, a float."""
        return float(self.score(self.rows(predicted, expected)))


def _labels():
    return _installed("sklearn.metrics", "scikit-learn")


def _numbers():
    return _installed("scipy.stats", "scipy")


def _installed(module, package):
    import importlib

    with needs(package, "labels", "this metric"):
        return importlib.import_module(module)


def _pairs(predicted, expected):
    return np.transpose([predicted, expected])


def _codes(predicted, expected):
    """Returns int [answers, 2], the numbers of the labels in alphabetical order."""
    return np.unique(_pairs(predicted, expected), return_inverse=True)[1].reshape(-1, 2)


def _is_positive(predicted, expected):
    """Returns bool [answers, 2], whether a label is the last one in alphabetical order: 1, true, yes, positive."""
    labels = sorted({*predicted, *expected})
    if len(labels) > 2:
        raise UserError(
            f"f1_binary: {len(labels)} labels, {shown(', '.join(labels))}. Expected two; for more there is f1_macro."
        )
    return _pairs(predicted, expected) == labels[-1]


def _correlation(correlate):
    """Returns the score of a correlation, a function of (predicted, expected); with a constant it is 0."""

    def score(rows):
        return 0.0 if (rows == rows[0]).all(axis=0).any() else correlate(*rows.T)

    return score


def _hits(predicted, expected):
    return np.array([a == b for a, b in zip(predicted, expected, strict=True)], float)


def _word_counts(predicted, expected):
    """Returns int [sentences, 2]: the words with the right tag, and all words."""
    pairs = zip(predicted, expected, strict=True)
    return np.array([(sum(a == b for a, b in zip(*tags, strict=True)), len(tags[1])) for tags in pairs])


def _has_entities(answers):
    return are_of_entities({tag for tags in answers for tag in tags})


def _entity_counts(predicted, expected):
    if not _has_entities([*predicted, *expected]):
        tags = sorted({tag for sentence in (*predicted, *expected) for tag in sentence})
        raise UserError(f"entities: the tags {shown(', '.join(tags))}. Expected {EXPECTED}.")
    return entity_counts(predicted, expected)


def _share(part, *wholes):
    """Returns a score of rows of counts: len(wholes) times the sum of column `part` over those of `wholes`, as F1."""

    def score(rows):
        sums = rows.sum(axis=0)
        whole = sums[list(wholes)].sum()
        return len(wholes) * sums[part] / whole if whole else 0.0

    return score


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


OF_CLASSES = {
    "accuracy": AnswerMetric(_hits, np.mean, is_registered=False),
    "f1_macro": AnswerMetric(
        _codes,
        lambda rows: _labels().f1_score(rows[:, 1], rows[:, 0], average="macro", zero_division=0.0),
        check=_labels,
    ),
    "f1_binary": AnswerMetric(
        _is_positive,
        lambda rows: _labels().f1_score(rows[:, 1], rows[:, 0], zero_division=0.0),
        check=_labels,
        allows=lambda answers: len(set(answers)) == 2,
    ),
    "mcc": AnswerMetric(_codes, _correlation(lambda a, b: _labels().matthews_corrcoef(b, a)), check=_labels),
}
OF_NUMBERS = {
    "pearson": AnswerMetric(_pairs, _correlation(lambda a, b: _numbers().pearsonr(a, b).statistic), check=_numbers),
    "spearman": AnswerMetric(_pairs, _correlation(lambda a, b: _numbers().spearmanr(a, b).statistic), check=_numbers),
}
OF_TAGS = {
    "token_accuracy": AnswerMetric(_word_counts, _share(0, 1), is_registered=False),
    "entity_f1": AnswerMetric(_entity_counts, _share(0, 1, 2), allows=_has_entities),
    "entity_precision": AnswerMetric(_entity_counts, _share(0, 1), allows=_has_entities),
    "entity_recall": AnswerMetric(_entity_counts, _share(0, 2), allows=_has_entities),
}
OF_SPANS = {
    "exact_match": AnswerMetric(_of_golds(is_match), np.mean),
    "squad_f1": AnswerMetric(_squad_f1, np.mean),
}
