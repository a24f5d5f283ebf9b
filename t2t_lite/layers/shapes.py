"""Sizes of tensors and whole numbers, with few operations in a graph."""

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


def integer_dtype():
    """Returns the dtype in which integers are computed with where floats are: int64 in TensorFlow, else int32.

    TensorFlow takes int32 for shapes. It compares and adds int32 on the host, and keeps it there in loops and arguments
    of functions, even if everything else is on a GPU. JAX has no int64 unless asked for it.
    """
    return "int64" if keras.backend.backend() == "tensorflow" else "int32"
