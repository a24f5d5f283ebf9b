"""Metrics of answers, from 0 (or -1) to 1: what such a metric is, and those of classes and numbers."""

import dataclasses
from collections.abc import Callable

import numpy as np

from t2t_lite.errors import UserError, needs, shown


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
