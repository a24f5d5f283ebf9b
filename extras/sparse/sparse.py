"""The two attention patterns of "Generating Long Sequences with Sparse Transformers" (Child et al. 2019).

Each pattern consists of two dense parts: near positions, in blocks, and one in `stride` of the far positions. Time and
memory for n positions therefore grow as n · stride + n² / stride, which is of order n^1.5 if the stride is √n.
"""

from typing import ClassVar

from keras import ops

from t2t_lite.layers.checks import check_required_sizes, shape_of
from t2t_lite.layers.key_parts import Part, block_part, blocks_of, cut, joined
from t2t_lite.layers.key_patterns import Pattern, is_short, last_positions, smallest_block
from t2t_lite.layers.positions import Strides
from t2t_lite.registry import register_pattern
from t2t_lite.settings.ranges import setting

_STRIDE = setting(
    128, 1, 2**20, argument="self_attention.stride", fixed=True,
    meaning="The stride l, in positions, of the patterns strided and fixed; for n positions, √n is the cheapest.",
)  # fmt: skip


@register_pattern("strided")
class Strided(Pattern):
    """Each position sees the last `stride` positions, including itself, and every `stride`-th position before them.

    The pattern merges the index sets of the paper's two heads (section 4.2).
    """

    HPARAMS: ClassVar = {"attention_stride": _STRIDE}
    needs_order = True

    def __init__(self, stride: int):
        check_required_sizes(stride=stride)
        self.stride = stride

    def visible(self, i, j, end, causal):
        """Returns whether position i sees position j; for the arguments, see `Pattern.visible`."""
        return (j <= i) & ((j > i - self.stride) | ((i - j) % self.stride == 0))

    def parts(self, length, causal):
        """Returns two parts: the window, and the columns of the sequence, written in rows of `stride` positions."""
        if is_short(self.stride, length):
            return None
        size, _ = blocks_of(smallest_block(self.stride), length)
        window = block_part(size, length, [1, 0], lambda i, j, end: (j <= i) & (j > i - self.stride), [Strides(-size)])
        return [window, _column_part(self.stride, length, lambda x: x, [Strides(0, self.stride)], 1)]

    def positions(self, at, count):
        """Returns the positions in the window, followed by the positions in the column."""
        far = at - self.stride * (1 + ops.arange((count + self.stride - 1) // self.stride, dtype="int32"))
        return ops.concatenate([last_positions(self.stride, at, count), far], axis=1)

    def seen(self, keys):
        """Returns the number of scores per query, which cover two blocks and a column."""
        return min(2 * smallest_block(self.stride) + keys // self.stride, keys)


@register_pattern("fixed")
class Fixed(Pattern):
    """Each position sees itself, the earlier positions in its block, and the last `summary` ones of each earlier block.

    A block has `stride` positions. The pattern merges both index sets of the paper's section 4.3, where `summary` is
    called c.
    """

    HPARAMS: ClassVar = {
        "attention_stride": _STRIDE,
        "attention_summary": setting(
            1, 1, 2**20, argument="self_attention.summary", fixed=True,
            meaning="The summary size c of the pattern fixed: later blocks see the last c positions of each block.",
        ),
    }  # fmt: skip
    needs_order = True

    def __init__(self, stride: int, summary: int = 1):
        check_required_sizes(stride=stride, summary=summary)
        if summary > stride:
            raise ValueError(f"`summary` must be at most `stride`={stride}: received summary={summary}.")
        self.period = self.stride = stride
        self.summary = summary

    def visible(self, i, j, end, causal):
        """Returns whether position i sees position j; for the arguments, see `Pattern.visible`."""
        is_summary = j % self.stride >= self.stride - self.summary
        return (j <= i) & ((j // self.stride == i // self.stride) | is_summary)

    def parts(self, length, causal):
        """Returns two parts: the positions in a block, and the summary positions of all earlier blocks."""
        if is_short(self.stride, length):
            return None
        size, count = blocks_of(self.stride, length)
        blocks = block_part(size, length, [0], lambda i, j, end: j <= i, [Strides(0)])
        # For queries at the same place in their blocks, the distances to the same summary cell of all blocks are
        # evenly spaced.
        count, place = (length + self.stride - 1) // self.stride, ops.arange(self.stride, dtype="int32")
        cells = range(self.stride - self.summary, self.stride)
        distances = [Strides(cell - place, self.stride, count) for cell in cells]

        def cells_of(columns):  # [B, heads, stride, count, d] -> [B, heads, 1, summary * count, d]
            batch, heads, _, count, width = shape_of(columns)
            last = columns[:, :, self.stride - self.summary :]
            return ops.reshape(last, (batch, heads, 1, self.summary * count, width))

        return [blocks, _column_part(self.stride, length, cells_of, distances, self.summary)]

    def positions(self, at, count):
        """Returns the positions in the block, followed by the summary cells of all blocks.

        Cells of blocks that are not earlier are replaced with -1.
        """
        block, size = at // self.stride, min(self.stride, count) if isinstance(count, int) else self.stride
        near = block * self.stride + ops.arange(size, dtype="int32")
        blocks = ops.arange((count + self.stride - 1) // self.stride, dtype="int32")
        cells = ops.arange(self.stride - self.summary, self.stride, dtype="int32")
        far = ops.reshape(ops.expand_dims(blocks * self.stride, 1) + cells, (1, -1))
        far = ops.where(far < block * self.stride, far, -1)
        return ops.concatenate([near, far], axis=1)

    def seen(self, keys):
        """Returns the number of scores per query, which cover a block and the summaries."""
        return min(self.stride + self.summary * keys // self.stride, keys)


def _column_part(stride, length, keys_of, distances, cells):
    """Returns the `Part` in which a query sees its column in all rows above its own row.

    The sequence is arranged in rows of `stride` positions.

    Args:
        stride: int.
        length: int or int scalar, T.
        keys_of: function of columns [B, heads, stride, count, d] that returns the keys of each column, or keys that all
            columns share.
        distances: list of `Strides`.
        cells: int, number of keys per row.
    """
    count = (length + stride - 1) // stride
    rows = ops.arange(count, dtype="int32")
    mask = ops.expand_dims(rows, 1) > ops.concatenate([rows] * cells)

    def columns(x):
        return ops.swapaxes(cut(x, stride, count), 2, 3)

    return Part(
        columns,
        lambda x, training: keys_of(columns(x)),
        lambda x: joined(ops.swapaxes(x, 2, 3), length),
        lambda end: ops.expand_dims(mask, (0, 1)),
        distances,
    )
