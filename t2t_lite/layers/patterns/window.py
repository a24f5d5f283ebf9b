"""A neighbourhood of r positions (paper, section 4)."""

from keras import ops

from t2t_lite.layers.checks import check_required_sizes
from t2t_lite.layers.distances import Strides
from t2t_lite.layers.patterns.part import block_part, blocks_of
from t2t_lite.layers.patterns.pattern import Pattern
from t2t_lite.registry import register_pattern

_SMALLEST_BLOCK = 32  # shorter ones make many small matrix products
_FEW_BLOCKS = 4  # up to here all scores cost no more than those of three blocks for each


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
