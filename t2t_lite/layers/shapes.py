"""Sizes of tensors, with few operations in a graph."""

import keras


def shape_of(x):
    """Returns a tensor's shape, a tuple: of ints, and of int32 tensors for sizes that a graph does not know.

    It is `keras.ops.shape`, which in a graph of TensorFlow adds four operations for each unknown size, asked for or
    not: they were a third of what a Transformer's pass consists of. This adds two for all of them.

    Args:
        x: tensor of known rank, or a `KerasTensor`, whose unknown sizes are None.
    """
    shape = tuple(x.shape)
    if None not in shape or isinstance(x, keras.KerasTensor):
        return shape
    import tensorflow as tf

    return tuple(size if known is None else known for known, size in zip(shape, tf.unstack(tf.shape(x)), strict=True))
