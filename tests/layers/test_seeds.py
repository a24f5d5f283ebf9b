"""Random numbers of layers: a function of step, run and generator alone, whatever compiles the pass."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import X


class Noisy(layers.FeedForward):
    """A network with noise on its outputs in training, and a dropout."""

    def __init__(self, **kwargs):
        super().__init__(16, dropout=0.3, **kwargs)
        self.seed = layers.ScopedSeed()

    def call(self, inputs, training=None):
        output = super().call(inputs, training=training)
        return output + layers.normal(ops.shape(output), self.seed) if training else output


def noisy(count=2):
    return [layers.TransformerEncoderLayer(2, feed_forward=Noisy(), dropout=0.3) for _ in range(count)]


def test_each_seed_has_a_number_of_its_own():
    stack = layers.TransformerStack(noisy())
    stack.build(X.shape)
    assert layers.number_seeds(stack) == 2 * (2 + 1 + 1)
    seeds = [part.seed for part in stack._flatten_layers() if isinstance(part, Noisy)]
    seeds += [part.seed_generator for part in stack._flatten_layers() if isinstance(part, layers.Dropout)]
    assert sorted(seed.index for seed in seeds if seed is not None) == list(range(8))


def test_numbers_depend_on_batch_run_and_seed_alone():
    first, second = layers.ScopedSeed(), layers.ScopedSeed()
    second.index = 1

    def drawn(seed, batch, run):
        with layers.dropout_seed(ops.convert_to_tensor(batch, "int32"), run):
            return array(layers.uniform((3, 4), seed))

    np.testing.assert_array_equal(drawn(first, 7, 1), drawn(first, 7, 1))
    for other in (drawn(first, 8, 1), drawn(first, 7, 2), drawn(second, 7, 1)):
        assert (other != drawn(first, 7, 1)).all()
    assert (array(layers.uniform((3, 4), first)) != array(layers.uniform((3, 4), first))).all()  # outside: as Keras


def test_numbers_have_their_distributions():
    seed = layers.ScopedSeed(3)
    numbers, normal = np.sort(array(layers.uniform((40_000,), seed))), array(layers.normal((40_000,), seed))
    assert numbers[0] >= 0 and numbers[-1] < 1
    assert np.abs(numbers - np.arange(40_000) / 40_000).max() < 0.01  # Kolmogorov's distance
    assert np.isfinite(normal).all() and abs(normal.mean()) < 0.02 and abs(normal.std() - 1) < 0.02
    assert abs((np.abs(normal) < 1).mean() - 0.6827) < 0.01 and abs((np.abs(normal) < 2).mean() - 0.9545) < 0.005


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="XLA beside a graph")
def test_xla_draws_the_numbers_of_a_graph():
    import tensorflow as tf

    seed = layers.ScopedSeed()

    def drawn(index):
        with layers.dropout_seed(index, 5):
            return layers.uniform((2, 50), seed), layers.normal((500,), seed)

    index = tf.constant(4)
    graph, compiled = tf.function(drawn)(index), tf.function(drawn, jit_compile=True)(index)
    np.testing.assert_array_equal(array(graph[0]), array(compiled[0]))
    np.testing.assert_allclose(array(graph[1]), array(compiled[1]), atol=1e-5)


def test_recomputed_noise_is_that_of_the_first_time():
    parts = noisy()
    kept, again = (layers.TransformerStack(parts, recompute=recompute) for recompute in (False, True))
    kept.build(X.shape)
    layers.number_seeds(kept)
    with layers.dropout_seed(5, 1):
        np.testing.assert_allclose(array(again(X, training=True)), array(kept(X, training=True)), atol=1e-6)
