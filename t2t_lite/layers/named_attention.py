"""Kinds of self-attention that have a class of their own: a score or a pattern by its usual name."""

import keras

from t2t_lite.layers.attention import MultiHeadAttention
from t2t_lite.registry import register_self_attention


@register_self_attention("dot_product_relative")
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
        **kwargs: others of `MultiHeadAttention`.

    Raises:
        ValueError: as `MultiHeadAttention`, or `max_relative_position` is less than 1.
    """

    def __init__(self, num_heads: int, max_relative_position: int, add_relative_to_values: bool = False, **kwargs):
        options = {"max_relative_position": max_relative_position, "add_relative_to_values": add_relative_to_values}
        super().__init__(num_heads, **kwargs | {"score": {"type": "relative", **options}})


@register_self_attention("dot_product_relative_v2")
@keras.saving.register_keras_serializable("t2t_lite")
class LeftRelativeAttention(MultiHeadAttention):
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
        **kwargs: others of `MultiHeadAttention`.

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
        options = {
            "max_relative_position": max_relative_position,
            "add_relative_to_values": add_relative_to_values,
            "heads_share_relative_embedding": heads_share_relative_embedding,
        }
        super().__init__(num_heads, **kwargs | {"score": {"type": "relative_v2", **options}})


@register_self_attention("restricted")
@keras.saving.register_keras_serializable("t2t_lite")
class RestrictedAttention(MultiHeadAttention):
    """Self-attention in which every position sees a neighbourhood of r positions, centred on it.

    Time and memory grow as r · n, not n² (paper, section 4 and table 1): queries are taken in blocks, and each block
    attends to itself and its neighbours. At the ends of a sentence the neighbourhood is moved inwards, so that it
    always has r positions (as in Hassani et al. 2023, "Neighborhood Attention Transformer"); so from r = n on this is
    full attention. With a causal mask it is the r positions up to the output position. A sentence ends with its last
    position that a mask leaves visible.

    Sequences that are known to be short, and calls that ask for the weights or give a mask for each query, are computed
    in full; so is all of a subclass that overrides `attend`.

    Args:
        num_heads: int, h.
        neighborhood: int, r; with an even r one more position to the left than to the right.
        **kwargs: others of `MultiHeadAttention`.

    Raises:
        ValueError: as `MultiHeadAttention`, or `neighborhood` is less than 1, or a second sequence is given.
    """

    def __init__(self, num_heads: int, neighborhood: int, **kwargs):
        super().__init__(num_heads, **kwargs | {"pattern": {"type": "window", "neighborhood": neighborhood}})
