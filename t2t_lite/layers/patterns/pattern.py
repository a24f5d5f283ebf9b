"""Full attention, and the base of all patterns."""

from keras import ops

from t2t_lite.layers.layer_kinds import Kind
from t2t_lite.layers.patterns.part import attend_in_parts
from t2t_lite.layers.shapes import shape_of
from t2t_lite.registry import register_pattern


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
