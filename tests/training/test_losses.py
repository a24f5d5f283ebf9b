"""The loss against its definition with one-hot labels, and its gradient against automatic differentiation."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.training.losses import cross_entropy

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(3, 4, 7)).astype("float32")
TARGETS = np.array([[3, 4, 1, 0], [5, 1, 0, 0], [2, 2, 6, 1]], "int32")


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
    logits = tf.constant(LOGITS)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(logits)
        objective, nats = cross_entropy(logits, tf.constant(TARGETS), smoothing, keeps_softmax)
        expected = by_definition(logits, smoothing)
    np.testing.assert_allclose((objective, nats), (expected, by_definition(logits, 0.0)), rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(objective, logits), tape.gradient(expected, logits), atol=1e-6)


@pytest.mark.parametrize("keeps_softmax", [True, False])
def test_large_logits_do_not_overflow(keeps_softmax):
    objective, nats = cross_entropy(tf.constant(LOGITS * 1e4), tf.constant(TARGETS), 0.1, keeps_softmax)
    assert np.isfinite(objective) and np.isfinite(nats)
