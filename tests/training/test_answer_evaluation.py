"""Evaluations by metrics of answers, on models that are known: what they say depends on the ids alone."""

# Nearest tests of: t2t_lite/training/evaluator.py

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data import sharding
from t2t_lite.data.problem import Problem
from t2t_lite.evaluation.metrics import metric_names
from t2t_lite.settings.config import HParams
from t2t_lite.text.class_label_encoder import ClassLabelEncoder, RealEncoder
from t2t_lite.text.vocabulary import TextEncoder
from t2t_lite.training.evaluator import Evaluator
from tests.registered import registered
from tests.training.runs import given_records

HPARAMS = HParams(batch_size=1000, eval_decode_examples=0)
LABELS, TAGS = ["no", "yes"], ["O", "B-PER", "I-PER"]
COUNT = 30
answered = []


@registry.register_metric(of="answers", lower_is_better=True)
def wrong_answers(predicted, expected):
    answered[:] = zip(predicted, expected, strict=True)
    return np.mean([a != b for a, b in answered]), {"answers": len(predicted)}


def class_logits(ids):
    """Sure of id 0, which is no class, and then of the parity of the first id."""
    return tf.constant([9.0, 0.0, 0.0]) + 5.0 * tf.one_hot(1 + ids[:, 0] % 2, 3)


def span_logits(ids):
    """Sure of the end of the question, position 3, and then of the last two ids of the context."""
    length, width = tf.math.count_nonzero(ids, axis=1, dtype=tf.int32), 1 + tf.shape(ids)[1]
    return 9.0 * tf.one_hot([[3, 3]], width) + 5.0 * tf.one_hot(tf.stack([length - 2, length - 1], 1), width)


def tags(of_id):
    """A function of a row: the tags of all positions but the second, a later piece of the first word, and the ends."""
    return lambda ids: [TAGS[of_id(i)] for at, i in enumerate(ids) if i != 1 and at != 1]


class Case(NamedTuple):
    """How a task's answers are given. A row of ids is [a, b, 1, c, d, …, 1], numbers from 4 to 15 and two ends."""

    rank: int  # of targets
    encoder: object  # of targets
    logits: object  # function of inputs [B, T]
    targets: object  # function of a row
    predicted: object  # function of a row
    expected: object  # function of a row
    metric: str


CASES = {
    "classification": Case(
        1, ClassLabelEncoder(LABELS), class_logits, lambda ids: [1 + ids[1] % 2], lambda ids: LABELS[ids[0] % 2],
        lambda ids: LABELS[ids[1] % 2], "f1_binary",
    ),
    "regression": Case(
        1, RealEncoder(0, 15), lambda ids: tf.cast(ids[:, 0][:, None], tf.float32) / 15,
        lambda ids: [1 + 4369 * ids[1]], lambda ids: pytest.approx(ids[0]), lambda ids: ids[1], "pearson",
    ),
    "tagging": Case(
        2, ClassLabelEncoder(TAGS), lambda ids: tf.one_hot(1 + ids % 3, 4),
        lambda ids: [0 if at == 1 or i == 1 else 1 + i // 3 % 3 for at, i in enumerate(ids)],
        tags(lambda i: i % 3), tags(lambda i: i // 3 % 3), "entity_f1",
    ),
    "spans": Case(
        2, TextEncoder(100), span_logits, lambda ids: [4, 5], lambda ids: TextEncoder(16).decode(ids[-3:-1]),
        lambda ids: TextEncoder(16).decode(ids[3:5]), "squad_f1",
    ),
}  # fmt: skip


class Asked(Problem):
    """A problem of one of the cases."""

    eval_decode_metric = None

    def __init__(self, task):
        super().__init__()
        self.task, self.features = task, {"inputs": 2, "targets": CASES[task].rank}

    def eval_metrics(self):
        return ["wrong_answers", CASES[self.task].metric]


@pytest.mark.slow
@pytest.mark.few("tagging", "spans")
@pytest.mark.parametrize("task", registered(CASES))
def test_a_metric_gets_all_answers_of_the_set(task, tmp_path):
    case, draw, path = CASES[task], np.random.default_rng(0), str(tmp_path / "records")
    rows = [[*draw.integers(4, 16, 2), 1, *draw.integers(4, 16, draw.integers(2, 7)), 1] for _ in range(COUNT)]
    rows = [[int(i) for i in row] for row in rows]
    sharding.write_shards(({"inputs": row, "targets": case.targets(row)} for row in rows), [path], seed=0)
    encoders, problem, found = {"inputs": TextEncoder(16), "targets": case.encoder}, Asked(task), []

    def model(batch, training):
        return case.logits(batch["inputs"])

    for batch_size in (1000, 40):
        hparams = HPARAMS.override_from_dict({"batch_size": batch_size})
        metrics, _, facts = Evaluator(model, encoders, hparams, given_records(problem, [path]))()
        assert len(answered) == COUNT == facts["answers"]
        pairs = [(case.predicted(row), case.expected(row)) for row in rows]
        assert all(answered.count(pair) == pairs.count(pair) for pair in pairs)
        assert metrics["wrong_answers"] == np.mean([a != b for a, b in pairs])
        score = registry.metric(case.metric)(*zip(*answered, strict=True))
        assert 0.0 != metrics[case.metric] == score
        found.append([metrics[name] for name in problem.eval_metrics()])
    assert found[0] == pytest.approx(found[1])
    assert set(metric_names(problem, HPARAMS)) == set(metrics)
