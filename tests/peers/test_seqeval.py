"""Entity F1 equals seqeval's, on random tags of every scheme."""

import random

import pytest

TAG_METRICS = pytest.importorskip("t2t_lite.extras.tagging.tag_metrics").TAG_METRICS
seqeval = pytest.importorskip("seqeval.metrics")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("marks", ["BI", "I", "BIES", "EI"])
@pytest.mark.parametrize("types", [["-PER", "-LOC", "-a-b"], [""]])
def test_entity_scores(marks, types):
    draw = random.Random(0)
    tags = ["O", *(mark + kind for mark in marks for kind in types)]
    for _ in range(100):
        expected = [draw.choices(tags, k=draw.randint(1, 12)) for _ in range(20)]
        predicted = [[draw.choice([tag, tag, *tags]) for tag in sentence] for sentence in expected]
        for name in ("precision", "recall", "f1"):
            score = TAG_METRICS[f"entity_{name}"](predicted, expected)
            assert score == pytest.approx(getattr(seqeval, f"{name}_score")(expected, predicted), abs=1e-12)
