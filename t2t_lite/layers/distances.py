"""How far keys are from queries, and how numbers by distance come to stand beside their keys."""

from typing import Any, NamedTuple

from keras import ops

from t2t_lite.layers.shapes import shape_of


class Strides(NamedTuple):
    """T queries and S keys at even steps: key j is `stride * (j - i) + shift` positions after query i.

    Attributes:
        shift: int, int scalar, or int32 [G] of G groups, the third axis of queries [B, heads, G, T, size].
        stride: int.
        keys: S, where keys of several runs lie side by side; None: all.
    """

    shift: Any
    stride: int = 1
    keys: Any = None

    def offsets(self, queries, keys):
        """Returns the T + S distances that occur, int32 [T + S] or [G, T + S], for `place`; the last never does."""
        steps = self.stride * ops.arange(1 - queries, keys + 1, dtype="int32")
        return steps + ops.expand_dims(ops.cast(self.shift, "int32"), -1)

    def place(self, x):
        """[…, T, T + S] by distance -> […, T, S] by key."""
        return shift_rows(x)

    def collect(self, x):
        """[…, T, S] by key -> […, T, T + S] by distance: the transpose of `place`."""
        return shift_rows_back(x)


class Steps(NamedTuple):
    """Keys of which each has its own distance from all queries, which are beams of one position.

    Attributes:
        distances: int32 [S], or [B or 1, 1, S].
        keys: S, or None: as of `Strides`.
    """

    distances: Any
    keys: Any = None

    def offsets(self, queries, keys):
        """Returns the distances."""
        return self.distances

    def place(self, x):
        """Returns [B, heads, T, S], which stands by key as it is."""
        return x

    collect = place


class Places(NamedTuple):
    """Queries at places of their own in each row, and S keys at the places 0 to S - 1.

    Attributes:
        places: int32 [B, N], of the queries.
        keys: S, or None: as of `Strides`.
    """

    places: Any
    keys: Any = None

    def offsets(self, queries, keys):
        """Returns the 2 S distances that may occur, int32 [2 S]: those of `Strides` of as many queries as keys."""
        return ops.arange(1 - keys, keys + 1, dtype="int32")

    def place(self, x):
        """[B, heads, N, 2 S] by distance -> [B, heads, N, S] by key."""
        keys = shape_of(x)[-1] // 2
        at = ops.arange(keys, dtype="int32") - ops.expand_dims(ops.cast(self.places, "int32"), -1) + (keys - 1)
        return ops.take_along_axis(x, ops.expand_dims(at, 1), axis=-1)


def by_key(distances, queries, keys, products):
    """Returns numbers for each query and key, […, T, S].

    Args:
        distances: list of `Strides` and `Steps`, whose keys lie side by side.
        queries, keys: T and S.
        products: function of (offsets, run) that returns each query's number for each distance, […, T, D].
    """

    def place(run):
        return run.place(products(run.offsets(queries, keys if run.keys is None else run.keys), run))

    placed = [place(run) for run in distances]
    return placed[0] if len(placed) == 1 else ops.concatenate(placed, axis=-1)


def split_by_run(x, distances):
    """Splits […, T, S] into one tensor for each of the runs."""
    if len(distances) == 1:
        return [x]
    pieces, begin = [], 0
    for run in distances:
        pieces.append(x[..., begin : begin + run.keys])
        begin = begin + run.keys
    return pieces


def shift_rows(x):
    """[…, T, T + S] -> […, T, S]: element (i, j) is (i, j - i + T - 1) of `x`.

    In the flattened matrix every row then begins one element earlier than the row before, in a matrix that is one
    narrower: so this is a slice and a reshape (Huang et al. 2018, "Music Transformer").
    """
    *lead, length, width = shape_of(x)
    zeros = (0,) * len(lead)
    flat = ops.reshape(x, (*lead, length * width))
    # ops.slice, not indexing: its gradient is one padding
    flat = ops.slice(flat, (*zeros, _before(length)), (*lead, length * _before(width)))
    rows = ops.reshape(flat, (*lead, length, _before(width)))
    return ops.slice(rows, (*zeros, 0, 0), (*lead, length, width - length))


def shift_rows_back(x):
    """[…, T, S] -> […, T, T + S]: the transpose of `shift_rows`."""
    *lead, length, keys = shape_of(x)
    before, none = _before(length), ((0, 0),) * len(lead)
    wide = ops.pad(x, (*none, (0, 0), (0, before)))
    flat = ops.reshape(wide, (*lead, length * (keys + before)))
    flat = ops.pad(flat, (*none, (before, length - before)))
    return ops.reshape(flat, (*lead, length, keys + length))


def _before(length):
    """Returns one less than a length, but not less than 0: prompts may all be empty."""
    return max(length - 1, 0) if isinstance(length, int) else ops.maximum(length - 1, 0)
