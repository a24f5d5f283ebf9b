"""Masks of 16 bits in a step that XLA compiles, which are a hash of each element's place, and the softmax there."""

# Nearest tests of: t2t_lite/layers/dropout.py, t2t_lite/layers/masks.py

import numpy as np
import pytest

from t2t_lite.layers import Dropout, dropout_seed
from t2t_lite.layers.masks import masked_softmax

tf = pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def masks_of_16_bits():
    """bool [batches, layers, ...]: what two layers keep of one batch and of the next."""
    layers = [Dropout(0.1, dtype="bfloat16") for _ in range(2)]
    for index, layer in enumerate(layers):
        layer.seed_generator.index, layer.seed_generator.count = index, len(layers)

    @tf.function(jit_compile=True)
    def dropped(index):
        with dropout_seed(index, 5, in_xla=True):
            return [layer(tf.ones((32, 8, 33, 64), tf.bfloat16), training=True) for layer in layers]

    outputs = np.array([[np.array(tf.cast(x, tf.float32)) for x in dropped(tf.constant(i))] for i in (0, 1, 0)])
    assert set(np.unique(outputs)) == {0.0, np.float32(tf.constant(1 / 0.9, tf.bfloat16))}
    np.testing.assert_array_equal(outputs[0], outputs[2])  # a step that is taken again
    return outputs[:2] > 0


def test_masks_of_16_bits_keep_their_share_everywhere(masks_of_16_bits):
    kept = masks_of_16_bits.reshape(4, 32, 8, 33, 64)
    for axes in [(1, 2, 3, 4), (2, 3, 4), (1, 3, 4), (1, 2, 4), (1, 2, 3)]:
        means = kept.mean(axis=axes)
        deviation = np.sqrt(0.9 * 0.1 * means.size / kept.size)
        assert np.abs(means - 0.9).max() <= 5 * deviation


def test_masks_of_16_bits_are_independent_of_each_other_and_of_themselves_moved(masks_of_16_bits):
    signs = (masks_of_16_bits.reshape(4, -1) - 0.9) / 0.3
    spectra = np.fft.rfft(signs)
    for one in range(4):
        for other in range(one, 4):
            alike = np.fft.irfft(spectra[one] * np.conj(spectra[other])) / np.sqrt(signs.shape[1])
            assert np.abs(alike[1:] if one == other else alike).max() <= 6.5  # standard deviations, of 540,000 shifts


@pytest.mark.slow
def test_the_gradient_of_16_bit_attention_is_that_of_the_uncompiled_softmax():
    draw = np.random.default_rng(0)
    scores, upstream = (tf.cast(draw.normal(size=(2, 3, 5, 7)), tf.bfloat16) for _ in range(2))
    mask = tf.constant(draw.random((2, 1, 5, 7)) > 0.4)

    def gradient(in_xla):
        with dropout_seed(0, 0, in_xla), tf.GradientTape() as tape:
            tape.watch(scores)
            weights = masked_softmax(scores, mask)
        return [tf.cast(x, tf.float32) for x in (weights, tape.gradient(weights, scores, upstream))]

    for compiled, plain in zip(tf.function(gradient, jit_compile=True)(True), gradient(False), strict=True):
        np.testing.assert_allclose(compiled, plain, atol=0.01)
