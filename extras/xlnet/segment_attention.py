"""XLNet's attention with distances, segments and two streams (Yang et al. 2019, arXiv 1906.08237)."""

import dataclasses
from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_lite.layers.attention import MultiHeadAttention
from t2t_lite.layers.checks import shape_of
from t2t_lite.layers.context import Context
from t2t_lite.layers.dropout import Dropout
from t2t_lite.layers.masks import check_masks, masked_softmax, merge_masks
from t2t_lite.layers.positions import Strides
from t2t_lite.registry import register_self_attention


class Places(NamedTuple):
    """The distances between queries, at any positions of a row, and S keys, at positions 0 to S - 1.

    Attributes:
        places: int32 [B, N], the positions of the queries.
        keys: S, or None, as in `Strides`.
    """

    places: Any
    keys: Any = None

    def offsets(self, queries, keys):
        """Returns all possible distances, int32 [2 S], like those of `Strides` with S queries and S keys."""
        return ops.arange(1 - keys, keys + 1, dtype="int32")

    def place(self, x):
        """Converts one number per distance, [B, heads, N, 2 S], to one number per key, [B, heads, N, S]."""
        keys = shape_of(x)[-1] // 2
        at = ops.arange(keys, dtype="int32") - ops.expand_dims(ops.cast(self.places, "int32"), -1) + (keys - 1)
        return ops.take_along_axis(x, ops.expand_dims(at, 1), axis=-1)


@dataclasses.dataclass(frozen=True)
class SegmentContext(Context):
    """A `Context` with the segments that `SegmentAttention` distinguishes.

    Attributes:
        segments: int [B, S], the segment of each position, or () if all positions are in one segment.
        places: int [B, N], the positions of the second stream's queries among the S positions, or () if there is one
            stream.
    """

    segments: Any = ()
    places: Any = ()

    lack = (
        "distinguishes segments, but this model has no segments. Expected the model xlnet, or a type such as "
        "dot_product_relative_memory, which depends only on distances."
    )


@register_self_attention("relative_segments")
@keras.saving.register_keras_serializable("t2t_lite")
class SegmentAttention(MultiHeadAttention):
    """Self-attention that depends on content, on signed distances, and on whether two positions share a segment.

    score(i, j) = ((q_i + u) · k_j + (q_i + v) · W_r R_(i - j) + (q_i + b) · s_ij) / √d_k: the first two terms are
    Transformer-XL's, see `MemoryScore`. s_ij is one of two learned vectors, for positions in the same segment or in
    different segments (section 2.5). The segments and the places of the second stream (section 2.3) come from the
    `SegmentContext` of the call. Without a context, all positions are in one segment, whose vector then does not change
    the weights.

    With two streams, the first S states are the content stream (the paper's h), in which each position sees itself; the
    other states are the query stream (the paper's g). Both streams attend to the keys and values of the content stream.

    Args:
        num_heads: int, h.
        clamp_length: int, to which larger distances are clamped; 0 means no limit.
        position_dropout: float in [0, 1), dropout rate for the sinusoids of distances.
        **kwargs: other arguments of `MultiHeadAttention`.

    Raises:
        ValueError: as for `MultiHeadAttention`, or the pattern is not "full".
    """

    context_class = SegmentContext

    def __init__(self, num_heads: int, clamp_length: int = 0, position_dropout: float = 0.0, **kwargs):
        options = {"clamp_length": clamp_length, "position_dropout": position_dropout}
        super().__init__(num_heads, **kwargs | {"score": {"type": "memory", **options}})
        if not self.pattern.is_full:
            raise ValueError(f"`pattern` must be 'full': received pattern={kwargs['pattern']!r}.")

    def build(self, query_shape, value_shape=None, key_shape=None):
        """Creates the weights; b and the segment vectors are initialized from N(0, 0.02), as in the authors' code."""
        super().build(query_shape, value_shape, key_shape)

        def weight(name, *shape):
            initializer = keras.initializers.RandomNormal(stddev=0.02)
            return self.add_weight(name=name, shape=(*shape, self.query_size), initializer=initializer)

        self.segment_bias = weight("segment_bias", self.num_heads)
        self.segment_table = weight("segment_table", 2, self.num_heads)
        # The second stream needs a separate dropout layer; a shared one would drop the same weights in both streams.
        self.query_dropout = Dropout(self.dropout_rate, dtype=self.dtype_policy, name="query_dropout")

    def call(
        self,
        query,
        value=None,
        key=None,
        attention_mask=None,
        use_causal_mask=False,
        context=None,
        return_attention_scores=False,
        training=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        mask=None,
    ):
        """Attends from one or two streams of states.

        Args:
            query: [B, T, hidden]; with two streams, [B, S + N, hidden]: the S states followed by the N queries.
            context: None, or `SegmentContext`.
            attention_mask: bool, [B, T, S] or [B, 1, S], or with two streams [B, S + N, S]; True where visible.
            value, key, use_causal_mask, return_attention_scores, training, query_mask, value_mask, key_mask, mask: as
                for `MultiHeadAttention.call`. With a context, only self-attention is possible.

        Returns:
            As for `MultiHeadAttention.call`; the weights are [B, heads, T, S].
        """
        if isinstance(getattr(context, "segments", ()), tuple):
            return super().call(
                query, value, key, attention_mask, use_causal_mask, context, return_attention_scores, training,
                query_mask, value_mask, key_mask, mask,
            )  # fmt: skip
        if value is not None or key is not None or use_causal_mask:
            raise ValueError(f"{type(self).__name__}: with segments, only bidirectional self-attention is supported.")
        mask = next((m for m in (value_mask, query_mask, mask) if m is not None), None)
        check_masks(attention_mask=attention_mask, mask=mask)
        segments, places = context.segments, context.places
        length = shape_of(segments)[1]
        if isinstance(places, tuple):
            heads, keys, values = self.project_alike(query)
        else:
            heads, (keys, values) = self.project(query, "query"), self.memory(query[:, :length])
        keys_mask = None if mask is None else mask[:, :length]
        merged = merge_masks((*shape_of(heads)[:3], length), attention_mask, keys_mask)
        streams = [(heads[:, :, :length], Strides(0), segments, self.dropout, _rows(merged, None, length))]
        if not isinstance(places, tuple):
            query_segments = ops.take_along_axis(segments, ops.cast(places, "int32"), axis=1)
            mask = _rows(merged, length, None)
            streams.append((heads[:, :, length:], Places(places), query_segments, self.query_dropout, mask))
        outputs, weights = [], []
        for heads, run, query_segments, dropout, mask in streams:
            scaled = heads * ops.cast(self.query_size**-0.5, heads.dtype)
            scores = self.score.scores(self, scaled, keys, [run], training)
            weights.append(masked_softmax(scores + self._by_segment(scaled, query_segments, segments), mask))
            outputs.append(ops.matmul(dropout(weights[-1], training=training), values))
        output = self.project(_joined(outputs), "output")
        return (output, _joined(weights)) if return_attention_scores else output

    def _by_segment(self, query, query_segments, segments):
        """Returns the scores [B, heads, T, S] of scaled queries in the segments `query_segments`, int [B, T]."""
        bias = ops.cast(self.segment_bias, query.dtype) * ops.cast(self.query_size**-0.5, query.dtype)
        table = ops.transpose(ops.cast(self.segment_table, query.dtype), (1, 2, 0))  # [heads, size, 2]
        products = ops.matmul(query + ops.expand_dims(bias, 1), table)
        same = ops.expand_dims(query_segments, 2) == ops.expand_dims(segments, 1)
        return ops.where(ops.expand_dims(same, 1), products[..., :1], products[..., 1:])

    def flops(self, keys):
        """Adds the products with the two segment vectors: see `MultiHeadAttention`."""
        return super().flops(keys) + 2 * 2 * self.num_heads * self.query_size

    def activations(self, keys, compute):
        """Adds the queries plus b, their two products, and the segment comparison: see `MultiHeadAttention`."""
        return super().activations(keys, compute) + self.num_heads * (self.query_size + 2) * compute + keys


def _rows(mask, begin, end):
    """Returns a mask's rows for some queries; None, or a mask with one row for all queries, is returned unchanged."""
    return mask if mask is None or mask.shape[2] == 1 else mask[:, :, begin:end]


def _joined(streams):
    return streams[0] if len(streams) == 1 else ops.concatenate(streams, axis=2)
