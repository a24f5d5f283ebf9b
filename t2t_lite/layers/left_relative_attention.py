"""Relative positions to the left, a vector per head and distance (Huang et al. 2018, "Music Transformer")."""

import keras
from keras import ops

from t2t_lite.layers.relative_attention import RelativeAttention, shift_rows, shift_rows_back


@keras.saving.register_keras_serializable("t2t_lite")
class LeftRelativeAttention(RelativeAttention):
    """Self-attention that adds a learned vector for the distance i - j to key j, as query i sees it, in every head.

    score(i, j) = q_i · (k_j + e_(i - j)) / √d_k (Huang et al., equation 3); e is zero from a distance of
    `max_relative_position` on, and to the right, where a decoder sees nothing. As tensor2tensor's
    `dot_product_self_attention_relative_v2` (layers/common_attention.py). Without a tensor of [T, S, d]: the queries'
    products with the vectors are shifted row by row into place.

    Args:
        num_heads: int, h.
        max_relative_position: int, k, the number of distances with a vector, from 0 on.
        add_relative_to_values: bool: also value j gets a vector for its distance, from a table of its own.
        heads_share_relative_embedding: bool: one table for all heads.
        key_dim, value_dim, dropout, use_bias: as `MultiHeadAttention`.

    Raises:
        ValueError: as `RelativeAttention`.
    """

    def __init__(
        self,
        num_heads: int,
        max_relative_position: int,
        add_relative_to_values: bool = False,
        heads_share_relative_embedding: bool = False,
        **kwargs,
    ):
        super().__init__(num_heads, max_relative_position, add_relative_to_values, **kwargs)
        self.heads_share_relative_embedding = heads_share_relative_embedding

    def add_table(self, name, size):
        """Creates a table [heads or 1, k, size], N(0, size^-0.5) as in tensor2tensor; its last row is of distance 0."""
        heads = 1 if self.heads_share_relative_embedding else self.num_heads
        initializer = keras.initializers.RandomNormal(stddev=size**-0.5)
        return self.add_weight(name=name, shape=(heads, self.max_relative_position, size), initializer=initializer)

    def scores(self, query, key, distances):
        """Adds the products with the vectors of the distances; arguments as `MultiHeadAttention.scores`."""
        content = ops.matmul(query, ops.swapaxes(key, -1, -2))
        if distances is not None:
            vectors = self._vectors(ops.cast(self.key_table, query.dtype), distances)
            return content + ops.matmul(query, ops.swapaxes(vectors, -1, -2))
        length, keys = ops.shape(query)[2], ops.shape(key)[2]
        table = self._near(self.key_table, length, query.dtype)
        relative = ops.matmul(query, ops.swapaxes(table, -1, -2))  # [B, heads, T, k], the last of distance 0
        relative = ops.pad(relative, ((0, 0), (0, 0), (0, 0), (length, keys)))
        batch, heads, _, _ = ops.shape(relative)
        relative = ops.slice(relative, (0, 0, 0, table.shape[1]), (batch, heads, length, length + keys))
        return content + shift_rows(relative)

    def mix(self, weights, value, distances):
        """Adds the values' vectors; arguments as `MultiHeadAttention.mix`."""
        output = ops.matmul(weights, value)
        if self.value_table is None:
            return output
        if distances is not None:
            return output + ops.matmul(weights, self._vectors(ops.cast(self.value_table, value.dtype), distances))
        batch, heads, length, _ = ops.shape(weights)
        table = self._near(self.value_table, length, value.dtype)
        by_distance = ops.pad(shift_rows_back(weights), ((0, 0), (0, 0), (0, 0), (table.shape[1], 0)))
        by_distance = ops.slice(by_distance, (0, 0, 0, length), (batch, heads, length, table.shape[1]))
        return output + ops.matmul(by_distance, table)

    def _near(self, table, length, dtype):
        """Returns the rows of a table that queries of `length` positions can reach, [heads or 1, k or less, size]."""
        size = min(self.max_relative_position, length) if isinstance(length, int) else self.max_relative_position
        return ops.cast(table[:, self.max_relative_position - size :], dtype)

    def _vectors(self, table, distances):
        """Returns the vectors of distances int32 [S] or [B, S], negative to the left: [(B,) heads or 1, S, size]."""
        count = self.max_relative_position
        rows = ops.where((distances > -count) & (distances <= 0), distances + count, 0)
        vectors = ops.take(ops.pad(table, ((0, 0), (1, 0), (0, 0))), rows, axis=1)
        return vectors if len(distances.shape) == 1 else ops.swapaxes(vectors, 0, 1)
