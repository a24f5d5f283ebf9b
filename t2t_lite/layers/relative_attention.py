"""Attention with relative positions (Shaw et al. 2018, "Self-Attention with Relative Position Representations")."""

import keras
from keras import ops

from t2t_lite.layers.attention import MultiHeadAttention
from t2t_lite.layers.checks import check_sizes


@keras.saving.register_keras_serializable("t2t_lite")
class RelativeAttention(MultiHeadAttention):
    """Self-attention that adds a learned vector for the distance j - i to key j, as query i sees it.

    score(i, j) = q_i · (k_j + a_clip(j - i)) / √d_k, with distances clipped to ±max_relative_position (Shaw et al.,
    equations 4 and 5); one table for all heads, as in tensor2tensor's `dot_product_attention_relative`
    (layers/common_attention.py). No tensor of [T, S, d] is made: the queries' products with the 2k + 1 vectors are
    widened to [T, T + S] and shifted row by row into place.

    Args:
        num_heads: int, h.
        max_relative_position: int, k; longer distances share a vector.
        add_relative_to_values: bool: also value j gets a vector for its distance (equation 3), from a table of its own.
        key_dim, value_dim, dropout, use_bias: as `MultiHeadAttention`.

    Raises:
        ValueError: as `MultiHeadAttention`, or `max_relative_position` is less than 1.
    """

    def __init__(self, num_heads: int, max_relative_position: int, add_relative_to_values: bool = False, **kwargs):
        super().__init__(num_heads, **kwargs)
        check_sizes(max_relative_position=max_relative_position)
        self.max_relative_position = max_relative_position
        self.add_relative_to_values = add_relative_to_values

    def build(self, query_shape, value_shape=None, key_shape=None):
        """Creates the projections and the tables, Glorot uniform as in tensor2tensor."""
        super().build(query_shape, value_shape, key_shape)
        self.key_table = self.add_table("key_table", self.query_size)
        self.value_table = None
        if self.add_relative_to_values:
            self.value_table = self.add_table("value_table", self.value_size)

    def add_table(self, name, size):
        """Creates a table of vectors of `size`, [2k + 1, size]. Override it for another one."""
        return self.add_weight(name=name, shape=(2 * self.max_relative_position + 1, size))

    def attend_cached(self, query, past, mask, step):
        """Attends from beams of one step; arguments and results as `MultiHeadAttention.attend_cached`.

        Raises:
            NotImplementedError: a subclass overrides `attend` alone, which knows nothing of the cache's positions.
        """
        if self.overrides_attend:
            raise NotImplementedError(
                f"{type(self).__name__} overrides `attend`, and decodes only if it also overrides `attend_cached`."
            )
        return super().attend_cached(query, past, mask, step)

    def scores(self, query, key, distances):
        """Adds the products with the vectors of the distances; arguments as `MultiHeadAttention.scores`."""
        relative = ops.matmul(query, ops.transpose(ops.cast(self.key_table, query.dtype)))  # [B, heads, T, 2k + 1]
        rows = ops.swapaxes(self._rows(query, key, distances), -1, -2)
        relative = ops.matmul(relative, rows)
        return super().scores(query, key, distances) + (shift_rows(relative) if distances is None else relative)

    def mix(self, weights, value, distances):
        """Adds the values' vectors; arguments as `MultiHeadAttention.mix`."""
        output = super().mix(weights, value, distances)
        if self.value_table is None:
            return output
        rows = self._rows(weights, value, distances)
        by_row = ops.matmul(shift_rows_back(weights) if distances is None else weights, rows)
        return output + ops.matmul(by_row, ops.cast(self.value_table, value.dtype))

    def _rows(self, query, key, distances):
        """Returns the table's row of each distance as zeros and a one, [D, 2k + 1] or [B, 1, D, 2k + 1].

        Products with this matrix, not a gather: that one's gradient is a slow scatter.
        """
        limit = self.max_relative_position
        if distances is None:
            # The last is never seen, see shift_rows.
            distances = ops.arange(1 - ops.shape(query)[2], ops.shape(key)[2] + 1, dtype="int32")
        rows = ops.one_hot(ops.clip(distances, -limit, limit) + limit, 2 * limit + 1, dtype=query.dtype)
        return rows if len(rows.shape) == 2 else ops.expand_dims(rows, 1)


def shift_rows(x):
    """[B, heads, T, T + S] -> [B, heads, T, S]: element (i, j) is (i, j - i + T - 1) of `x`.

    In the flattened matrix every row then begins one element earlier than the row before, in a matrix that is one
    narrower: so this is a slice and a reshape (Huang et al. 2018, "Music Transformer").
    """
    batch, heads, length, width = ops.shape(x)
    flat = ops.reshape(x, (batch, heads, length * width))
    # ops.slice, not indexing: its gradient is one padding
    flat = ops.slice(flat, (0, 0, _before(length)), (batch, heads, length * _before(width)))
    rows = ops.reshape(flat, (batch, heads, length, _before(width)))
    return ops.slice(rows, (0, 0, 0, 0), (batch, heads, length, width - length))


def shift_rows_back(x):
    """[B, heads, T, S] -> [B, heads, T, T + S]: the transpose of `shift_rows`."""
    batch, heads, length, keys = ops.shape(x)
    before = _before(length)
    wide = ops.pad(x, ((0, 0), (0, 0), (0, 0), (0, before)))
    flat = ops.reshape(wide, (batch, heads, length * (keys + before)))
    flat = ops.pad(flat, ((0, 0), (0, 0), (before, length - before)))
    return ops.reshape(flat, (batch, heads, length, keys + length))


def _before(length):
    """Returns one less than a length, but not less than 0: prompts may all be empty."""
    return max(length - 1, 0) if isinstance(length, int) else ops.maximum(length - 1, 0)
