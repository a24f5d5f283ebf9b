"""Dropout and random numbers of layers: their distributions, and what alone they depend on: step, run and generator."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.layers.dropout import is_compiled, repeated_call
from tests.layers.equations import array
from tests.layers.harness import X, check_layer


def test_contract(tmp_path):
    check_layer(layers.Dropout, {"rate": 0.5}, X, 0, tmp_path)


def test_rate_and_expectation():
    ones = np.ones((200, 200), "float32")
    output = array(layers.Dropout(0.3)(ones, training=True))
    assert (output == 0).mean() == pytest.approx(0.3, abs=0.02)
    assert output.mean() == pytest.approx(1.0, abs=0.02)
    assert (array(layers.Dropout(0.3)(ones, training=False)) == 1).all()


def kept_by(seed):
    """Which of 400 numbers a dropout keeps."""
    layer = layers.Dropout(0.5)
    layer.seed_generator.index, layer.seed_generator.count = seed.index, seed.count
    return array(layer(np.ones((20, 20), "float32"), training=True)) > 0


@pytest.mark.parametrize(
    "draw", [kept_by, lambda seed: array(layers.uniform((20, 20), seed)) < 0.5], ids=["mask", "uniform"]
)
def test_numbers_depend_on_batch_run_generator_and_call_alone(draw):
    first, second = layers.ScopedSeed(), layers.ScopedSeed()
    first.count = second.count = 2
    second.index = 1

    def drawn(seed, batch, run, call=0):
        with layers.dropout_seed(ops.convert_to_tensor(batch, "int64"), run), repeated_call(call):
            return draw(seed)

    np.testing.assert_array_equal(drawn(first, 7, 1), drawn(first, 7, 1))
    others = [
        drawn(first, 8, 1),
        drawn(first, 7, 2),
        drawn(second, 7, 1),
        drawn(first, 7, 1, 1),
        drawn(second, 7, 1, 1),
    ]
    others += [drawn(first, 7, 1, 2), drawn(first, 2**20 + 7, 1), drawn(first, 7, 2**15 + 1)]
    for i, other in enumerate(others):
        assert all(0.3 < (other != one).mean() < 0.7 for one in (drawn(first, 7, 1), *others[:i]))
    assert (draw(first) != draw(first)).any()  # outside: as Keras


def test_a_scope_within_another_ends_with_it():
    layer, ones = layers.Dropout(0.5), np.ones((20, 20), "float32")

    def mask():
        return array(layer(ones, training=True))

    with layers.dropout_seed(3, 1):
        outer = mask()
        with layers.dropout_seed(4, 1, in_xla=True):
            assert is_compiled()
        assert not is_compiled()
        np.testing.assert_array_equal(mask(), outer)


WITH_A_RATE = {
    "feed_forward": lambda rate: layers.FeedForward(16, dropout=rate),
    "attention": lambda rate: layers.MultiHeadAttention(2, dropout=rate),
    "restricted": lambda rate: layers.RestrictedAttention(2, 3, dropout=rate),
    "residual": lambda rate: layers.Residual(layers.FeedForward(16), dropout=rate),
    "class_head": lambda rate: layers.ClassHead(3, pooler=True, dropout=rate),
}


@pytest.mark.parametrize("make", WITH_A_RATE.values(), ids=WITH_A_RATE)
def test_the_rate_of_a_layer_acts_in_training_alone(make):
    x = np.random.default_rng(0).normal(size=(1, 130, 8)).astype("float32")  # attention in blocks, where there are some
    for rate in (0.0, 0.5):
        layer = make(rate)
        kept, again, trained = (array(layer(x, training=training)) for training in (False, False, True))
        np.testing.assert_array_equal(kept, again)
        assert np.allclose(kept, trained, atol=1e-5) == (rate == 0)


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


@pytest.mark.parametrize("places", [[0, 1], [0, 0, 1]], ids=["own", "shared"])
def test_recomputed_noise_is_that_of_the_first_time(places):
    distinct = noisy()
    parts = [distinct[place] for place in places]
    kept, again = (layers.TransformerStack(parts, recompute=recompute) for recompute in (False, True))
    kept.build(X.shape)
    layers.number_seeds(kept)
    with layers.dropout_seed(5, 1):
        np.testing.assert_allclose(array(again(X, training=True)), array(kept(X, training=True)), atol=1e-6)
