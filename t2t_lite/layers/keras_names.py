"""Activations and initializers as Keras' layers take them: by name, as an object, or as the config of one."""

import functools

import keras
from keras import ops

GATED = "swiglu"  # needs a third matrix, so it is no function of one tensor
_OWN = {
    "relu": ops.relu,
    "gelu": functools.partial(ops.gelu, approximate=False),
    "swish": ops.silu,
    GATED: ops.silu,  # of the gate
}
GLOROT = "glorot_uniform"


def activation_function(identifier):
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
            "`activation` must be a function, swiglu, or a name of keras.activations such as relu, gelu, swish and "
            f"tanh: received {identifier!r}."
        ) from error


def activation_config(identifier):
    """Returns what `get_config` says of an activation: its name, or the config of a registered object."""
    if identifier is None or isinstance(identifier, str | dict):
        return identifier
    return keras.activations.serialize(identifier)


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


def own_initializer(identifier):
    """Returns an initializer for one weight: a copy of an object, which would give all weights the same values."""
    if isinstance(identifier, keras.initializers.Initializer):
        return type(identifier).from_config(identifier.get_config())
    return identifier


def initializer_config(identifier):
    """Returns what `get_config` says of an initializer."""
    if identifier is None or isinstance(identifier, str | dict):
        return identifier
    return keras.initializers.serialize(identifier)
