"""Which row of a ragged tensor each of its values is of, in little memory."""

import tensorflow as tf


def row_ids(ragged):
    """Returns int64 [all values], the row of each.

    `RaggedTensor.value_rowids` takes the memory of as many rows as there are, each of the longest one's length: of one
    long word among many short ones, gigabytes.
    """
    limits = ragged.row_limits()
    return tf.searchsorted(limits, tf.range(ragged.row_splits[-1], dtype=limits.dtype), side="right", out_type=tf.int64)
