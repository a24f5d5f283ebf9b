"""Block-sparse attention: groups queries and keys, and only computes the products that a pattern needs."""

import functools
from collections.abc import Callable
from typing import NamedTuple

from keras import ops

from t2t_lite.layers.checks import at_least, at_most, shape_of
from t2t_lite.layers.dropout import numbered_part
from t2t_lite.layers.masks import MASKED, masked_softmax, with_hidden
from t2t_lite.layers.positions import Strides


class Part(NamedTuple):
    """Some of the keys that queries see, arranged so that each group of queries needs only one dense product.

    Attributes:
        queries: function of [B, heads, T, size] that returns the queries in groups, [B, heads, G, t, size].
        keys: function of ([B, heads, T, size], training) that returns the keys of each group, [B, heads, G or 1, s,
            size].
        back: function of [B, heads, G, t, size] that restores the order of the queries, [B, heads, T, size], the
            inverse of `queries`.
        mask: function of `end` (see `Pattern.visible`) that returns bool [B or 1, G or 1, t, s].
        distances: list of `Strides`.
    """

    queries: Callable
    keys: Callable
    back: Callable
    mask: Callable
    distances: list


def attend_in_parts(layer, parts, query, key, value, seen, end, training):
    """Computes attention to each part of the keys, and combines the results as if by one softmax over all keys.

    Args:
        layer: MultiHeadAttention.
        parts: list of Part.
        query, key, value: [B, heads, T, size].
        seen: bool [B, T], which keys exist; None if all keys exist.
        end: see `Pattern.visible`.
        training: bool.

    Returns:
        [B, heads, T, value_dim].
    """
    results = []
    for number, part in enumerate(parts):
        with numbered_part(number):
            results.append(_attend(layer, part, query, key, value, seen, end, training, len(parts) == 1))
    if len(results) == 1:
        return results[0][0]
    highest = functools.reduce(ops.maximum, (top for *_, top in results))
    total = output = 0
    for sums, count, top in results:
        share = ops.exp(ops.subtract(top, highest))
        total = total + share * count
        output = output + ops.cast(share, sums.dtype) * sums
    return output / ops.cast(total, output.dtype)


def whole_part(mask):
    """Returns a `Part` in which all queries form one group that sees all keys; for `mask` see `Pattern.mask`."""
    mask = ops.ones((1, 1, 1, 1), "bool") if mask is None else mask
    for _ in range(4 - len(mask.shape)):
        mask = ops.expand_dims(mask, 0)
    return Part(
        lambda x: ops.expand_dims(x, 2), lambda x, training: ops.expand_dims(x, 2), lambda x: x[:, :, 0],
        lambda end: mask, [Strides(0)],
    )  # fmt: skip


def _attend(layer, part, query, key, value, seen, end, training, is_all):
    """Returns a part's output; with several parts, also each query's sum of exp(score - maximum) and this maximum."""
    k, v = part.keys(key, training), part.keys(value, training)
    q = part.queries(query) * ops.cast(layer.query_size**-0.5, query.dtype)
    batch, heads, groups, length, _ = shape_of(q)
    width = shape_of(k)[3]
    scores = layer.score.scores(layer, q, k, part.distances, training)
    # Masks must have four axes, because LiteRT cannot compare or select tensors with more axes.
    scores = ops.reshape(scores, (batch, heads, groups * length, width))
    mask = _mask(part, seen, end, training, (batch, groups, length, width))
    if is_all:
        weights, total, top = masked_softmax(scores, mask), None, None
    else:
        logits = with_hidden(ops.cast(scores, "float32"), mask)
        top = ops.stop_gradient(ops.max(logits, axis=-1, keepdims=True, initial=-2 * MASKED))
        weights = ops.exp(ops.subtract(logits, top))
        total = ops.sum(weights, axis=-1, keepdims=True)
        weights = ops.cast(weights, scores.dtype)
    weights = ops.reshape(layer.dropout(weights, training=training), (batch, heads, groups, length, width))
    output = part.back(layer.score.mix(layer, weights, v, part.distances))
    if is_all:
        return output, None, None
    return (output, *(part.back(ops.reshape(x, (batch, heads, groups, length, 1))) for x in (total, top)))


def _mask(part, seen, end, training, shape):
    """Returns the mask of a part's scores, bool [B or 1, 1, G * t, s]; `shape` is (B, G, t, s)."""
    batch, groups, length, width = shape
    mask = part.mask(end)
    if seen is not None:
        seen = part.keys(ops.cast(ops.expand_dims(seen, (1, 3)), "int32"), training)  # [B, 1, G or 1, s, 1]
        mask = ops.logical_and(mask, ops.swapaxes(seen[:, 0], 2, 3) > 0)
    rows = batch if seen is not None or (not isinstance(end, int) and len(end.shape)) else 1
    return ops.reshape(ops.broadcast_to(mask, (rows, groups, length, width)), (rows, 1, groups * length, width))


def cut(x, size, count):
    """Splits a sequence into blocks and pads the last block: [B, heads, T, d] -> [B, heads, count, size, d]."""
    batch, heads, length, width = shape_of(x)
    x = ops.pad(x, ((0, 0), (0, 0), (0, count * size - length), (0, 0)))
    return ops.reshape(x, (batch, heads, count, size, width))


def joined(x, length):
    """Joins blocks, the inverse of `cut`: [B, heads, count, size, d] -> [B, heads, T, d]."""
    batch, heads, count, size, width = shape_of(x)
    return ops.reshape(x, (batch, heads, count * size, width))[:, :, :length]


def blocks_of(size, length):
    """Returns the block size, which is at most the length, and the number of blocks."""
    size = at_least(at_most(size, length), 1)
    return size, (length + size - 1) // size


def block_part(size, length, shifts, mask, distances):
    """Returns a `Part` in which each block sees itself and some of its neighbours.

    Args:
        size, length: int, the block size, and the length of the sequence.
        shifts: list of int, one per block of keys, in order: the number of blocks by which the keys precede the
            queries. The number is negative if the keys follow the queries.
        mask: function(i [count, size, 1], j [count, 1, width], end) that returns bool, broadcastable to [B, count,
            size, width]. i and j are positions; j may lie outside the sequence, where keys are never visible.
        distances: list of `Strides`.
    """
    count = (length + size - 1) // size
    first = ops.expand_dims(ops.arange(count, dtype="int32"), (1, 2)) * size
    within = ops.arange(size, dtype="int32")
    i = first + ops.expand_dims(within, 1)
    j = first + ops.concatenate([within - shift * size for shift in shifts])

    def keys(x, training):
        x = cut(x, size, count)
        return ops.concatenate([_shifted(x, shift, training) for shift in shifts], axis=3)

    def visible(end):
        seen = mask(i, j, end) & (j >= 0) & (j < length)
        return seen if len(seen.shape) == 4 else ops.expand_dims(seen, 0)

    return Part(lambda x: cut(x, size, count), keys, lambda x: joined(x, length), visible, distances)


def _shifted(x, shift, training):
    """Shifts the blocks of [B, heads, count, size, d] by `shift`; the caller must mask blocks that wrap around."""
    if isinstance(shift, int) and shift == 0:
        return x
    if training:  # not sliced, because the gradient of a slice fills a whole tensor with zeros first
        return ops.roll(x, shift, axis=2)
    return ops.concatenate([x[:, :, -shift:], x[:, :, :-shift]], axis=2)  # because LiteRT does not support `roll`
