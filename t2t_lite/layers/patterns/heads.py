"""Heads with patterns of their own (Child et al. 2019, "Generating Long Sequences with Sparse Transformers", 4.1)."""

from keras import ops

from t2t_lite.layers.dropout import Dropout
from t2t_lite.layers.layer_kinds import make_kind
from t2t_lite.layers.patterns.part import attend_in_parts, whole_part
from t2t_lite.layers.patterns.pattern import Pattern, end_of
from t2t_lite.layers.shapes import shape_of
from t2t_lite.registry import Registries


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
    """Several patterns: the first heads have the first one, as many have the second, and so on.

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
