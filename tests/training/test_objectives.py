"""The loss of a feature by its definition and automatic differentiation; the objective of several, and costs."""

# Nearest tests of: t2t_lite/training/losses.py

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.training.losses import cross_entropy
from t2t_lite.training.objectives import mean_loss, objective_sums

RNG = np.random.default_rng(0)
BATCH = {
    "inputs": np.array([[3, 4, 1], [5, 1, 0]]),
    "targets": np.array([[2, 0, 5, 1], [0, 4, 0, 0]]),
    "label": np.array([2, 0]),
}
LOGITS = {"targets": RNG.normal(size=(2, 4, 7)).astype("float32"), "label": RNG.normal(size=(2, 3)).astype("float32")}
OF_TOKENS = RNG.normal(size=(3, 4, 7)).astype("float32")
TARGETS = np.array([[3, 4, 1, 0], [5, 1, 0, 0], [2, 2, 6, 1]], "int32")
COSTS = {"inputs": np.array([[1.0, 2.0, 4.0], [8.0, 16.0, np.nan]], "float32")}


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_sums_are_of_each_feature_alone(smoothing):
    sums = objective_sums({**LOGITS, "costs": COSTS}, BATCH, smoothing)
    for feature, logits in LOGITS.items():
        expected = cross_entropy(tf.constant(logits), tf.constant(BATCH[feature]), smoothing)
        np.testing.assert_allclose((sums.objective[feature], sums.nats[feature]), expected, rtol=1e-5)
    assert {feature: float(cost) for feature, cost in sums.cost.items()} == {"inputs": 31.0}  # none of padding


def test_logits_of_the_positions_that_count_are_enough():
    there = {**LOGITS, "targets": LOGITS["targets"][BATCH["targets"] != 0]}
    for some, every in zip(objective_sums(there, BATCH, 0.1), objective_sums(LOGITS, BATCH, 0.1), strict=True):
        some, every = ({feature: float(value) for feature, value in sums.items()} for sums in (some, every))
        assert some == pytest.approx(every, rel=1e-6)


def test_the_loss_divides_each_feature_by_its_own_count():
    sums = objective_sums({**LOGITS, "costs": COSTS}, BATCH)
    counts = {feature: tf.constant(n) for feature, n in (("inputs", 10.0), ("targets", 5.0), ("label", 0.0))}
    assert float(mean_loss(sums, counts)) == pytest.approx(float(sums.objective["targets"]) / 5 + 31.0 / 10)


@pytest.mark.parametrize(
    "outputs, message",
    [
        ({"label": LOGITS["label"]}, r"predicts label\. .*: inputs, targets, label\."),
        ({**LOGITS, "tag": LOGITS["label"]}, "'tag'"),
        ({**LOGITS, "costs": {"depth": COSTS["inputs"]}}, "'depth'"),
    ],
)
def test_outputs_that_do_not_fit_the_batch_are_named(outputs, message):
    with pytest.raises(UserError, match=message):
        objective_sums(outputs, BATCH)


def by_definition(logits, smoothing):
    """-Σ q log p less its smallest value, with q = 1 - ε on the label and ε / (V - 1) elsewhere."""
    log_p = tf.nn.log_softmax(logits)
    size = logits.shape[-1]
    q = np.where(np.eye(size)[TARGETS], 1 - smoothing, smoothing / (size - 1)).astype("float32")
    entropy = -np.sum(q * np.log(np.where(q > 0, q, 1)), -1)
    return tf.reduce_sum((-tf.reduce_sum(q * log_p, -1) - entropy) * (TARGETS != 0))


@pytest.mark.parametrize("keeps_softmax", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
def test_equals_the_definition_and_its_gradient(smoothing, keeps_softmax):
    logits = tf.constant(OF_TOKENS)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(logits)
        objective, nats = cross_entropy(logits, tf.constant(TARGETS), smoothing, keeps_softmax)
        expected = by_definition(logits, smoothing)
    np.testing.assert_allclose((objective, nats), (expected, by_definition(logits, 0.0)), rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(objective, logits), tape.gradient(expected, logits), atol=1e-6)


@pytest.mark.parametrize("keeps_softmax", [True, False])
def test_large_logits_do_not_overflow(keeps_softmax):
    objective, nats = cross_entropy(tf.constant(OF_TOKENS * 1e4), tf.constant(TARGETS), 0.1, keeps_softmax)
    assert np.isfinite(objective) and np.isfinite(nats)
