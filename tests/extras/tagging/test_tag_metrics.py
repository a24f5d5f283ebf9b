"""Metrics of tags, against values worked out by hand."""

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.evaluation import answer_scores
from t2t_lite.evaluation.metrics import metric_names, shown_metrics
from t2t_lite.extras.tagging.tag_metrics import OF_TAGS
from t2t_lite.settings.config import HParams
from t2t_lite.tasks.task import unit_of

TAGS = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC"]], [["B-PER", "I-PER", "O", "B-ORG"], ["B-LOC", "B-LOC"]]


@pytest.mark.parametrize(
    "name, predicted, expected, score",
    [
        ("token_accuracy", *TAGS, 4 / 6),
        ("entity_precision", *TAGS, 2 / 3),
        ("entity_recall", *TAGS, 2 / 4),
        ("entity_f1", *TAGS, 2 * 2 / (3 + 4)),
        ("entity_f1", [["O", "O"]], [["O", "O"]], 0.0),
    ],
)
def test_scores(name, predicted, expected, score):
    assert OF_TAGS[name](predicted, expected) == pytest.approx(score, abs=1e-12)


def test_tags_of_no_entities():
    with pytest.raises(UserError, match=r"entities: the tags 'NOUN, VERB'\. Expected O, B-"):
        OF_TAGS["entity_f1"]([["NOUN", "VERB"]], [["NOUN", "VERB"]])


def test_what_an_input_is_called_and_what_an_evaluation_shows():
    problem, hparams = registry.problem("tag_own"), HParams()
    assert unit_of(problem) == "sentence"
    assert shown_metrics(problem, hparams, metric_names(problem, hparams)) == ["loss", "token_accuracy"]


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        ([["O", "B-x"]], ["token_accuracy", "entity_f1", "entity_precision", "entity_recall"]),
        ([["NN", "VB"]], ["token_accuracy"]),
    ],
)
def test_the_metrics_that_the_answers_allow(expected, names):
    assert answer_scores.metric_names("tagging", expected) == names
