"""Activations and initializers as Keras' layers take them: by name, as an object, or as the config of one."""

import functools
import inspect

import keras
import numpy as np
from keras import ops

GATED = "swiglu"  # needs a third matrix, so it is not a function of one tensor
_OWN = {
    "relu": ops.relu,
    "gelu": functools.partial(ops.gelu, approximate=False),
    "gelu_tanh": functools.partial(ops.gelu, approximate=True),
    "swish": ops.silu,
    GATED: ops.silu,  # of the gate
}
# What initializers may be in constructors: an object of Keras, its name or its configuration.
Initializer = keras.initializers.Initializer | str | dict | None
GLOROT = "glorot_uniform"


def activation_function(identifier, argument="activation"):
    """Returns the function that an activation names; for "swiglu" the gate's.

    Raises:
        ValueError: Keras does not know it.
    """
    if isinstance(identifier, str) and identifier in _OWN:
        return _OWN[identifier]
    try:
        return keras.activations.get(identifier)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"`{argument}` must be a function, swiglu, or a name of keras.activations such as relu, gelu, swish and "
            f"tanh: received {identifier!r}."
        ) from error


def check_initializers(**identifiers):
    """Raises `ValueError` for an initializer that Keras does not know."""
    for name, identifier in identifiers.items():
        if identifier is None or identifier == GLOROT:
            continue  # making one draws its seed: a default would change the weights that follow
        try:
            keras.initializers.get(identifier)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"`{name}` must be an initializer of Keras or its name: received {identifier!r}."
            ) from error


def matrix_initializer(name, gain):
    """Returns the initializer that tensor2tensor's `initializer` and `initializer_gain` mean (its utils/optimize.py).

    Raises:
        ValueError: an unknown name.
    """
    if (name, gain) == ("uniform_unit_scaling", 1.0):
        return GLOROT
    made = {
        "uniform_unit_scaling": lambda: keras.initializers.VarianceScaling(gain, "fan_avg", "uniform"),
        "normal_unit_scaling": lambda: keras.initializers.VarianceScaling(gain, "fan_avg", "truncated_normal"),
        "uniform": lambda: keras.initializers.RandomUniform(-0.1 * gain, 0.1 * gain),
        "normal": lambda: keras.initializers.RandomNormal(stddev=gain),  # not in tensor2tensor: BERT's and GPT-2's
        "orthogonal": lambda: keras.initializers.Orthogonal(gain),
    }
    if name not in made:
        raise ValueError(f"`initializer` must be one of {', '.join(made)}: received initializer={name!r}.")
    return made[name]()


def _is_initializer_class(value):
    """Returns whether a value is a class of initializers, which Keras' layers take as well."""
    return inspect.isclass(value) and issubclass(value, keras.initializers.Initializer)


def own_initializer(identifier):
    """Returns an initializer for one weight: a copy of an object, which would give all weights the same values."""
    if _is_initializer_class(identifier):
        return identifier()
    if isinstance(identifier, keras.initializers.Initializer):
        return type(identifier).from_config(identifier.get_config())
    return identifier


def dense_initializers(initializers, is_output):
    """Returns the arguments of one `keras.layers.Dense` of a sub-layer.

    Args:
        initializers: {name: identifier} with "kernel_initializer", "bias_initializer" and "output_initializer".
        is_output: bool, whether the dense layer makes the sub-layer's output.
    """
    kernel = (is_output and initializers["output_initializer"]) or initializers["kernel_initializer"]
    return {
        "kernel_initializer": own_initializer(kernel),
        "bias_initializer": own_initializer(initializers["bias_initializer"]),
    }


def config_of(value):
    """Returns an argument as `get_config` has it: numbers, words, names of Keras' own functions, or configurations."""
    if isinstance(value, list | tuple):
        return [config_of(each) for each in value]
    if _is_initializer_class(value):
        value = value()
    if isinstance(value, keras.Layer | keras.initializers.Initializer):
        return keras.saving.serialize_keras_object(value)
    if isinstance(value, np.generic):
        return value.item()
    return keras.activations.serialize(value) if callable(value) else value
