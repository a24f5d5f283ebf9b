"""Dropout whose masks are a pure function of a seed, so that a run replays exactly on any number of replicas."""

import random

import keras

from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import check_rates
from t2t_lite.layers.seeds import ScopedSeed, is_compiled, uniform_of_words


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
        # PyTorch's own dropout, which Keras takes where no seed is given, would not ask the generator at all.
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
    """`keras.random.dropout`, as a step that XLA compiles computes it best; TensorFlow only.

    In float32 the mask is that of a step that is not compiled: see `uniform`. In 16 bits, where Keras draws fewer bits
    anyway, the bits are a hash of each element's place, which XLA computes where they are read. Drawn ones are written
    to memory and read again.
    """
    import tensorflow as tf

    words = tf.cast(seed.next(), tf.int32)
    if inputs.dtype.size < 4:
        is_kept = _hashed_bits(inputs, tf.cast(words, tf.uint32)) >= round(rate * 2**32)
    else:
        is_kept = uniform_of_words(tf.shape(inputs), words) >= rate
    return tf.where(is_kept, inputs * (1 / (1 - rate)), tf.zeros([], inputs.dtype))


def _hashed_bits(x, words):
    """Returns 32 random bits for each element of x, uint32, of its place and a seed of two words alone."""
    import tensorflow as tf

    key = _mixed(_mixed(words[0] + 0x9E3779B9) + words[1])
    place = tf.zeros([], tf.uint32)
    for axis in range(x.shape.rank):
        size = tf.shape(x)[axis]
        along = tf.reshape(tf.range(size), [-1] + [1] * (x.shape.rank - 1 - axis))
        place = place * tf.cast(size, tf.uint32) + tf.cast(along, tf.uint32)
    # An odd factor of each seed's own: sums alone would make the masks of two seeds the same but for a shift.
    return _mixed(place * (_mixed(key + 0x85EBCA6B) | 1) + key)


def _mixed(x):
    """Returns a bijective hash of uint32 numbers, with the constants of lowbias32 (C. Wellons, public domain)."""
    import tensorflow as tf

    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(shift, tf.uint32))) * factor
    return tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(16, tf.uint32)))
