"""Checks of layers' arguments and weight files, and helpers for shapes and dtypes."""

import inspect
import math
import numbers

import keras


def check_sizes(**sizes):
    """Raises `ValueError` unless a size is None or an integer of at least 1."""
    check_required_sizes(**{name: size for name, size in sizes.items() if size is not None})


def check_required_sizes(**sizes):
    """Raises `ValueError` if a size is not an integer of at least 1."""
    for name, size in sizes.items():
        if not isinstance(size, numbers.Integral) or isinstance(size, bool) or size < 1:
            raise ValueError(f"`{name}` must be an integer of at least 1: received {name}={size!r}.")


def check_rates(**rates):
    """Raises `ValueError` if a rate, such as that of dropout, is outside [0, 1)."""
    for name, rate in rates.items():
        if not isinstance(rate, numbers.Real) or not 0 <= rate < 1:
            raise ValueError(f"`{name}` must be a rate in [0, 1): received {name}={rate!r}.")


def check_positive(**values):
    """Raises `ValueError` unless a number is finite and above 0."""
    for name, value in values.items():
        if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 < value < math.inf:
            raise ValueError(f"`{name}` must be a number above 0: received {name}={value!r}.")


def check_choices(choices, **values):
    """Raises `ValueError` if a value is not one of `choices`, a collection of str."""
    for name, value in values.items():
        if value not in choices:
            raise ValueError(f"`{name}` must be one of {', '.join(choices)}: received {name}={value!r}.")


def check_layers(**layers):
    """Raises `ValueError` unless a value is None or a Keras layer."""
    check_required_layers(**{name: layer for name, layer in layers.items() if layer is not None})


def check_required_layers(**layers):
    """Raises `ValueError` if a value is not a Keras layer."""
    for name, layer in layers.items():
        if not isinstance(layer, keras.Layer):
            raise ValueError(f"`{name}` must be a Keras layer: received {layer!r}.")


def check_built(layer):
    """Raises `ValueError` if a layer is used for decoding before it has weights."""
    if not layer.built:
        raise ValueError(f"{layer.name} has no weights yet: call the layer, or `build`, before you decode.")


def check_layer_list(layers):
    """Raises `ValueError` unless `layers` is a list of layers that a stack can call."""
    if not isinstance(layers, list | tuple) or not all(isinstance(layer, keras.Layer) for layer in layers):
        raise ValueError(f"`layers` must be a list of Keras layers: received {layers!r}.")
    for layer in layers:
        parameters = inspect.signature(layer.call).parameters
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        missing = [name for name in ("return_attention_scores", "training") if name not in parameters]
        if missing and not takes_any:
            raise ValueError(
                f"`layers`: the `call` of {type(layer).__name__} {layer.name!r} has no argument {missing[0]}. Expected "
                "layers such as TransformerEncoderLayer; keras.Sequential takes any layers."
            )


def check_sequences(**tensors):
    """Raises `ValueError` unless each tensor (or tensor's shape) is None or has three axes."""
    for name, tensor in tensors.items():
        shape = getattr(tensor, "shape", tensor)
        if shape is not None and len(shape) != 3:
            raise ValueError(
                f"`{name}` must be of shape [batch, length, hidden]: received {tuple(shape)}. Pass one sequence as a "
                "batch of one."
            )


def is_known(tensor):
    """Returns whether the values of a tensor are known. While a graph is traced, they are not."""
    if isinstance(tensor, keras.KerasTensor):
        return False
    if not keras.ops.is_tensor(tensor):
        return True  # a Python or NumPy number
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.executing_eagerly() and hasattr(tensor, "numpy")  # only eager TensorFlow tensors have this attribute
    if backend == "jax":
        import jax

        return not isinstance(tensor, jax.core.Tracer)
    import torch

    return not (tensor.is_meta or torch.compiler.is_compiling())


def known_range(tensor):
    """Returns the lowest and the highest number of an integer tensor, or None if they are unknown or do not exist."""
    if not is_known(tensor):
        return None
    values = keras.ops.convert_to_numpy(tensor)  # in a graph, `ops.min` of a NumPy array would be unknown
    return (int(values.min()), int(values.max())) if values.size else None


def may_be_equal(shape, other):
    """Returns whether two shapes may be equal. Unknown sizes are None, and an unknown rank is that of TensorFlow."""
    if None in (getattr(shape, "rank", 0), getattr(other, "rank", 0)):
        return True
    pairs = zip(shape, other, strict=False)
    return len(shape) == len(other) and all(None in pair or pair[0] == pair[1] for pair in pairs)


class FileCheck:
    """Base class of layers that can reject a weight file even if the shapes of all weights match.

    When Keras loads a file, it visits a layer once for each attribute that holds the layer. Keras finds the weights
    only on the first visit, but reports the result of the last visit. So `check_file` raises its error again when a
    later visit finds no weights.
    """

    _refusal = None

    def check_file(self, store):
        """Raises `ValueError` if the layer cannot use a weight file; `load_own_variables` must call this first."""
        if list(store.keys()):
            self._refusal = self.refusal_of(store)
        if self._refusal:
            raise self._refusal

    def refusal_of(self, store):
        """Returns a `ValueError` if the layer cannot use a file's weights, {name: array}; otherwise None."""
        raise NotImplementedError


def shape_of(x):
    """Returns a tensor's shape as a tuple of ints, with int32 tensors for sizes that are unknown in a graph.

    `keras.ops.shape` does the same, but adds four operations to a TensorFlow graph for each unknown size, whether it is
    used or not. In a Transformer, a third of all operations came from such sizes. This function adds two operations per
    shape.

    Args:
        x: tensor of known rank, or a `KerasTensor`, whose unknown sizes are returned as None.

    Raises:
        ValueError: if the tensor is ragged.
    """
    shape = tuple(x.shape)
    if None not in shape or isinstance(x, keras.KerasTensor):
        return shape
    import tensorflow as tf

    if isinstance(x, tf.RaggedTensor):
        raise ValueError(f"A tensor of shape {shape} is ragged. Pad it, x.to_tensor(), and pass a mask.")
    return tuple(size if known is None else known for known, size in zip(shape, tf.unstack(tf.shape(x)), strict=True))


def at_least(size, least):
    """Returns the larger of two sizes, each an int or a scalar tensor."""
    return max(size, least) if isinstance(size, int) and isinstance(least, int) else keras.ops.maximum(size, least)


def at_most(size, most):
    """Returns the smaller of two sizes, each an int or a scalar tensor."""
    return min(size, most) if isinstance(size, int) and isinstance(most, int) else keras.ops.minimum(size, most)


def integer_dtype():
    """Returns the dtype for integers that should be computed on the same device as floats: int64 in TensorFlow.

    TensorFlow treats int32 tensors as shapes: it computes them on the host and keeps them there in loops and in
    function arguments, even if everything else is on a GPU. On other backends the dtype is int32, because JAX has no
    int64 by default.
    """
    return "int64" if keras.backend.backend() == "tensorflow" else "int32"
