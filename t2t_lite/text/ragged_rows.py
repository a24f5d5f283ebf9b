"""The row of each value of a ragged tensor, in little memory."""

import tensorflow as tf


def row_ids(ragged):
    """Returns int64 [all values], the row of each.

    `RaggedTensor.value_rowids` needs memory for all rows padded to the longest one: gigabytes for one long word among
    many short ones.
    """
    limits = ragged.row_limits()
    return tf.searchsorted(limits, tf.range(ragged.row_splits[-1], dtype=limits.dtype), side="right", out_type=tf.int64)
