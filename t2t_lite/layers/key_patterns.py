"""Patterns: which keys a query sees. All, a neighbourhood (paper, section 4), or others for some of the heads."""

from keras import ops

from t2t_lite.layers.checks import check_required_sizes, shape_of
from t2t_lite.layers.dropout import Dropout
from t2t_lite.layers.key_parts import attend_in_parts, block_part, blocks_of, whole_part
from t2t_lite.layers.layer_kinds import Kind, make_kind
from t2t_lite.layers.positions import Strides
from t2t_lite.registry import Registries, register_pattern

_SMALLEST_BLOCK = 32  # shorter ones make many small matrix products
_FEW_BLOCKS = 4  # up to here all scores cost no more than those of three blocks for each


@register_pattern("full")
class Pattern(Kind):
    """Each query sees all keys that the masks leave it.

    A kind of your own overrides `visible`; `parts` and `positions` too if it is to save time. `register_pattern` gives
    it a name.

    Attributes:
        needs_order: bool, whether queries see only what comes before them: an encoder's layers can't have it.
    """

    needs_order = False

    @property
    def is_full(self):
        """Whether all keys are seen, those of another sequence as well."""
        return type(self) is Pattern

    def build(self, layer):
        """Makes what the pattern needs, as attributes of the attention layer."""

    def visible(self, i, j, end, causal):
        """Returns whether the query at position i sees the key at position j, bool; None: always.

        Args:
            i, j: int32, broadcast together; j may be negative or beyond the end, and is then masked elsewhere.
            end: int, or int32 [B, 1, 1, 1], one past each row's last position.
            causal: bool, whether later keys are hidden, as they are in a decoder.
        """

    def parts(self, length, causal):
        """Returns a list of `Part`, which together hold all that is visible and each key once; None: make all scores.

        Args:
            length: int or int scalar, T.
            causal: bool.
        """

    def positions(self, at, count):
        """Returns the positions that a step of decoding may see, each once; None: all.

        Args:
            at: int32 [B or 1, 1], the step's own position.
            count: int or int scalar, a number of positions that is no less than that of any row.

        Returns:
            int32 [B or 1, W]. Those that are negative, later than `at` or not `visible` are masked.
        """

    def attend(self, layer, query, key, value, visible, training):
        """Attends in parts; returns None where there are none.

        Args:
            layer: MultiHeadAttention.
            query, key, value: [B, heads, T, size].
            visible: Visible, without `dense` and from the `first` position on.
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
        """Returns how many scores of a query are made, of so many keys."""
        return keys

    def mask(self, visible, queries, keys):
        """Returns one mask of so many queries and keys, broadcastable to [B, heads, T, S], or None; see `Visible`."""
        merged = visible.merged(queries, keys)
        if type(self).visible is Pattern.visible:
            return merged
        i, j = ops.arange(queries, dtype="int32") + visible.first, ops.arange(keys, dtype="int32")
        own = self.visible(ops.expand_dims(i, 1), j, end_of(visible.keys, keys), visible.causal)
        return merged if own is None else own if merged is None else ops.logical_and(own, merged)

    def read(self, past, beams, step, mask):
        """Returns what a step reads of the past: (parts as of `Past.parts`, their mask as of `attend_cached`)."""
        if self.is_full:
            return past.parts(beams, step), mask
        at = ops.reshape(ops.cast(past.position(step), "int32"), (-1, 1))
        positions, seen = self.positions_seen(at, past.count(beams))
        return past.near(positions, ops.expand_dims(seen, 1), at, beams, mask)

    def positions_seen(self, at, count):
        """Returns `positions`, all where these are None, and which of them are seen, bool [B or 1, W]."""
        positions = self.positions(at, count)
        if positions is None:
            positions = ops.expand_dims(ops.arange(count, dtype="int32"), 0)
        seen, visible = (positions >= 0) & (positions <= at), self.visible(at, positions, at + 1, True)
        return positions, seen if visible is None else ops.logical_and(seen, visible)


def end_of(seen, length):
    """Returns one past each row's last visible position, int32 [B, 1, 1, 1]; `length` where there is no mask.

    Args:
        seen: bool [B, S], or None.
        length: int or int scalar, S.
    """
    if seen is None:
        return length
    positions = ops.arange(1, length + 1, dtype="int32")
    ends = ops.max(ops.where(seen, positions, 0), axis=1, initial=0)  # also of nothing
    return ops.reshape(ends, (-1, 1, 1, 1))


@register_pattern("window")
class WindowPattern(Pattern):
    """Each position sees the r nearest ones: see `RestrictedAttention`, which is attention with this pattern."""

    other_name = "restricted"

    def __init__(self, neighborhood: int):
        check_required_sizes(neighborhood=neighborhood)
        self.neighborhood = neighborhood

    def visible(self, i, j, end, causal):
        """Returns whether position i sees position j; arguments as `Pattern.visible`."""
        if causal:
            return (j <= i) & (j > i - self.neighborhood) & (j >= 0)
        first = ops.minimum(i - self.neighborhood // 2, end - self.neighborhood)
        first = ops.maximum(first, 0)
        return (j >= first) & (j < first + self.neighborhood)

    def parts(self, length, causal):
        """Returns blocks with their neighbours, where that saves scores.

        A neighbourhood reaches r - 1 positions back, and at a beginning as many ahead: never past the next block.
        """
        # (Not a condition in the graph where the length is only known there: TensorFlow 2.21's optimizer makes
        # wrong graphs of this one.)
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
        """Returns the last r positions."""
        return last_positions(self.neighborhood, at, count)

    def seen(self, keys):
        """Returns min(r, n) (paper, table 1); the blocks make up to three times as many."""
        return min(self.neighborhood, keys)


def smallest_block(size):
    """Returns the size of blocks for neighbourhoods of a size."""
    return max(size, _SMALLEST_BLOCK)


def is_short(size, length):
    """Returns whether a length is known to be too short for blocks of a size to save scores."""
    return isinstance(length, int) and length <= _FEW_BLOCKS * blocks_of(smallest_block(size), length)[0]


def last_positions(size, at, count):
    """Returns the last positions up to `at` [B or 1, 1], of which there are `count` at most: int32 [B or 1, size]."""
    size = min(size, count) if isinstance(count, int) else ops.minimum(size, count)
    return at - size + 1 + ops.arange(size, dtype="int32")


def make_pattern(value, num_heads):
    """Makes a pattern from an argument: a kind, or a list of them, among which the heads are divided.

    Raises:
        ValueError: as `make_kind`, or the heads can't be divided evenly.
    """
    if not isinstance(value, list | tuple):
        return make_kind("pattern", value, Registries.patterns)
    if not value or num_heads % len(value):
        raise ValueError(
            f"`pattern` has {len(value)} kinds, among which the heads cannot be divided evenly: received "
            f"num_heads={num_heads}."
        )
    patterns = [make_kind("pattern", kind, Registries.patterns) for kind in value]
    return HeadPatterns(patterns, num_heads) if len(patterns) > 1 else patterns[0]


class HeadPatterns(Pattern):
    """Several patterns: the first heads have the first one, as many the second, and so on (Child et al. 2019, 4.1).

    Args:
        patterns: list of Pattern.
        num_heads: int, a multiple of their number.
    """

    def __init__(self, patterns: list, num_heads: int):
        self.patterns, self.heads_each = patterns, num_heads // len(patterns)

    def build(self, layer):
        """Makes a dropout for each of the patterns: one alone would draw the same masks for all."""
        layer.head_dropouts = [
            Dropout(layer.dropout_rate, dtype=layer.dtype_policy, name=f"dropout_{n}")
            for n in range(len(self.patterns))
        ]

    def visible(self, i, j, end, causal):
        """Returns which of its keys each head sees, bool [B or 1, heads, T, S]; arguments as `Pattern.visible`."""
        everything, seen = (i >= i) & (j >= j) & (end >= end), []
        for pattern in self.patterns:
            own = pattern.visible(i, j, end, causal)
            own = everything if own is None else ops.logical_and(everything, own)
            for _ in range(4 - len(own.shape)):
                own = ops.expand_dims(own, 0)
            seen += [own] * self.heads_each
        return ops.concatenate(seen, axis=1)

    def attend(self, layer, query, key, value, visible, training):
        """Attends in parts where one of the patterns has some; arguments as `Pattern.attend`."""
        length = shape_of(query)[2]
        parts = [pattern.parts(length, visible.causal) for pattern in self.patterns]
        if not any(parts):
            return None
        end, outputs = end_of(visible.keys, length), []
        for n, (pattern, own) in enumerate(zip(self.patterns, parts, strict=True)):
            group = _HeadGroup(layer, slice(n * self.heads_each, (n + 1) * self.heads_each), layer.head_dropouts[n])
            own = own or [whole_part(pattern.mask(visible, length, length))]
            heads = (x[:, group.heads] for x in (query, key, value))
            outputs.append(attend_in_parts(group, own, *heads, visible.keys, end, training))
        return ops.concatenate(outputs, axis=1)

    def read(self, past, beams, step, mask):
        """Returns what a step reads: for all heads what one of them sees; see `Pattern.read`."""
        at = ops.reshape(ops.cast(past.position(step), "int32"), (-1, 1))
        read = [pattern.positions_seen(at, past.count(beams)) for pattern in self.patterns]
        rows = shape_of(at)[0]
        columns = [ops.broadcast_to(positions, (rows, shape_of(positions)[1])) for positions, _ in read]
        seen = []
        for n, (_, own) in enumerate(read):
            of_all = [own if other == n else ops.zeros_like(own) for other in range(len(read))]
            seen.append(ops.stack([x for x in of_all for _ in range(self.heads_each)], axis=1))
        seen = [ops.broadcast_to(x, (rows, *shape_of(x)[1:])) for x in seen]
        return past.near(ops.concatenate(columns, axis=1), ops.concatenate(seen, axis=2), at, beams, mask)

    def seen(self, keys):
        """Returns how many scores of a query are made, the mean over the heads."""
        return sum(pattern.seen(keys) for pattern in self.patterns) / len(self.patterns)


class _HeadGroup:
    """An attention layer of which some heads alone are asked."""

    def __init__(self, layer, heads, dropout):
        self.layer, self.heads, self.dropout = layer, heads, dropout

    def __getattr__(self, name):
        return getattr(self.layer, name)

    def of_heads(self, x):
        return x[self.heads]
