"""Kinds of positions: what is added to embeddings, and how queries and keys are turned (Su et al. 2021)."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from keras import ops

from t2t_lite.layers.position_embedding import LearnedPositionEmbedding, SinusoidalPositionEmbedding
from t2t_lite.layers.shapes import shape_of


class Position(NamedTuple):
    """A kind of position.

    Attributes:
        embedding: function(options, initializer, **of_layer) that makes the layer which adds positions to embeddings,
            from a model's options; None: nothing is added. A layer with a `max_length` is a limit to the model.
        turn: function(size) that returns the function(x, position=None, first=0) by which queries and keys of
            self-attention, heads of `size` numbers, are turned: see `rotation`; None: they are not. The cache keeps
            turned keys.
    """

    embedding: Callable | None = None
    turn: Callable | None = None


def _sinusoids(options, initializer, **of_layer):
    return SinusoidalPositionEmbedding(options["position_layout"], **of_layer)


def _table(options, initializer, **of_layer):
    return LearnedPositionEmbedding(options["max_position"], initializer, **of_layer)


_BASE = 10_000.0


def rotation(size):
    """Returns `rotated` for heads of `size` as a function of its other arguments. Raises `ValueError` if odd."""
    if size % 2:
        raise ValueError(f"Rotary positions need an even `key_dim`: received {size}.")
    return functools.partial(rotated, size)


def rotated(size, x, position=None, first=0):
    """Turns queries or keys by angles that grow with their positions, so that products depend on distances alone.

    Number i of the first half of a head and number i of the second are a pair, turned by position · 10000^(-2i/d)
    (GPT-NeoX's and Llama's order; equation 15 of Su et al., which has neighbours as pairs).

    Args:
        size: int, d, which is even; in a graph `x` may not tell it.
        x: [B, heads, T, d].
        position: int scalar or [B]: the one position of all T (beams of one decoding step), of all rows or of each;
            None: `first` … first + T - 1.
        first: int or int scalar.

    Returns:
        [B, heads, T, d].
    """
    half = size // 2
    frequencies = (_BASE ** (-np.arange(half) / half)).astype("float32")
    if position is None:
        positions = ops.expand_dims(ops.arange(shape_of(x)[2]) + first, 1)  # [T, 1]
    else:
        positions = ops.reshape(position, (-1, 1, 1, 1))
    angles = ops.multiply(ops.cast(positions, "float32"), frequencies)
    cos, sin = ops.cast(ops.cos(angles), x.dtype), ops.cast(ops.sin(angles), x.dtype)
    first, second = x[..., :half], x[..., half:]
    return ops.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


# Another kind is another entry, and a choice of the hyperparameter `pos`.
POSITIONS = {
    "sinusoidal": Position(embedding=_sinusoids),
    "learned": Position(embedding=_table),
    "rotary": Position(turn=rotation),
    "none": Position(),
}
