"""A step of a model with several predicted features and a cost: its gradient is that of NumPy, on any replicas."""

# Nearest tests of: t2t_lite/training/train_step.py

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.settings.config import HParams
from tests.training.steps import placed, step_of

FEATURES = {"inputs": 2, "targets": 2, "label": 1}
LENGTH, VOCAB, LABELS = 5, 7, 3
HPARAMS = HParams().parse(
    "optimizer=sgd,learning_rate_schedule=constant,learning_rate_constant=1,label_smoothing=0,batch_size=9"
)


class Predicts(keras.Model):
    """Logits of the targets by their position, of a label, and a cost of each input."""

    def __init__(self, only_nonzero):
        super().__init__()
        self.only_nonzero = only_nonzero
        self.word = self.add_weight(shape=(LENGTH, VOCAB), initializer=keras.initializers.RandomNormal(seed=1))
        self.kind = self.add_weight(shape=(LABELS,), initializer=keras.initializers.RandomNormal(seed=2))
        self.price = self.add_weight(shape=(), initializer="ones")

    def call(self, batch, training=False):
        targets, inputs = batch["targets"], batch["inputs"]
        words = tf.zeros_like(targets, tf.float32)[..., None] + self.word[: tf.shape(targets)[1]]
        return {
            "targets": tf.boolean_mask(words, targets != 0) if self.only_nonzero else words,
            "label": tf.zeros_like(batch["label"], tf.float32)[:, None] + self.kind,
            "costs": {"inputs": tf.cast(inputs + 1, tf.float32) * self.price},  # at padding, too
        }


def eight_batches():
    """Their numbers of rows, words and labels differ a lot; the first has no label."""
    rng, batches = np.random.default_rng(0), []
    for i in range(8):
        inputs, targets = (rng.integers(0, VOCAB, (i + 1, rng.integers(1, LENGTH + 1))) for _ in range(2))
        batches.append({"inputs": inputs, "targets": targets, "label": rng.integers(0, min(i + 1, LABELS), i + 1)})
    return [{feature: ids.astype("int32") for feature, ids in batch.items()} for batch in batches]


def concatenated(batches):
    def padded(ids):
        return np.pad(ids, [(0, 0), *((0, LENGTH - width) for width in ids.shape[1:])])

    return {feature: np.concatenate([padded(batch[feature]) for batch in batches]) for feature in FEATURES}


def made(replicas=1, accumulation=1, only_nonzero=False):
    hparams = HPARAMS.override_from_dict({"gradient_accumulation_steps": accumulation})
    return step_of(lambda: Predicts(only_nonzero), hparams, replicas, features=FEATURES)


def taken(step, batches):
    """Returns what a step changes, and its metrics."""
    before = [weight.numpy() for weight in step.model.weights]
    metrics = step(placed(step, batches))
    changes = [old - weight.numpy() for old, weight in zip(before, step.model.weights, strict=True)]
    return changes, tf.nest.map_structure(float, metrics)


def less_one_hot(logits, labels):
    """The gradient of a cross-entropy."""
    odds = np.exp(logits.astype("float64"))
    return odds / odds.sum(-1, keepdims=True) - np.eye(logits.shape[-1])[labels]


def by_hand(model, batch):
    """The gradients of the loss of a batch, each feature divided by its own count."""
    word, kind, _ = (weight.numpy() for weight in model.weights)
    there = {feature: ids != 0 for feature, ids in batch.items()}
    of_words = (less_one_hot(word, batch["targets"]) * there["targets"][..., None]).sum(0)
    of_labels = (less_one_hot(kind, batch["label"]) * there["label"][..., None]).sum(0)
    of_price = ((batch["inputs"] + 1) * there["inputs"]).sum()
    gradients = {"targets": of_words, "label": of_labels, "inputs": of_price}
    return [gradient / max(there[feature].sum(), 1) for feature, gradient in gradients.items()]


@pytest.mark.few("1-1-True", "2-4-False")
@pytest.mark.slow
@pytest.mark.parametrize(
    "replicas, accumulation, only_nonzero",
    [(1, 1, False), (1, 1, True), (1, 8, False), (8, 1, False), (8, 1, True), (2, 4, False)],
)
def test_a_step_is_that_of_all_batches_as_one(replicas, accumulation, only_nonzero):
    step, batches = made(replicas, accumulation, only_nonzero), eight_batches()
    one = concatenated(batches)
    expected = by_hand(step.model, one)
    changes, metrics = taken(step, batches if replicas * accumulation == 8 else [one])
    for change, gradient in zip(changes, expected, strict=True):
        np.testing.assert_allclose(change, gradient, rtol=1e-4, atol=1e-6)
    count = np.count_nonzero(one["inputs"])
    assert metrics["cost"] == {"inputs": pytest.approx(one["inputs"].sum() + count)}
    assert metrics["nats"].keys() == metrics["objective"].keys() == {"targets", "label"}
    assert step.traces == 1


@pytest.mark.slow
def test_a_step_without_a_label_leaves_its_weights():
    batch = eight_batches()[3]
    (words, labels, _), metrics = taken(made(), [{**batch, "label": np.zeros_like(batch["label"])}])
    assert np.any(words) and not np.any(labels) and not metrics["skipped"]
