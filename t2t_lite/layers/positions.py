"""Kinds of positions: what is added to embeddings, and what becomes of queries and keys."""

from collections.abc import Callable
from typing import NamedTuple

from t2t_lite.layers.position_embedding import LearnedPositionEmbedding, SinusoidalPositionEmbedding
from t2t_lite.layers.rotary import rotation


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


# Another kind is another entry, and a choice of the hyperparameter `pos`.
POSITIONS = {
    "sinusoidal": Position(embedding=_sinusoids),
    "learned": Position(embedding=_table),
    "rotary": Position(turn=rotation),
    "none": Position(),
}
