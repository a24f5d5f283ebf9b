"""Texts -> ids inside the graph of an export: of megabytes not much more is encoded than is read."""

import time

import pytest
import tensorflow as tf

from t2t_lite.text.reading_graph import beginnings, encoding, reader, row_reader
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
