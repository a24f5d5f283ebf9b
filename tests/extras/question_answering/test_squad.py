"""Metrics of answers in a text, against values worked out by hand."""

import pytest

from t2t_lite import registry
from t2t_lite.evaluation import answer_scores
from t2t_lite.evaluation.metrics import metric_names, shown_metrics
from t2t_lite.extras.question_answering.squad import OF_SPANS
from t2t_lite.settings.config import HParams
from t2t_lite.tasks.task import unit_of


@pytest.mark.parametrize(
    "name, predicted, expected, score",
    [
        ("exact_match", ["The cat!", "a dog", "fox"], ["cat", ["cat", "dog"], "the red fox"], 2 / 3),
        ("squad_f1", ["The cat!", "red red dog", "bird"], ["cat", ["cat", "red dog"], "fox"], (1 + 4 / 5 + 0) / 3),
        ("squad_f1", ["a red, red dog"], ["red red fox"], 2 * 2 / (3 + 3)),
        ("squad_f1", ["北京市", "1949 年。"], ["北京", ["1949年", "一九四九年"]], (4 / 5 + 1) / 2),  # of characters
    ],
)
def test_scores(name, predicted, expected, score):
    assert OF_SPANS[name](predicted, expected) == pytest.approx(score, abs=1e-12)


def test_what_an_input_is_called_and_what_an_evaluation_shows():
    problem, hparams = registry.problem("qa_own"), HParams()
    assert unit_of(problem) == "question"
    assert shown_metrics(problem, hparams, metric_names(problem, hparams)) == ["loss", "squad_f1"]


def test_the_metrics_of_answers():
    assert answer_scores.metric_names("spans", ["x"]) == ["exact_match", "squad_f1"]
