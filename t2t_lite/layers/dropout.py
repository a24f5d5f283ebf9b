"""Dropout and random numbers that are a pure function of seeds: a run replays exactly on any number of replicas."""

import collections
import random
import threading

import keras
from keras import ops

from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import check_rates

_LAYERS_A_RUN = 4096  # layer indices of different run seeds do not meet below this
_scope = threading.local()  # a distribution strategy runs each replica's function in a separate thread


@keras.saving.register_keras_serializable("t2t_lite")
class Dropout(Layer):
    """Sets a fraction `rate` of the inputs to 0 and scales the others by 1 / (1 - rate), in training only.

    Behaves as `keras.layers.Dropout`, except inside `dropout_seed`. (Keras' own layer draws the same mask on
    every replica under `tf.distribute.MirroredStrategy`.)

    Args:
        rate: float in [0, 1).
        seed: int or None, for use outside of `dropout_seed`.

    Raises:
        ValueError: `rate` is not in [0, 1).
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        check_rates(rate=rate)
        self.rate = rate
        self.seed = seed
        # Without a seed Keras would call PyTorch's dropout, which does not ask the generator at all.
        seed = random.randint(1, 10**9) if seed is None else seed  # drawn as Keras does
        self.seed_generator = ScopedSeed(seed) if rate > 0 else None
        self.supports_masking = True
        self.built = True

    def call(self, inputs, training=False):
        """Returns a tensor of the shape and dtype of `inputs`."""
        if training and self.rate > 0:
            dropout = _dropout_in_xla if is_compiled() else keras.random.dropout
            return dropout(inputs, self.rate, seed=self.seed_generator)
        return inputs


def _dropout_in_xla(inputs, rate, seed):
    """`keras.random.dropout` in the form that is fastest in a step compiled by XLA; TensorFlow only.

    In float32 the mask is the same as in an uncompiled step: see `uniform`. In 16 bits, for which Keras draws fewer
    bits anyway, the random bits are a hash of each element's index, which XLA computes where they are used; drawn bits
    would be written to memory and read again.
    """
    import tensorflow as tf

    words = tf.cast(seed.next(), tf.int32)
    if inputs.dtype.size < 4:
        is_kept = _hashed_bits(inputs, tf.cast(words, tf.uint32)) >= round(rate * 2**32)
    else:
        is_kept = uniform_of_words(tf.shape(inputs), words) >= rate
    return tf.where(is_kept, inputs * (1 / (1 - rate)), tf.zeros([], inputs.dtype))


def _hashed_bits(x, words):
    """Returns 32 random bits for each element of x, uint32, a function of its index and a seed of two words."""
    import tensorflow as tf

    key = _mixed(_mixed(words[0] + 0x9E3779B9) + words[1])
    place = tf.zeros([], tf.uint32)
    for axis in range(x.shape.rank):
        size = tf.shape(x)[axis]
        along = tf.reshape(tf.range(size), [-1] + [1] * (x.shape.rank - 1 - axis))
        place = place * tf.cast(size, tf.uint32) + tf.cast(along, tf.uint32)
    # Each seed has its own odd factor: with sums alone, the masks of two seeds would only differ by a shift.
    return _mixed(place * (_mixed(key + 0x85EBCA6B) | 1) + key)


def _mixed(x):
    """Returns a bijective hash of uint32 numbers, with the constants of lowbias32 (C. Wellons, public domain)."""
    import tensorflow as tf

    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(shift, tf.uint32))) * factor
    return tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(16, tf.uint32)))


class dropout_seed:
    """Context in which each `ScopedSeed`, such as a `Dropout`'s, only depends on (run seed, batch index, its index).

    The trainer opens it around each forward pass, with the batch's index in the data stream: replicas and
    accumulated micro-batches get different masks, and nothing needs to be saved to replay them.

    Args:
        batch_index: integer scalar tensor, below 2^31.
        run_seed: int.
        in_xla: bool, whether TensorFlow compiles the forward pass with XLA, which does not change masks in float32.
    """

    def __init__(self, batch_index, run_seed=0, in_xla=False):
        if keras.backend.backend() == "tensorflow":  # once for all seeds: see `ScopedSeed.next`
            batch_index = ops.cast(batch_index, "int32")
        self.words, self.in_xla = (batch_index, run_seed), in_xla

    def __enter__(self):
        self._outer = getattr(_scope, "words", None), is_compiled()
        _scope.words, _scope.in_xla = self.words, self.in_xla
        return self

    def __exit__(self, *_):
        _scope.words, _scope.in_xla = self._outer


def is_compiled():
    """Returns whether XLA compiles the current forward pass: see `dropout_seed`."""
    return getattr(_scope, "in_xla", False)


class repeated_call:
    """Context for one of several calls of the same layer in a forward pass; each call gets different seeds.

    Args:
        number: int, how many calls came before this one.
    """

    def __init__(self, number):
        self.number = number

    def __enter__(self):
        self._outer = getattr(_scope, "call", 0)
        _scope.call = self.number

    def __exit__(self, *_):
        _scope.call = self._outer


class drawn_seeds:
    """Context in which a layer gets the same seeds in each call, as recomputation needs.

    They are drawn when the context is made, just as for a layer that is called once.

    Args:
        layer: keras.layers.Layer; the `ScopedSeed`s of its parts are included.
    """

    def __init__(self, layer):
        self.seeds = {id(seed): seed.next() for part in layer._flatten_layers() for seed in _own_seeds(part)}

    def __enter__(self):
        self._outer = getattr(_scope, "drawn", {})
        _scope.drawn = {**self._outer, **self.seeds}

    def __exit__(self, *_):
        _scope.drawn = self._outer


@keras.saving.register_keras_serializable("t2t_lite")
class ScopedSeed(keras.random.SeedGenerator):
    """A seed generator that is stateless inside `dropout_seed`, and behaves as Keras' outside of it.

    A layer makes one in its constructor for each thing that it draws in a call, and draws by `uniform`, `normal` or a
    `Dropout`, in training only: an export has no place for the state of the generator.

    Attributes:
        index: int, the number of this generator in its model; set by `number_seeds`.
        count: int, the number of generators in the model; set by `number_seeds`.
    """

    index, count = 0, 1

    def next(self, ordered=True):
        """Returns the next seed, shape [2]."""
        drawn, words = getattr(_scope, "drawn", {}).get(id(self)), getattr(_scope, "words", None)
        if drawn is not None:
            return drawn
        if words is None:
            return super().next(ordered)
        batch_index, run_seed = words
        # Keras passes two words of 31 bits to TensorFlow: one is for the batch, one for run and generator.
        index = self.index + self.count * getattr(_scope, "call", 0)
        layer_word = (run_seed * _LAYERS_A_RUN + index) % (2**31 - 2)
        # TensorFlow's random operations take their seeds from the host, where int32 is computed. Keras' int64 would be
        # computed on a GPU, and each dropout would wait for a copy.
        dtype = "int32" if keras.backend.backend() == "tensorflow" else self.state.dtype
        return ops.stack([ops.cast(word, dtype) for word in (batch_index, layer_word)])


def has_own_generator(layer):
    """Returns whether a layer itself draws from a stateful generator, as Keras' layers do."""
    return any(not isinstance(generator, ScopedSeed) for generator in layer._seed_generators)


def _own_seeds(layer):
    """Returns the `ScopedSeed`s of a layer, without those of layers inside."""
    return [generator for generator in layer._seed_generators if isinstance(generator, ScopedSeed)]


def number_seeds(model):
    """Gives each `ScopedSeed` of a model, those of its `Dropout`s included, an index; call it once it is built.

    The order depends only on how the model is made, not on other models in the process. It is Keras' order
    (`_flatten_layers`, which visits a layer's parts from the last to the first), except that the layers of a stack
    come one after another.

    Returns:
        The number of seeds.
    """
    generators, seen, queue = [], set(), collections.deque(model._layers)
    while queue:
        layer = queue.popleft()
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        generators += _own_seeds(layer)
        in_order = getattr(layer, "runs_in_order", False)
        queue.extendleft(reversed(layer._layers) if in_order else layer._layers)
    for index, generator in enumerate(generators):
        generator.index, generator.count = index, len(generators)
    return len(generators)


def uniform(shape, seed):
    """Draws numbers from 0 to 1, 1 excluded, float32, the same whether XLA compiles the pass or not.

    XLA makes a float from the upper 23 of 32 random bits; TensorFlow, like this function, from the lower 23.

    Args:
        shape: tuple of int, or of scalar tensors.
        seed: ScopedSeed.
    """
    if keras.backend.backend() != "tensorflow":
        return keras.random.uniform(shape, dtype="float32", seed=seed)
    import tensorflow as tf

    return uniform_of_words(shape, tf.cast(seed.next(), tf.int32))


def normal(shape, seed):
    """Draws standard normal numbers, float32: the quantiles of `uniform`, so that XLA changes only their rounding.

    Args:
        shape, seed: as in `uniform`.
    """
    centered = 2 * uniform(shape, seed) - (1 - 2.0**-23)  # 2^23 values, each in the middle of an interval
    return 2**0.5 * ops.erfinv(ops.minimum(centered, 1 - 2.0**-23))


def uniform_of_words(shape, words):
    """Draws as `uniform` does, with a seed of two words, int32 [2]; TensorFlow only."""
    import tensorflow as tf

    bits = tf.random.stateless_uniform(shape, words, minval=None, maxval=None, dtype=tf.uint32)
    return tf.bitcast(bits & 0x7FFFFF | 0x3F800000, tf.float32) - 1.0  # the mantissa of a number from 1 to 2
