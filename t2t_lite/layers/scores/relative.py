"""Relative positions (Shaw et al. 2018, "Self-Attention with Relative Position Representations")."""

from keras import ops

from t2t_lite.layers.checks import check_required_sizes
from t2t_lite.layers.distances import by_key, split_by_run
from t2t_lite.layers.scores.score import AttentionScore
from t2t_lite.layers.shapes import shape_of
from t2t_lite.registry import register_score


@register_score("relative")
class RelativeScore(AttentionScore):
    """score(i, j) = q_i · (k_j + a_clip(j - i)): see `RelativeAttention`, which is attention with this score."""

    other_name = "dot_product_relative"

    def __init__(self, max_relative_position: int, add_relative_to_values: bool = False):
        check_required_sizes(max_relative_position=max_relative_position)
        self.max_relative_position = max_relative_position
        self.add_relative_to_values = add_relative_to_values

    def build(self, layer, hidden_size):
        """Creates the tables, Glorot uniform as in tensor2tensor."""
        layer.key_table = self.table(layer, "key_table", layer.query_size)
        layer.value_table = None
        if self.add_relative_to_values:
            layer.value_table = self.table(layer, "value_table", layer.value_size)

    def table(self, layer, name, size):
        """Creates a table of vectors of `size`, [2k + 1, size]."""
        return layer.add_weight(name=name, shape=(2 * self.max_relative_position + 1, size))

    def scores(self, layer, query, key, distances, training):
        """Adds the products with the vectors of the distances; arguments as `AttentionScore.scores`."""

        def products(offsets, run):
            return self.products(self.rows(layer, layer.key_table), query, offsets, run)

        content = super().scores(layer, query, key, distances, training)
        return content + by_key(distances, shape_of(query)[-2], shape_of(key)[-2], products)

    def mix(self, layer, weights, value, distances):
        """Adds the values' vectors; arguments as `AttentionScore.mix`."""
        output = super().mix(layer, weights, value, distances)
        if layer.value_table is None:
            return output
        for run, own in zip(distances, split_by_run(weights, distances), strict=True):
            output = output + self.sums(self.rows(layer, layer.value_table), own, value.dtype, run)
        return output

    def rows(self, layer, table):
        """Returns what a table has for the heads that are asked: all of it."""
        return table

    def products(self, table, query, offsets, run):
        """Returns the products of queries and the vectors of distances int32 [… D]: […, T, D]."""
        relative = ops.matmul(query, ops.transpose(ops.cast(table, query.dtype)))  # […, T, 2k + 1]
        return ops.matmul(relative, ops.swapaxes(self._rows(offsets, query.dtype), -1, -2))

    def sums(self, table, weights, dtype, run):
        """Returns the sums of the distances' vectors by weights [… T, S] of a run's keys: […, T, size]."""
        rows = self._rows(run.offsets(*shape_of(weights)[-2:]), weights.dtype)
        return ops.matmul(ops.matmul(run.collect(weights), rows), ops.cast(table, dtype))

    def _rows(self, offsets, dtype):
        """Returns the table's row of each distance as zeros and a one, [… D, 2k + 1].

        Products with this matrix, not a gather: that one's gradient is a slow scatter.
        """
        limit = self.max_relative_position
        return ops.one_hot(ops.clip(offsets, -limit, limit) + limit, 2 * limit + 1, dtype=dtype)

    def extra_flops(self, layer, keys):
        """Counts the products with the vectors, not their spreading over positions."""
        channels = layer.query_size + layer.value_size * self.add_relative_to_values
        return 2 * layer.key_table.shape[-2] * layer.num_heads * channels

    def extra_memory(self, layer, keys, compute):
        """Counts the weights, ordered by distance."""
        return layer.num_heads * 2 * keys * compute * self.add_relative_to_values
