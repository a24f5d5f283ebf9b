"""Computations that `benchmarks/gpu.py` compares on a card, as far as a CPU can run them."""

# Nearest tests of: benchmarks/card/fused_attention.py, benchmarks/card/loss_blocks.py

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.card import fused_attention, loss_blocks


@pytest.mark.slow
def test_both_calls_of_fused_attention_stand_in_the_program():
    assert fused_attention.compare()["ok"]


@pytest.mark.parametrize("causal", [False, True])
def test_plain_attention_is_that_of_the_paper(causal):
    query, key, value = np.random.default_rng(0).normal(size=(3, 2, 3, 5, 8)).astype("float32")
    lengths = np.array([5, 3], "int32")
    scores = query @ key.swapaxes(2, 3) / np.sqrt(8)
    is_seen = np.arange(5) < lengths[:, None, None, None]
    is_seen = is_seen & (np.tri(5, dtype=bool) if causal else True)
    weights = np.where(is_seen, np.exp(scores), 0)
    expected = weights / weights.sum(-1, keepdims=True) @ value
    result = fused_attention.plain(*map(tf.constant, (query, key, value)), lengths, causal)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("block", [3, 12])
def test_the_loss_in_blocks_is_that_of_all_logits(block):
    draw = np.random.default_rng(1)
    hidden, kernel = (tf.constant(draw.normal(size=size), tf.float32) for size in ((12, 5), (17, 5)))
    targets = tf.constant(draw.integers(0, 17, 12), tf.int32)
    results = []
    for loss_of in (loss_blocks.plain, lambda *inputs: loss_blocks.in_blocks(*inputs, block)):
        with tf.GradientTape() as tape:
            tape.watch([hidden, kernel])
            loss = 0.25 * loss_of(hidden, kernel, targets)  # a factor that the gradient has to have
        results.append([loss, *tape.gradient(loss, [hidden, kernel])])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
