import numpy as np
import tensorflow as tf

from t2t_lite.data import random_numbers
from t2t_lite.data.random_numbers import threefry, uniform_numbers


def test_threefry_gives_the_published_numbers():
    """The known answers of the authors' Random123."""
    for counter, key, expected in (
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ):
        tensors = [[tf.constant(word, tf.uint32) for word in words] for words in (key, counter)]
        assert tuple(int(word) for word in threefry(*tensors)) == expected


def test_the_largest_word_gives_a_number_below_1(monkeypatch):
    largest = tf.fill([1, 1, 1], tf.constant(0xFFFFFFFF, tf.uint32))
    monkeypatch.setattr(random_numbers, "threefry", lambda key, counter: (largest, largest - largest))
    assert uniform_numbers(tf.constant([[3, 9]]), 1, 1).numpy().tolist() == [[[[1 - 2.0**-24, 0.0]]]]


def test_random_numbers_do_not_depend_on_what_else_is_drawn():
    seeds = tf.constant([[3, -5], [3, 9]])
    many = uniform_numbers(seeds, 6, 9).numpy()
    assert many.min() >= 0 and many.max() < 1 and len(np.unique(many)) == many.size
    np.testing.assert_array_equal(uniform_numbers(seeds[1:], 2, 4), many[1:, :2, :4])
