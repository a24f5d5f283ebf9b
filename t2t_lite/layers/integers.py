"""The dtype of integers that belong beside floats."""

import keras


def integer_dtype():
    """Returns the dtype in which integers are computed with where floats are: int64 in TensorFlow, else int32.

    TensorFlow takes int32 for shapes. It compares and adds int32 on the host, and keeps it there in loops and arguments
    of functions, even if everything else is on a GPU. JAX has no int64 unless asked for it.
    """
    return "int64" if keras.backend.backend() == "tensorflow" else "int32"
