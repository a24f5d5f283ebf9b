"""Position encodings and embeddings, and the distances between queries and keys for relative positions."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from t2t_lite.layers.base import Initializer, Layer, check_initializers, table_initializer
from t2t_lite.layers.checks import at_least, check_choices, check_required_sizes, known_range, shape_of

_BASE = 10_000.0
LAYOUTS = ("interleaved", "marian", "tensor2tensor")


class Position(NamedTuple):
    """A kind of position encoding.

    Attributes:
        embedding: function(options, initializer, **arguments) that takes a model's options and creates the layer that
            adds positions to embeddings. None if nothing is added. The `max_length` of this layer limits the length of
            the model's sequences.
        turn: function(size) that returns a function(x, position=None, first=0) for rotating the queries and keys of
            self-attention, whose heads have size `size`: see `rotation`. None if queries and keys are not rotated. The
            cache holds rotated keys.
    """

    embedding: Callable | None = None
    turn: Callable | None = None


def _sinusoids(options, initializer, **arguments):
    return SinusoidalPositionEmbedding(options["position_layout"], **arguments)


def _table(options, initializer, **arguments):
    return LearnedPositionEmbedding(options["max_position"], initializer, **arguments)


def rotation(size):
    """Returns the function that rotates heads of size `size`. Raises `ValueError` if the size is odd."""
    if size % 2:
        raise ValueError(f"Rotary positions need an even `key_dim`: received {size}.")
    return functools.partial(rotated, size)


def rotated(size, x, position=None, first=0):
    """Rotates queries or keys by angles that grow with their positions, so that their products depend only on
    distances.

    Element i of the first half of a head and element i of the second half are a pair, which is rotated by position ·
    10000^(-2i/d). This is the order used by GPT-NeoX and Llama, whereas equation 15 of Su et al. pairs neighbours.

    Args:
        size: int, d, which must be even. (In a graph, the size may not be known from the shape of `x`.)
        x: [B, heads, T, d].
        position: int scalar or [B], the position of a decoding step, which the T beams of a row share. If None, the
            positions are `first` … first + T - 1.
        first: int or int scalar, the first position.

    Returns:
        [B, heads, T, d].
    """
    half = size // 2
    frequencies = (_BASE ** (-np.arange(half) / half)).astype("float32")
    if position is None:
        positions = ops.expand_dims(ops.arange(shape_of(x)[2], dtype="int32") + first, 1)  # [T, 1]
    else:
        positions = ops.reshape(position, (-1, 1, 1, 1))
    angles = ops.multiply(ops.cast(positions, "float32"), frequencies)
    cos, sin = ops.cast(ops.cos(angles), x.dtype), ops.cast(ops.sin(angles), x.dtype)
    first, second = x[..., :half], x[..., half:]
    return ops.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


# To add a kind, add an entry here and a value for the hyperparameter `pos`.
POSITIONS = {
    "sinusoidal": Position(embedding=_sinusoids),
    "learned": Position(embedding=_table),
    "rotary": Position(turn=rotation),
    "none": Position(),
}


@keras.saving.register_keras_serializable("t2t_lite")
class SinusoidalPositionEmbedding(Layer):
    """Adds sinusoids, PE(pos, 2i) = sin(pos / 10000^(2i/d)) and PE(pos, 2i+1) = cos(…) (paper, section 3.5).

    Args:
        layout: "interleaved" (as in the paper), "marian" (the same frequencies, but all sines before all cosines) or
            "tensor2tensor" (all sines before all cosines, with the frequencies 10000^(-i/(d/2 - 1))).

    Raises:
        ValueError: if the layout is unknown, or the hidden size is odd.
    """

    def __init__(self, layout: str = "interleaved", **kwargs):
        super().__init__(**kwargs)
        check_choices(LAYOUTS, layout=layout)
        self.layout = layout
        self.input_spec = keras.InputSpec(ndim=3)

    def build(self, input_shape):
        """Checks the hidden size; the layer has no weights."""
        self.require_size(input_shape)
        if input_shape[-1] % 2:
            raise ValueError(f"Sinusoidal positions need an even hidden size: received {input_shape[-1]}.")
        self.hidden_size = input_shape[-1]

    def encode(self, positions):
        """Returns the encodings of integer positions [...], shape [..., hidden]."""
        half = self.hidden_size // 2
        intervals = max(half - 1, 1) if self.layout == "tensor2tensor" else half
        frequencies = (10000.0 ** (-np.arange(half) / intervals)).astype("float32")
        angles = ops.multiply(ops.expand_dims(ops.cast(positions, "float32"), -1), frequencies)
        if self.layout == "interleaved":
            pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
            encodings = ops.reshape(pairs, (*shape_of(angles)[:-1], self.hidden_size))
        else:
            encodings = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
        return ops.cast(encodings, self.compute_dtype)

    def call(self, inputs, position=None):
        """Adds the position encodings to the inputs.

        Args:
            inputs: [B, T, hidden].
            position: int scalar or [B], the position of a decoding step, which the T beams of a row share. If None, the
                positions are 0 … T - 1.

        Returns:
            [B, T, hidden].
        """
        inputs = ops.cast(inputs, self.compute_dtype)  # because inputs may be integers
        if position is None:
            return inputs + ops.expand_dims(self.encode(ops.arange(shape_of(inputs)[1], dtype="int32")), 0)
        return inputs + self.encode(ops.reshape(position, (-1, 1)))


@keras.saving.register_keras_serializable("t2t_lite")
class LearnedPositionEmbedding(Layer):
    """Adds a trained vector for each position (paper, table 3, row E; Gehring et al. 2017).

    Args:
        max_length: int, the number of rows in the table.
        embeddings_initializer: initializer of the table: see `keras.layers.Embedding`. Defaults to N(0,
            hidden_size^-0.5), as for token embeddings before scaling.

    `ValueError` cannot be raised in a graph whose lengths are only known when the graph runs. In such a graph, a
    sequence that is too long causes an error in the backend (a slice beyond its tensor), and a `position` beyond the
    table gives NaN. Positions are never clamped to the last row, nor counted from the end.

    Raises:
        ValueError: if `max_length` is not positive, the initializer is unknown, or a sequence or `position` is beyond
            the table.
    """

    def __init__(self, max_length: int, embeddings_initializer: Initializer = None, **kwargs):
        super().__init__(**kwargs)
        check_required_sizes(max_length=max_length)
        check_initializers(embeddings_initializer=embeddings_initializer)
        self.max_length = max_length
        self.embeddings_initializer = embeddings_initializer
        self.input_spec = keras.InputSpec(ndim=3)

    def build(self, input_shape):
        """Creates the table of position vectors."""
        self.require_size(input_shape)
        initializer = table_initializer(self.embeddings_initializer, input_shape[-1])
        self.table = self.add_weight(name="table", shape=(self.max_length, input_shape[-1]), initializer=initializer)

    def call(self, inputs, position=None):
        """Adds the vectors of the positions; arguments as in `SinusoidalPositionEmbedding.call`."""
        inputs, table = (ops.cast(x, self.compute_dtype) for x in (inputs, self.table))
        if position is not None:
            first, last = known_range(position) or (0, 0)
            if first < 0:
                raise ValueError(f"position={first} is before the learned table: max_length={self.max_length}.")
            self._check(last + 1)
            position = ops.reshape(position, (-1, 1))  # [B or 1, 1]
            # A position beyond the table must not be an error, because finished rows of a search may reach it.
            row = ops.clip(position, 0, self.max_length - 1)
            return inputs + ops.where(ops.expand_dims(row == position, -1), ops.take(table, row, axis=0), float("nan"))
        length, hidden_size = shape_of(inputs)[1:]
        if isinstance(length, int):
            self._check(length)
        return inputs + ops.expand_dims(ops.slice(table, (0, 0), (length, hidden_size)), 0)

    def _check(self, length):
        if length > self.max_length:
            raise ValueError(
                f"A sequence of {length} positions is longer than the learned table: max_length={self.max_length}."
            )


class Strides(NamedTuple):
    """The distances of regularly spaced keys: key j is `stride * (j - i) + shift` positions after query i.

    Attributes:
        shift: int, int scalar, or int32 [G], one per group if the queries have groups, [B, heads, G, T, size].
        stride: int.
        keys: S, the number of keys, if the keys of several runs are concatenated, otherwise None.
    """

    shift: Any
    stride: int = 1
    keys: Any = None

    def offsets(self, queries, keys):
        """Returns T + S distances, ordered for `place`, int32 [T + S] or [G, T + S]. The last distance never occurs."""
        steps = self.stride * ops.arange(1 - queries, keys + 1, dtype="int32")
        return steps + ops.expand_dims(ops.cast(self.shift, "int32"), -1)

    def place(self, x):
        """Converts one number per distance, […, T, T + S], to one number per key, […, T, S]."""
        return shift_rows(x)

    def collect(self, x):
        """Converts one number per key, […, T, S], to one per distance, […, T, T + S]; the transpose of `place`."""
        return shift_rows_back(x)


class Steps(NamedTuple):
    """The distances in a decoding step, in which each key has the same distance from all queries (the beams).

    Attributes:
        distances: int32 [S] or [B or 1, 1, S], one per key.
        keys: S, or None, as in `Strides`.
    """

    distances: Any
    keys: Any = None

    def offsets(self, queries, keys):
        """Returns the attribute `distances`, regardless of how many queries and keys there are."""
        return self.distances

    def place(self, x):
        """Returns its argument unchanged, because it already has one number per key, [B, heads, T, S]."""
        return x

    collect = place


def by_key(distances, queries, keys, products):
    """Computes a number for each distance and returns it for each query and key, […, T, S].

    Args:
        distances: list of `Strides` and `Steps` (runs), whose keys are concatenated.
        queries, keys: int or int scalar, T and S, the numbers of queries and keys.
        products: function of (offsets, run) that returns a number for each query and distance, […, T, D].
    """

    def place(run):
        return run.place(products(run.offsets(queries, keys if run.keys is None else run.keys), run))

    placed = [place(run) for run in distances]
    return placed[0] if len(placed) == 1 else ops.concatenate(placed, axis=-1)


def split_by_run(x, distances):
    """Splits the keys of […, T, S] into one tensor per run in `distances`."""
    if len(distances) == 1:
        return [x]
    pieces, begin = [], 0
    for run in distances:
        pieces.append(x[..., begin : begin + run.keys])
        begin = begin + run.keys
    return pieces


def shift_rows(x):
    """Shifts row i of […, T, T + S] so that element (i, j) of the result, […, T, S], is element (i, j - i + T - 1).

    If the flattened `x` is viewed as a matrix with one fewer column, each row begins one element earlier. So the shift
    only needs a slice and a reshape (Huang et al. 2018, "Music Transformer").
    """
    *lead, length, width = shape_of(x)
    before, narrow = (at_least(size - 1, 0) for size in (length, width))  # 0 if all prompts are empty
    zeros = (0,) * len(lead)
    flat = ops.reshape(x, (*lead, length * width))
    # `ops.slice` is used instead of indexing, because its gradient only pads.
    flat = ops.slice(flat, (*zeros, before), (*lead, length * narrow))
    rows = ops.reshape(flat, (*lead, length, narrow))
    return ops.slice(rows, (*zeros, 0, 0), (*lead, length, width - length))


def shift_rows_back(x):
    """The transpose of `shift_rows`: […, T, S] -> […, T, T + S]."""
    *lead, length, keys = shape_of(x)
    before, none = at_least(length - 1, 0), ((0, 0),) * len(lead)
    wide = ops.pad(x, (*none, (0, 0), (0, before)))
    flat = ops.reshape(wide, (*lead, length * (keys + before)))
    flat = ops.pad(flat, (*none, (before, length - before)))
    return ops.reshape(flat, (*lead, length, keys + length))
