"""Dropout and random numbers as pure functions of seeds, so that a run is reproducible on any number of replicas."""

import collections
import random
import threading

import keras
from keras import ops

from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import check_rates

_LAYERS_A_RUN = 4096  # runs with different seeds share no layer seed if a model has at most this number of layers


class _Scope(threading.local):
    """The values of the innermost context managers, per thread, because replicas run in separate threads."""

    words = None  # of `dropout_seed`: (batch index, run seed)
    in_xla = False
    call = 0  # of `repeated_call`
    part = 0  # of `numbered_part`
    drawn = {}  # noqa: RUF012 (of `drawn_seeds`: {id(ScopedSeed): seed}; it is replaced, never changed)


_scope = _Scope()


@keras.saving.register_keras_serializable("t2t_lite")
class Dropout(Layer):
    """Sets a fraction `rate` of the inputs to 0 and scales the rest by 1 / (1 - rate), in training only.

    The layer behaves like `keras.layers.Dropout`, except inside `dropout_seed`. (Keras' own layer uses the same mask on
    every replica of a `tf.distribute.MirroredStrategy`.)

    Args:
        rate: float in [0, 1).
        seed: int or None, the seed used outside `dropout_seed`.

    Raises:
        ValueError: if `rate` is not in [0, 1).
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        check_rates(rate=rate)
        self.rate = rate
        self.seed = seed
        # Always set a seed: without a seed, Keras would call PyTorch's dropout, which ignores the generator.
        seed = random.randint(1, 10**9) if seed is None else seed  # sampled in the same way as in Keras
        self.seed_generator = ScopedSeed(seed) if rate > 0 else None
        self.built = True

    def call(self, inputs, training=False):
        """Returns a tensor with the shape and dtype of `inputs`."""
        if training and self.rate > 0:
            dropout = _dropout_in_xla if is_compiled() else keras.random.dropout
            return dropout(inputs, self.rate, seed=self.seed_generator)
        return inputs


def _dropout_in_xla(inputs, rate, seed):
    """Applies dropout in the form that is fastest in a step compiled by XLA; TensorFlow only.

    In float32 the mask is the same as in an uncompiled step: see `uniform`. In 16-bit dtypes the mask differs, because
    Keras uses fewer random bits for them anyway. Each element's random bits are a hash of its index. XLA computes this
    hash where the bits are used. Bits from a random generator would be written to memory first, and then read again.
    """
    import tensorflow as tf

    words = tf.cast(seed.next(), tf.int32)
    if inputs.dtype.size < 4:
        is_kept = _hashed_bits(inputs, tf.cast(words, tf.uint32)) >= round(rate * 2**32)
    else:
        is_kept = uniform_of_words(tf.shape(inputs), words) >= rate
    return tf.where(is_kept, inputs * (1 / (1 - rate)), tf.zeros([], inputs.dtype))


def _hashed_bits(x, words):
    """Returns 32 random bits (uint32) for each element of x: a hash of its index and of a seed of two words."""
    import tensorflow as tf

    key = _mixed(_mixed(words[0] + 0x9E3779B9) + words[1])
    place = tf.zeros([], tf.uint32)
    for axis in range(x.shape.rank):
        size = tf.shape(x)[axis]
        along = tf.reshape(tf.range(size), [-1] + [1] * (x.shape.rank - 1 - axis))
        place = place * tf.cast(size, tf.uint32) + tf.cast(along, tf.uint32)
    # Each seed also has its own odd factor. If the key were only added, the mask of one seed would be a shifted copy of
    # the mask of another seed.
    return _mixed(place * (_mixed(key + 0x85EBCA6B) | 1) + key)


def _mixed(x):
    """Hashes uint32 numbers bijectively, with the constants of lowbias32 (C. Wellons, public domain)."""
    import tensorflow as tf

    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(shift, tf.uint32))) * factor
    return tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(16, tf.uint32)))


class _InScope:
    """Context manager that sets values of `_scope`."""

    def __init__(self, **values):
        self._values = values

    def __enter__(self):
        self._outer = {name: getattr(_scope, name) for name in self._values}
        vars(_scope).update(self._values)

    def __exit__(self, *_):
        vars(_scope).update(self._outer)


def dropout_seed(batch_index, run_seed=0, in_xla=False):
    """Returns a context manager in which a `ScopedSeed` depends only on the run seed, batch index and its own index.

    The trainer enters this context in each forward pass, with the batch's index in the data stream. So replicas and
    accumulated micro-batches use different dropout masks, and masks can be reproduced without any saved state.

    Args:
        batch_index: integer scalar tensor, below 2^31.
        run_seed: int.
        in_xla: bool, whether TensorFlow compiles the forward pass with XLA. This does not change masks in float32.
    """
    if keras.backend.backend() == "tensorflow":  # cast once for all seeds: see `ScopedSeed.next`
        batch_index = ops.cast(batch_index, "int32")
    return _InScope(words=(batch_index, run_seed), in_xla=in_xla)


def is_compiled():
    """Returns whether XLA compiles the current forward pass: see `dropout_seed`."""
    return _scope.in_xla


def repeated_call(number):
    """Returns a context manager under which each call of a layer within one forward pass gets a different seed.

    Args:
        number: int, the number of earlier calls of the layer in this forward pass.
    """
    return _InScope(call=number)


def numbered_part(number):
    """Returns a context manager under which a layer's seeds for the parts of one result differ, even in `drawn_seeds`.

    Args:
        number: int, the number of the part, below 8.
    """
    return _InScope(part=number)


def drawn_seeds(layer):
    """Returns a context manager under which a layer uses the same seeds in every call, as recomputation requires.

    The seeds are taken once, when this function is called.

    Args:
        layer: keras.layers.Layer. The seeds of its sublayers are repeated as well.
    """
    return _InScope(drawn={id(seed): seed.next() for part in layer._flatten_layers() for seed in _own_seeds(part)})


@keras.saving.register_keras_serializable("t2t_lite")
class ScopedSeed(keras.random.SeedGenerator):
    """A seed generator that is stateless inside `dropout_seed`, and behaves like Keras' generator outside.

    A layer creates a `ScopedSeed` in its constructor for each random tensor in its `call`, and samples with `uniform`,
    `normal` or a `Dropout`. The layer may only sample in training, because an exported model does not store the state
    of a generator.

    Attributes:
        index: int, the number of this generator in its model; set by `number_seeds`.
        count: int, the number of generators in the model; set by `number_seeds`.
    """

    index, count = 0, 1

    def next(self, ordered=True):
        """Returns the next seed, a tensor of shape [2]."""
        if id(self) in _scope.drawn:
            return _seed_of_part(_scope.drawn[id(self)])
        if _scope.words is None:
            return super().next(ordered)
        batch_index, run_seed = _scope.words
        # Keras passes two words of 31 bits to TensorFlow. The first word is the batch index. The second word combines
        # the run seed and the number of the generator.
        index = self.index + self.count * _scope.call
        if keras.backend.backend() == "torch":  # Keras seeds PyTorch with the sum of the words, which must differ, too
            batch_index = ops.cast(batch_index, "int64") * 0x9E3779B1
        layer_word = (run_seed * _LAYERS_A_RUN + index) % (2**31 - 2)
        # TensorFlow's random operations read their seeds on the host, where int32 is computed. Keras' int64 would be
        # computed on a GPU, and each dropout would wait for a copy to the host.
        dtype = "int32" if keras.backend.backend() == "tensorflow" else self.state.dtype
        return _seed_of_part(ops.stack([ops.cast(word, dtype) for word in (batch_index, layer_word)]))


def _seed_of_part(seed):
    """Returns the seed for the current part, which differs in the upper bits of the second word, of 31 bits."""
    if not _scope.part:
        return seed
    return ops.bitwise_xor(seed, ops.cast([0, _scope.part << 28], seed.dtype))


def has_own_generator(layer):
    """Returns whether a layer (not its sublayers) uses a stateful random generator, as Keras' layers do."""
    return any(not isinstance(generator, ScopedSeed) for generator in layer._seed_generators)


def _own_seeds(layer):
    """Returns the `ScopedSeed`s of a layer, excluding those of its sublayers."""
    return [generator for generator in layer._seed_generators if isinstance(generator, ScopedSeed)]


def number_seeds(model):
    """Numbers all `ScopedSeed`s of a model that is already built, including the seeds of its `Dropout`s.

    The order depends only on how the model is built, not on other models in the process. The seeds are numbered in
    Keras' order (`_flatten_layers`, which visits sublayers from last to first), except that the layers of a stack come
    in the order in which they run.

    Returns:
        int, the number of seeds.
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
    """Samples float32 numbers in [0, 1), which are the same whether or not XLA compiles the forward pass.

    XLA itself would make a float from the upper 23 of 32 random bits. TensorFlow and this function use the lower 23
    bits.

    Args:
        shape: tuple of int, or of scalar tensors.
        seed: ScopedSeed.
    """
    if keras.backend.backend() != "tensorflow":
        return keras.random.uniform(shape, dtype="float32", seed=seed)
    import tensorflow as tf

    return uniform_of_words(shape, tf.cast(seed.next(), tf.int32))


def normal(shape, seed):
    """Samples standard normal numbers, float32, as quantiles of `uniform` numbers. XLA only changes the rounding.

    Args:
        shape, seed: as in `uniform`.
    """
    centered = 2 * uniform(shape, seed) - (1 - 2.0**-23)  # 2^23 values, the midpoints of equal intervals
    return 2**0.5 * ops.erfinv(ops.minimum(centered, 1 - 2.0**-23))


def uniform_of_words(shape, words):
    """Samples like `uniform`, from a seed of two words, int32 [2]; TensorFlow only."""
    import tensorflow as tf

    bits = tf.random.stateless_uniform(shape, words, minval=None, maxval=None, dtype=tf.uint32)
    return tf.bitcast(bits & 0x7FFFFF | 0x3F800000, tf.float32) - 1.0  # the bits as the mantissa of a number in [1, 2)
