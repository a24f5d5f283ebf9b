"""The scoring functions of attention: the dot product (paper, section 3.2.1), with or without relative positions."""

import keras
from keras import ops

from t2t_lite.layers.checks import at_least, check_required_sizes, shape_of
from t2t_lite.layers.layer_kinds import Kind
from t2t_lite.layers.positions import Strides, by_key, shift_rows_back, split_by_run
from t2t_lite.registry import register_score


@register_score("dot_product")
class AttentionScore(Kind):
    """The dot-product score, score(i, j) = q_i · k_j, which leaves the values unchanged.

    To define a score, subclass this class and override `scores`, and `build` if the score has weights. `register_score`
    gives the subclass a name.

    Attributes:
        is_relative: bool, whether the scores depend on distances, so that they need the positions of the queries.
    """

    is_relative = False

    def build(self, layer, hidden_size):
        """Creates the weights as attributes of the attention layer: `layer.my_table = layer.add_weight(…)`."""

    def scores(self, layer, query, key, distances, training):
        """Returns the scores of keys before the softmax, […, T, S].

        Args:
            layer: MultiHeadAttention, which holds the weights. If the weights are per head, [heads, …], read them
                through `layer.of_heads`.
            query: [B, heads, T, key_dim], or [B, heads, G, T, key_dim] for G groups, already scaled by key_dim^-0.5.
            key: [B, heads, S, key_dim], or [B, heads, G or 1, S, key_dim].
            distances: list of `Strides` and `Steps`, the positions of the keys relative to the queries.
            training: bool.
        """
        return ops.matmul(query, ops.swapaxes(key, -1, -2))

    def mix(self, layer, weights, value, distances):
        """Returns the weighted sums of the values, […, T, value_dim], for `weights` […, T, S]. See also `scores`."""
        return ops.matmul(weights, value)

    def extra_flops(self, layer, keys):
        """Returns the number of extra operations per query, compared with a dot-product score for `keys` keys."""
        return 0

    def extra_memory(self, layer, keys, compute):
        """Returns the extra bytes stored per query for the backward pass, compared with a dot-product score."""
        return 0


@register_score("relative")
class RelativeScore(AttentionScore):
    """score(i, j) = q_i · (k_j + a_clip(j - i)): see `RelativeAttention` (Shaw et al. 2018, arXiv 1803.02155)."""

    other_name = "dot_product_relative"
    is_relative = True

    def __init__(self, max_relative_position: int, add_relative_to_values: bool = False):
        check_required_sizes(max_relative_position=max_relative_position)
        self.max_relative_position = max_relative_position
        self.add_relative_to_values = add_relative_to_values

    def build(self, layer, hidden_size):
        """Creates the tables of distance vectors, initialized with Glorot uniform as in tensor2tensor."""
        layer.key_table = self.table(layer, "key_table", layer.query_size)
        layer.value_table = None
        if self.add_relative_to_values:
            layer.value_table = self.table(layer, "value_table", layer.value_size)

    def table(self, layer, name, size):
        """Creates a table of 2k + 1 distance vectors, [2k + 1, size]."""
        return layer.add_weight(name=name, shape=(2 * self.max_relative_position + 1, size))

    def scores(self, layer, query, key, distances, training):
        """Adds products with distance vectors to the dot products; for arguments see `AttentionScore.scores`."""

        def products(offsets, run):
            return self.products(self.rows(layer, layer.key_table), query, offsets, run)

        content = super().scores(layer, query, key, distances, training)
        return content + by_key(distances, shape_of(query)[-2], shape_of(key)[-2], products)

    def mix(self, layer, weights, value, distances):
        """Adds the weighted sums of distance vectors to the sums of values; arguments as in `AttentionScore.mix`."""
        output = super().mix(layer, weights, value, distances)
        if layer.value_table is None:
            return output
        for run, run_weights in zip(distances, split_by_run(weights, distances), strict=True):
            output = output + self.sums(self.rows(layer, layer.value_table), run_weights, value.dtype, run)
        return output

    def rows(self, layer, table):
        """Returns the rows of a table for the requested heads: here the whole table, which all heads share."""
        return table

    def products(self, table, query, offsets, run):
        """Returns the products […, T, D] of the queries and the vectors for the distances `offsets`, int32 […, D]."""
        relative = ops.matmul(query, ops.transpose(ops.cast(table, query.dtype)))  # […, T, 2k + 1]
        return ops.matmul(relative, ops.swapaxes(self._rows(offsets, query.dtype), -1, -2))

    def sums(self, table, weights, dtype, run):
        """Returns sums of distance vectors, […, T, size], weighted by the attention […, T, S] to one run's keys."""
        rows = self._rows(run.offsets(*shape_of(weights)[-2:]), weights.dtype)
        return ops.matmul(ops.matmul(run.collect(weights), rows), ops.cast(table, dtype))

    def _rows(self, offsets, dtype):
        """Returns one-hot vectors, […, D, 2k + 1], that select the table row of each distance.

        A product with this matrix replaces a gather, whose gradient would be a slow scatter.
        """
        limit = self.max_relative_position
        return ops.one_hot(ops.clip(offsets, -limit, limit) + limit, 2 * limit + 1, dtype=dtype)

    def extra_flops(self, layer, keys):
        """Counts the operations for products with distance vectors, but not for shifting these products into place."""
        channels = layer.query_size + layer.value_size * self.add_relative_to_values
        return 2 * layer.key_table.shape[-2] * layer.num_heads * channels

    def extra_memory(self, layer, keys, compute):
        """Counts the attention weights that are stored a second time, ordered by distance."""
        return layer.num_heads * 2 * keys * compute * self.add_relative_to_values


@register_score("relative_v2")
class LeftRelativeScore(RelativeScore):
    """score(i, j) = q_i · (k_j + e_(i - j)): see `LeftRelativeAttention` (Huang et al. 2018, "Music Transformer")."""

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
        """Creates a table of vectors [heads or 1, k, size], from N(0, size^-0.5); the last row is for distance 0."""
        heads = 1 if self.heads_share_relative_embedding else layer.num_heads
        initializer = keras.initializers.RandomNormal(stddev=size**-0.5)
        return layer.add_weight(name=name, shape=(heads, self.max_relative_position, size), initializer=initializer)

    def rows(self, layer, table):
        """Returns the rows of a table for the requested heads, [heads or 1, k, size]."""
        return table if self.heads_share_relative_embedding else layer.of_heads(table)

    def products(self, table, query, offsets, run):
        """Returns the products of queries and distance vectors; arguments as in `RelativeScore.products`."""
        if not _is_plain(run):
            vectors = self._vectors(ops.cast(table, query.dtype), offsets, len(query.shape))
            return ops.matmul(query, ops.swapaxes(vectors, -1, -2))
        length, width = shape_of(query)[-2], shape_of(offsets)[0]
        near, keys = self._near(table, run, length, query), width - length
        x = ops.matmul(query, ops.swapaxes(near, -1, -2))  # […, T, k]; the last column is for distance 0
        # Pad and slice to T + S columns, of which column T - 1 - shift is for distance 0.
        *lead, _, size = shape_of(x)
        x = ops.pad(x, (*[(0, 0)] * len(lead), (0, 0), (length - run.shift, at_least(keys + run.shift, 0))))
        return ops.slice(x, (*[0] * len(lead), 0, size), (*lead, length, width))

    def sums(self, table, weights, dtype, run):
        """Returns the weighted sums of distance vectors; arguments as in `RelativeScore.sums`."""
        *lead, length, keys = shape_of(weights)
        if not _is_plain(run):
            vectors = self._vectors(ops.cast(table, dtype), run.offsets(length, keys), len(weights.shape))
            return ops.matmul(run.collect(weights), vectors)
        near = self._near(table, run, length, weights, dtype)
        size, zeros = near.shape[-2], [(0, 0)] * len(lead)
        x = ops.pad(shift_rows_back(weights), (*zeros, (0, 0), (size, at_least(-run.shift - keys, 0))))
        x = ops.slice(x, (*[0] * len(lead), 0, length - run.shift), (*lead, length, size))
        return ops.matmul(x, near)

    def _near(self, table, run, length, like, dtype=None):
        """Returns the vectors for all distances among `length` positions, [heads or 1, (1,) k or less, size]."""
        size, reach = self.max_relative_position, length - run.shift
        size = min(size, max(reach, 0)) if isinstance(reach, int) else size
        near = ops.cast(table[:, self.max_relative_position - size :], dtype or like.dtype)
        return ops.expand_dims(near, 1) if len(like.shape) == 5 else near

    def _vectors(self, table, offsets, rank):
        """Maps distances, int32 [D], [G, D] or [B, 1, D], to their vectors, [(B,) heads or 1, (G or 1,) D, size]."""
        count = self.max_relative_position
        rows = ops.where((offsets > -count) & (offsets <= 0), offsets + count, 0)
        vectors = ops.take(ops.pad(table, ((0, 0), (1, 0), (0, 0))), rows, axis=1)
        if len(offsets.shape) == 3:
            return ops.swapaxes(vectors[:, :, 0], 0, 1)
        return ops.expand_dims(vectors, 1) if rank == 5 and len(offsets.shape) == 1 else vectors


def _is_plain(run):
    """Returns whether distances grow by one from key to key and are the same in all groups of queries."""
    return isinstance(run, Strides) and run.stride == 1 and len(getattr(run.shift, "shape", ())) == 0
