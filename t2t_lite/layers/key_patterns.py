"""Attention patterns, which determine the keys that a query sees, such as all keys or only its neighbours."""

import math

from keras import ops

from t2t_lite.layers.checks import at_most, check_required_sizes, shape_of
from t2t_lite.layers.dropout import Dropout
from t2t_lite.layers.key_parts import attend_in_parts, block_part, blocks_of, whole_part
from t2t_lite.layers.layer_kinds import Kind, make_kind
from t2t_lite.layers.positions import Strides
from t2t_lite.registry import Registries, register_pattern

_SMALLEST_BLOCK = 32  # smaller blocks would cause many small matrix products
_FEW_BLOCKS = 4  # up to this number of blocks, computing all scores costs no more than computing three blocks per query


@register_pattern("full")
class Pattern(Kind):
    """The full attention pattern, in which each query sees all unmasked keys.

    To define a pattern, subclass this class and override `visible`; to save time, also override `parts` and
    `positions`. `register_pattern` gives the subclass a name.

    Attributes:
        needs_order: bool, whether queries never see later keys. An encoder cannot use such a pattern.
        period: int. The visible keys stay the same if all positions are shifted by a multiple of this number; 1 if they
            depend only on distances.
    """

    needs_order = False
    period = 1

    @property
    def is_full(self):
        """Whether the pattern lets queries see all keys, so that the keys may belong to another sequence."""
        return type(self) is Pattern

    def build(self, layer):
        """Creates the weights or sublayers of the pattern, as attributes of the attention layer."""

    def visible(self, i, j, end, causal):
        """Returns whether the query at position i sees the key at position j, bool, or None if all keys are visible.

        Args:
            i, j: int32, which broadcast together. j may be negative or beyond the end; the caller masks such keys.
            end: int, or int32 [B, 1, 1, 1], one more than the last position of each row.
            causal: bool, whether later keys are hidden, as they are in a decoder.
        """
        return None

    def parts(self, length, causal):
        """Returns a list of `Part` that covers each visible key exactly once, or None to compute all scores.

        Args:
            length: int or int scalar, T.
            causal: bool.
        """
        return None

    def positions(self, at, count):
        """Returns the positions that a decoding step may see, without duplicates, or None for all positions.

        Args:
            at: int32 [B or 1, 1], the position of the step.
            count: int or int scalar, an upper bound on the number of positions in a row.

        Returns:
            int32 [B or 1, W]. The caller masks positions that are negative, later than `at` or not `visible`.
        """
        return None

    def attend(self, layer, query, key, value, visible, training):
        """Computes attention in the `parts` of the pattern; returns None if there are no parts for this length.

        Args:
            layer: MultiHeadAttention.
            query, key, value: [B, heads, T, size].
            visible: Visible, with `dense` None and `first` 0.
            training: bool.

        Returns:
            [B, heads, T, value_dim].
        """
        length = shape_of(query)[2]
        parts = self.parts(length, visible.causal)
        if not parts:
            return None
        end = end_of(visible.keys, length)
        return attend_in_parts(layer, parts, query, key, value, visible.keys, end, training)

    def seen(self, keys):
        """Returns the number of scores that are computed per query if there are `keys` keys."""
        return keys

    def mask(self, visible, queries, keys):
        """Returns the mask for T queries and S keys, broadcastable to [B, heads, T, S], or None: see `Visible`."""
        merged = visible.merged(queries, keys)
        if type(self).visible is Pattern.visible:
            return merged
        i, j = ops.arange(queries, dtype="int32") + visible.first, ops.arange(keys, dtype="int32")
        allowed = self.visible(ops.expand_dims(i, 1), j, end_of(visible.keys, keys), visible.causal)
        return merged if allowed is None else allowed if merged is None else ops.logical_and(allowed, merged)

    def read(self, past, beams, step, mask):
        """Returns (parts, mask) for one decoding step: see `Past.parts` and `MultiHeadAttention.attend_cached`."""
        if self.is_full:
            return past.parts(beams, step), mask
        at = ops.reshape(ops.cast(past.position(step), "int32"), (-1, 1))
        positions, seen = self.positions_seen(at, past.count(beams))
        return past.near(positions, ops.expand_dims(seen, 1), at, beams, mask)

    def positions_seen(self, at, count):
        """Returns the `positions` (or all positions), and whether each position is visible, bool [B or 1, W]."""
        positions = self.positions(at, count)
        if positions is None:
            positions = ops.expand_dims(ops.arange(count, dtype="int32"), 0)
        seen, visible = (positions >= 0) & (positions <= at), self.visible(at, positions, at + 1, True)
        return positions, seen if visible is None else ops.logical_and(seen, visible)


def end_of(seen, length):
    """Returns the end of each row (its last unmasked position + 1), int32 [B, 1, 1, 1], or `length` if `seen` is None.

    Args:
        seen: bool [B, S], or None.
        length: int or int scalar, S.
    """
    if seen is None:
        return length
    positions = ops.arange(1, length + 1, dtype="int32")
    ends = ops.max(ops.where(seen, positions, 0), axis=1, initial=0)  # `initial` is the result if S is 0
    return ops.reshape(ends, (-1, 1, 1, 1))


@register_pattern("window")
class WindowPattern(Pattern):
    """The attention pattern in which each position sees the r nearest positions: see `RestrictedAttention`."""

    other_name = "restricted"

    def __init__(self, neighborhood: int):
        check_required_sizes(neighborhood=neighborhood)
        self.neighborhood = neighborhood

    def visible(self, i, j, end, causal):
        """Returns whether position i sees position j; arguments as in `Pattern.visible`."""
        if causal:
            return (j <= i) & (j > i - self.neighborhood) & (j >= 0)
        first = ops.minimum(i - self.neighborhood // 2, end - self.neighborhood)
        first = ops.maximum(first, 0)
        return (j >= first) & (j < first + self.neighborhood)

    def parts(self, length, causal):
        """Returns a part in which blocks see their neighbours, or None if computing all scores costs no more.

        A neighbourhood reaches at most r - 1 positions back (or ahead, at the beginning), so never beyond the next
        block.
        """
        # A length that is unknown until the graph runs counts as long, because TensorFlow 2.21 would build a wrong
        # graph for a condition on it.
        if is_short(self.neighborhood, length):
            return None
        size, _ = blocks_of(smallest_block(self.neighborhood), length)
        return [
            block_part(
                size, length, [1, 0] if causal else [1, 0, -1], lambda i, j, end: self.visible(i, j, end, causal),
                [Strides(-size)],
            )
        ]  # fmt: skip

    def positions(self, at, count):
        """Returns the last r positions up to the position `at`."""
        return last_positions(self.neighborhood, at, count)

    def seen(self, keys):
        """Returns min(r, n), as in the paper (table 1), although blocks compute up to three times as many scores."""
        return min(self.neighborhood, keys)


def smallest_block(size):
    """Returns the block size for neighbourhoods of `size` positions."""
    return max(size, _SMALLEST_BLOCK)


def is_short(size, length):
    """Returns whether a sequence is known to be so short that blocks for this `size` would save no work."""
    return isinstance(length, int) and length <= _FEW_BLOCKS * blocks_of(smallest_block(size), length)[0]


def last_positions(size, at, count):
    """Returns the `size` positions that end at `at`, [B or 1, 1], but at most `count`: int32 [B or 1, size]."""
    size = at_most(size, count)
    return at - size + 1 + ops.arange(size, dtype="int32")


def make_pattern(value, num_heads):
    """Creates a pattern from a kind, or from a list of kinds among which the heads are divided.

    Raises:
        ValueError: see `make_kind`; also if the heads cannot be divided evenly.
    """
    if not isinstance(value, list | tuple):
        return make_kind("pattern", value, Registries.patterns)
    if not value or num_heads % len(value):
        raise ValueError(
            f"The heads cannot be divided evenly among the {len(value)} kinds in `pattern`: received "
            f"num_heads={num_heads}."
        )
    patterns = [make_kind("pattern", kind, Registries.patterns) for kind in value]
    return HeadPatterns(patterns, num_heads) if len(patterns) > 1 else patterns[0]


class HeadPatterns(Pattern):
    """A pattern that divides the heads into equal groups with different patterns (Child et al. 2019, section 4.1).

    Args:
        patterns: list of Pattern, in the order of the heads.
        num_heads: int, a multiple of the number of patterns.
    """

    def __init__(self, patterns: list, num_heads: int):
        self.patterns, self.heads_each = patterns, num_heads // len(patterns)
        self.period = math.lcm(*(pattern.period for pattern in patterns))

    def build(self, layer):
        """Creates a dropout layer for each pattern, because a single layer would use one mask for all patterns."""
        layer.head_dropouts = [
            Dropout(layer.dropout_rate, dtype=layer.dtype_policy, name=f"dropout_{n}")
            for n in range(len(self.patterns))
        ]

    def visible(self, i, j, end, causal):
        """Returns a mask of the keys that each head sees, bool [B or 1, heads, T, S]; see `Pattern.visible`."""
        everything, seen = (i >= i) & (j >= j) & (end >= end), []
        for pattern in self.patterns:
            mask = pattern.visible(i, j, end, causal)
            mask = everything if mask is None else ops.logical_and(everything, mask)
            for _ in range(4 - len(mask.shape)):
                mask = ops.expand_dims(mask, 0)
            seen += [mask] * self.heads_each
        return ops.concatenate(seen, axis=1)

    def attend(self, layer, query, key, value, visible, training):
        """Computes attention for each group of heads if any pattern has parts; arguments as in `Pattern.attend`."""
        length = shape_of(query)[2]
        parts = [pattern.parts(length, visible.causal) for pattern in self.patterns]
        if not any(parts):
            return None
        end, outputs = end_of(visible.keys, length), []
        for n, (pattern, group_parts) in enumerate(zip(self.patterns, parts, strict=True)):
            group = _HeadGroup(layer, slice(n * self.heads_each, (n + 1) * self.heads_each), layer.head_dropouts[n])
            group_parts = group_parts or [whole_part(pattern.mask(visible, length, length))]
            heads = (x[:, group.heads] for x in (query, key, value))
            outputs.append(attend_in_parts(group, group_parts, *heads, visible.keys, end, training))
        return ops.concatenate(outputs, axis=1)

    def read(self, past, beams, step, mask):
        """Returns (parts, mask) for one decoding step, with all positions that any head sees: see `Pattern.read`."""
        at = ops.reshape(ops.cast(past.position(step), "int32"), (-1, 1))
        read = [pattern.positions_seen(at, past.count(beams)) for pattern in self.patterns]
        rows = shape_of(at)[0]
        columns = [ops.broadcast_to(positions, (rows, shape_of(positions)[1])) for positions, _ in read]
        seen = []
        for n, (_, own) in enumerate(read):
            masks = [own if other == n else ops.zeros_like(own) for other in range(len(read))]
            seen.append(ops.stack([x for x in masks for _ in range(self.heads_each)], axis=1))
        seen = [ops.broadcast_to(x, (rows, *shape_of(x)[1:])) for x in seen]
        return past.near(ops.concatenate(columns, axis=1), ops.concatenate(seen, axis=2), at, beams, mask)

    def seen(self, keys):
        """Returns the number of scores per query, averaged over the heads."""
        return sum(pattern.seen(keys) for pattern in self.patterns) / len(self.patterns)


class _HeadGroup:
    """A view of an attention layer that is limited to some of its heads."""

    def __init__(self, layer, heads, dropout):
        self.layer, self.heads, self.dropout = layer, heads, dropout

    def __getattr__(self, name):
        return getattr(self.layer, name)

    def of_heads(self, x):
        return x[self.heads]
