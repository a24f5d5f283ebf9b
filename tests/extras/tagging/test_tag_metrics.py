"""Metrics of tags, against values worked out by hand."""

import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.tagging.tag_metrics import OF_TAGS

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
