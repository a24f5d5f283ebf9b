"""The dot product of queries and keys (paper, section 3.2.1), and the base of all scores."""

from keras import ops

from t2t_lite.layers.layer_kinds import Kind
from t2t_lite.registry import register_score


@register_score("dot_product")
class AttentionScore(Kind):
    """score(i, j) = q_i · k_j, and value j counts as it is.

    A kind of your own overrides `scores`, and `build` if it has weights: `register_score` gives it a name.
    """

    def build(self, layer, hidden_size):
        """Creates the weights, as attributes of the attention layer: `layer.my_table = layer.add_weight(…)`."""

    def scores(self, layer, query, key, distances, training):
        """Returns the scores of keys before the softmax, […, T, S].

        Args:
            layer: MultiHeadAttention, with the weights; those of each head, [heads, …], by `layer.of_heads`.
            query: [B, heads, T, key_dim], or [B, heads, G, T, key_dim] of G groups; scaled by key_dim^-0.5.
            key: [B, heads, S, key_dim], or [B, heads, G or 1, S, key_dim].
            distances: list of `Strides` and `Steps`: where keys are, seen from the queries.
            training: bool.
        """
        return ops.matmul(query, ops.swapaxes(key, -1, -2))

    def mix(self, layer, weights, value, distances):
        """Returns the sums of values by weights […, T, S]: […, T, value_dim]; the rest as in `scores`."""
        return ops.matmul(weights, value)

    def extra_flops(self, layer, keys):
        """Returns the operations of a query beyond its products with so many keys and values."""
        return 0

    def extra_memory(self, layer, keys, compute):
        """Returns the bytes that a query leaves for the backward pass beyond those of a dot product."""
        return 0
