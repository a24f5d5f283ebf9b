"""What all layers require of their arguments and of files, and sizes of tensors."""

import math
import numbers

import keras


def check_sizes(**sizes):
    """Raises `ValueError` for a size that is given (not None) but is not a whole number of at least 1."""
    check_required_sizes(**{name: size for name, size in sizes.items() if size is not None})


def check_required_sizes(**sizes):
    """Raises `ValueError` for a size that is not a whole number of at least 1."""
    for name, size in sizes.items():
        if not isinstance(size, numbers.Integral) or isinstance(size, bool) or size < 1:
            raise ValueError(f"`{name}` must be a whole number of at least 1: received {name}={size!r}.")


def check_rates(**rates):
    """Raises `ValueError` for a dropout rate outside [0, 1)."""
    for name, rate in rates.items():
        if not isinstance(rate, numbers.Real) or not 0 <= rate < 1:
            raise ValueError(f"`{name}` must be a rate in [0, 1): received {name}={rate!r}.")


def check_positive(**values):
    """Raises `ValueError` for a number that is not finite and above 0."""
    for name, value in values.items():
        if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 < value < math.inf:
            raise ValueError(f"`{name}` must be a number above 0: received {name}={value!r}.")


def check_layers(**layers):
    """Raises `ValueError` unless a value is None or a Keras layer."""
    check_required_layers(**{name: layer for name, layer in layers.items() if layer is not None})


def check_required_layers(**layers):
    """Raises `ValueError` for a value that is no Keras layer."""
    for name, layer in layers.items():
        if not isinstance(layer, keras.Layer):
            raise ValueError(f"`{name}` must be a Keras layer: received {layer!r}.")


def check_layer_list(layers):
    """Raises `ValueError` unless `layers` is a list of Keras layers."""
    if not isinstance(layers, list | tuple) or not all(isinstance(layer, keras.Layer) for layer in layers):
        raise ValueError(f"`layers` must be a list of Keras layers: received {layers!r}.")


def check_sequences(**tensors):
    """Raises `ValueError` for a tensor, or the shape of one, that is given (not None) but has not three axes."""
    for name, tensor in tensors.items():
        shape = getattr(tensor, "shape", tensor)
        if shape is not None and len(shape) != 3:
            raise ValueError(
                f"`{name}` must be of shape [batch, length, hidden]: received {tuple(shape)}. A single sequence is a "
                "batch of one."
            )


def is_known(tensor):
    """Returns whether the values of a tensor are known, as they are not in a graph that is being traced."""
    if isinstance(tensor, keras.KerasTensor):
        return False
    if not keras.ops.is_tensor(tensor):
        return True  # a Python or NumPy number
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.executing_eagerly() and hasattr(tensor, "numpy")  # eager tensors alone have it
    if backend == "jax":
        import jax

        return not isinstance(tensor, jax.core.Tracer)
    import torch

    return not (tensor.is_meta or torch.compiler.is_compiling())


class FileCheck:
    """Base of layers that refuse some files, although the shapes of all weights fit.

    Keras comes to a layer by each attribute that holds it, finds its weights by the first one alone, and takes the last
    answer for the layer's: where a file has nothing, `check_file` repeats what it said before.
    """

    _refusal = None

    def check_file(self, store):
        """Raises `ValueError` if the layer's weights in a file are refused, for `load_own_variables` to begin with."""
        if list(store.keys()):
            self._refusal = self.refusal_of(store)
        if self._refusal:
            raise self._refusal

    def refusal_of(self, store):
        """Returns why weights in a file, {name: array}, cannot be the layer's: a `ValueError`; None: they can."""
        raise NotImplementedError


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
