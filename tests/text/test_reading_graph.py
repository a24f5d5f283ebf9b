"""Texts -> ids inside the graph of an export: of megabytes not much more is encoded than is read."""

import time

import pytest
import tensorflow as tf

from t2t_lite.text.reading_graph import (
    as_many,
    beginnings,
    blanked,
    encoding,
    longest_input,
    reader,
    row_reader,
    with_eos,
)
from t2t_lite.text.vocabulary import ByteTextEncoder

LONGEST = 64


class Counting(ByteTextEncoder):
    """Notes how many bytes of a batch it was given."""

    def __init__(self):
        super().__init__()
        self.bytes = tf.Variable(0)

    def tf_encode(self, strings):
        self.bytes.assign_add(tf.reduce_sum(tf.strings.length(strings)))
        return super().tf_encode(strings)


@pytest.mark.parametrize("ends", [False, True])
def test_a_text_is_cut_between_characters_far_behind_what_is_read(ends):
    texts = ["", "a" * 4096, "b" + "ü" * 3000, "\U0001f600" * 2000 + "xyz"]
    cut, is_cut = beginnings(tf.constant(texts), LONGEST, ends)
    assert is_cut.numpy().tolist() == [False, False, True, True]
    for text, part in zip(texts, (part.decode() for part in cut.numpy()), strict=True):
        assert text.endswith(part) if ends else text.startswith(part)
        assert len(part.encode()) > 4092 or part == text


@pytest.mark.slow
def test_a_text_of_megabytes_is_read_at_once():
    encoder = Counting()
    read, rows = reader(encoder, LONGEST), row_reader(encoding(encoder), LONGEST, 2)
    texts = tf.constant([b"." * 5_000_000, b"ab", b"\xff" * 5000, b" " * 10**6, b" " * 10**6 + b"x"])
    start = time.process_time()
    sources = read(texts)
    assert sources.lengths.numpy().tolist() == [63, 2, 63, 0, 1]
    assert sources.truncated.numpy().tolist() == [True, False, True, True, True]
    assert sources.is_blank.numpy().tolist() == [False, False, False, True, False]
    ids, truncated = rows(texts, tf.reverse(texts, [0]))
    assert truncated.numpy().tolist() == [True] * 5 and ids.shape == (5, LONGEST)
    assert time.process_time() - start < 3 and encoder.bytes < 50_000


def test_only_spaces_that_are_far_longer_than_needed_are_dropped_before_a_text():
    """Most vocabularies have no ids for them."""
    most = 64 * LONGEST
    texts = [" " * most + "ab", " " * (most - 2) + "ab", "ab" + " " * most]
    for strips, ends, expected in (
        (True, False, ["ab", texts[1], texts[2][:most]]),
        (False, False, [" " * most, texts[1], texts[2][:most]]),
        (True, True, [texts[0][2:], texts[1], " " * most]),
    ):
        cut, is_cut = beginnings(tf.constant(texts), LONGEST, ends, strips)
        assert [part.decode() for part in cut.numpy()] == expected
        assert is_cut.numpy().tolist() == [True, False, True]


def test_rows_end_and_are_filled_up():
    pieces = tf.ragged.constant([[5, 6, 7], [8], [], [9, 2]], tf.int32)
    assert with_eos(pieces, tf.constant([2, 1, 0, 2])).numpy().tolist() == [[5, 6, 1], [8, 1, 0], [1, 0, 0], [9, 2, 1]]
    assert with_eos(pieces[:0], tf.constant([], tf.int32)).shape == (0, 1)


def test_what_is_read_of_texts():
    sources = reader(ByteTextEncoder(), 4)(tf.constant(["ab", "abcdef", "", " ", "abc", b"\xff"]))
    assert sources.lengths.numpy().tolist() == [2, 3, 0, 1, 3, 3]
    assert sources.truncated.numpy().tolist() == [False, True, False, False, False, False]
    assert sources.is_blank.numpy().tolist() == [False, False, True, True, False, False]
    a, b, c, space = (ord(letter) + 2 for letter in "abc ")
    rows = [[a, b, 1, 0], [a, b, c, 1], [1, 0, 0, 0], [space, 1, 0, 0], [a, b, c, 1]]
    assert sources.ids.numpy().tolist()[:5] == rows
    plain = blanked(sources._replace(truncated=tf.ones([6], tf.bool)))
    assert plain.ids.numpy().tolist()[2:5] == [[1, 0, 0, 0], [1, 0, 0, 0], [a, b, c, 1]]
    assert plain.lengths.numpy().tolist() == [2, 3, 0, 0, 3, 3] and plain.is_blank is sources.is_blank
    assert plain.truncated.numpy().tolist() == [True, True, False, False, True, True]


def test_spaces_around_texts_may_be_dropped():
    texts = tf.constant(["\u3000 a \u2028b\r\n", "\n", "ab", "a" * 9999])
    found = reader(ByteTextEncoder(), 9, strips=True)(texts)
    assert ByteTextEncoder().decode(found.ids[0].numpy().tolist()) == "a \u2028b"
    assert found.lengths.numpy().tolist() == [6, 0, 2, 8]
    assert found.is_blank.numpy().tolist() == [False, True, False, False]


def test_rows_of_one_text_and_of_two():
    encode = encoding(ByteTextEncoder())
    ids, truncated = row_reader(encode, 4, 1)(tf.constant(["abcd", "ab", ""]))
    assert ids.numpy().tolist() == [[99, 100, 101, 1], [99, 100, 1, 0], [1, 0, 0, 0]]
    assert truncated.numpy().tolist() == [True, False, False]
    ids, truncated = row_reader(encode, 7, 2)(tf.constant(["abcd", "abcd", "a"]), tf.constant(["b", "cdef", "bcdefg"]))
    rows = [[99, 100, 101, 102, 1, 100, 1], [99, 100, 101, 1, 101, 102, 1], [99, 1, 100, 101, 102, 103, 1]]
    assert ids.numpy().tolist() == rows
    assert truncated.numpy().tolist() == [False, True, True]
    assert [longest_input(*sizes) for sizes in ((None, 100), (None, 1000), (7, 3), (900, 3))] == [100, 512, 7, 900]


def test_as_many_texts_of_each_kind():
    first, second = as_many(inputs=tf.constant(["a", "b"]), targets=tf.constant(["c", "d"]))
    assert [*first.numpy(), *second.numpy()] == [b"a", b"b", b"c", b"d"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="as many targets as inputs"):
        as_many(inputs=tf.constant(["a", "b"]), targets=tf.constant(["c"]))
