"""Relative positions to the left, a vector per head and distance (Huang et al. 2018, "Music Transformer")."""

import keras
from keras import ops

from t2t_lite.layers.distances import Strides, shift_rows_back
from t2t_lite.layers.scores.relative import RelativeScore
from t2t_lite.layers.shapes import shape_of
from t2t_lite.registry import register_score


@register_score("relative_v2")
class LeftRelativeScore(RelativeScore):
    """score(i, j) = q_i · (k_j + e_(i - j)): see `LeftRelativeAttention`, which is attention with this score."""

    other_name = "dot_product_relative_v2"

    def __init__(
        self,
        max_relative_position: int,
        add_relative_to_values: bool = False,
        heads_share_relative_embedding: bool = False,
    ):
        super().__init__(max_relative_position, add_relative_to_values)
        self.heads_share_relative_embedding = heads_share_relative_embedding

    def table(self, layer, name, size):
        """Creates a table [heads or 1, k, size], N(0, size^-0.5) as in tensor2tensor; its last row is of distance 0."""
        heads = 1 if self.heads_share_relative_embedding else layer.num_heads
        initializer = keras.initializers.RandomNormal(stddev=size**-0.5)
        return layer.add_weight(name=name, shape=(heads, self.max_relative_position, size), initializer=initializer)

    def rows(self, layer, table):
        """Returns what a table has for the heads that are asked, [heads or 1, k, size]."""
        return table if self.heads_share_relative_embedding else layer.of_heads(table)

    def products(self, table, query, offsets, run):
        """Returns the products of queries and the vectors of distances; arguments as `RelativeScore.products`."""
        if not _is_plain(run):
            vectors = self._vectors(ops.cast(table, query.dtype), offsets, len(query.shape))
            return ops.matmul(query, ops.swapaxes(vectors, -1, -2))
        length, width = shape_of(query)[-2], shape_of(offsets)[0]
        near, keys = self._near(table, run, length, query), width - length
        x = ops.matmul(query, ops.swapaxes(near, -1, -2))  # […, T, k], the last of distance 0
        # The column of distance 0 is to be T - 1 - shift, among T + S.
        *lead, _, size = shape_of(x)
        x = ops.pad(x, (*[(0, 0)] * len(lead), (0, 0), (length - run.shift, _at_least_0(keys + run.shift))))
        return ops.slice(x, (*[0] * len(lead), 0, size), (*lead, length, width))

    def sums(self, table, weights, dtype, run):
        """Returns the sums of the distances' vectors by weights; arguments as `RelativeScore.sums`."""
        *lead, length, keys = shape_of(weights)
        if not _is_plain(run):
            vectors = self._vectors(ops.cast(table, dtype), run.offsets(length, keys), len(weights.shape))
            return ops.matmul(run.collect(weights), vectors)
        near = self._near(table, run, length, weights, dtype)
        size, zeros = near.shape[-2], [(0, 0)] * len(lead)
        x = ops.pad(shift_rows_back(weights), (*zeros, (0, 0), (size, _at_least_0(-run.shift - keys))))
        x = ops.slice(x, (*[0] * len(lead), 0, length - run.shift), (*lead, length, size))
        return ops.matmul(x, near)

    def _near(self, table, run, length, like, dtype=None):
        """Returns the rows of a table that a run of `length` queries can reach, [heads or 1, (1,) k or less, size]."""
        size, reach = self.max_relative_position, length - run.shift
        size = min(size, max(reach, 0)) if isinstance(reach, int) else size
        near = ops.cast(table[:, self.max_relative_position - size :], dtype or like.dtype)
        return ops.expand_dims(near, 1) if len(like.shape) == 5 else near

    def _vectors(self, table, offsets, rank):
        """Returns the vectors of distances int32 [D], [G, D] or [B, 1, D], [(B,) heads or 1, (G or 1,) D, size]."""
        count = self.max_relative_position
        rows = ops.where((offsets > -count) & (offsets <= 0), offsets + count, 0)
        vectors = ops.take(ops.pad(table, ((0, 0), (1, 0), (0, 0))), rows, axis=1)
        if len(offsets.shape) == 3:
            return ops.swapaxes(vectors[:, :, 0], 0, 1)
        return ops.expand_dims(vectors, 1) if rank == 5 and len(offsets.shape) == 1 else vectors


def _is_plain(run):
    """Returns whether distances grow by one from key to key, alike in all groups."""
    return isinstance(run, Strides) and run.stride == 1 and len(getattr(run.shift, "shape", ())) == 0


def _at_least_0(number):
    return max(number, 0) if isinstance(number, int) else ops.maximum(number, 0)
