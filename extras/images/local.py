"""Local attention patterns: blocks see themselves and their neighbours (Parmar et al. 2018, "Image Transformer")."""

from typing import ClassVar

from keras import ops

from t2t_lite.layers.checks import check_required_sizes
from t2t_lite.layers.key_parts import block_part, blocks_of
from t2t_lite.layers.key_patterns import Pattern, is_short, last_positions
from t2t_lite.layers.positions import Strides
from t2t_lite.registry import register_pattern
from t2t_lite.settings.ranges import setting


@register_pattern("local_1d")
class LocalOneDimension(Pattern):
    """Each position sees the earlier positions of its own block of `block_length`, and the whole previous block.

    This equals tensor2tensor's `masked_local_attention_1d` (Parmar et al., section 3.1).
    """

    HPARAMS: ClassVar = {
        "block_length": setting(
            256, 1, 2**20, argument="self_attention.block_length", fixed=True,
            meaning="Positions per block of local_1d; a block sees itself and the previous block.",
        )
    }  # fmt: skip

    needs_order = True

    def __init__(self, block_length: int):
        check_required_sizes(block_length=block_length)
        self.period = self.block_length = block_length

    def visible(self, i, j, end, causal):
        """Returns whether position i sees position j: see `Pattern.visible`."""
        return (j <= i) & (j // self.block_length >= i // self.block_length - 1)

    def parts(self, length, causal):
        """Returns the attention as a single part, in which each block sees itself and the previous block."""
        if is_short(self.block_length, length):
            return None
        size, _ = blocks_of(self.block_length, length)
        return [block_part(size, length, [1, 0], lambda i, j, end: j <= i, [Strides(-size)])]

    def positions(self, at, count):
        """Returns the positions that one decoding step reads: the most recent ones, at most two blocks."""
        return last_positions(2 * self.block_length, at, count)

    def seen(self, keys):
        """Returns how many positions are read per decoding step: two blocks, but at most `keys`."""
        return min(2 * self.block_length, keys)


@register_pattern("local_2d")
class LocalTwoDimensions(Pattern):
    """Divides an image into blocks of rows and columns; each block sees itself and its earlier neighbours.

    A sequence contains the blocks of the image in raster order, and the cells of each block in raster order. A block
    sees `blocks_beside` blocks to its left. In each of the `blocks_above` rows of blocks above, a block sees the block
    directly above it and `blocks_beside` blocks on either side. This equals tensor2tensor's `masked_local_attention_2d`
    (Parmar et al., section 3.2) if the flanges are multiples of the block.

    Args:
        block_height, block_width: int, cells per block.
        image_width: int, cells per row of the image, a multiple of block_width.
        blocks_above, blocks_beside: int, numbers of visible blocks, see above.
    """

    HPARAMS: ClassVar = {
        "block_height": setting(
            16, 1, 2**12, argument="self_attention.block_height", fixed=True, meaning="Rows per block of local_2d."
        ),
        "block_width": setting(
            16, 1, 2**12, argument="self_attention.block_width", fixed=True, meaning="Columns per block of local_2d."
        ),
        "image_width": setting(
            32, 1, 2**16, argument="self_attention.image_width", fixed=True,
            meaning="Number of columns in the image for local_2d; each channel of a pixel is a column.",
        ),
        "blocks_above": setting(
            1, 0, 64, argument="self_attention.blocks_above", fixed=True,
            meaning="Number of rows of blocks that local_2d sees above a block.",
        ),
        "blocks_beside": setting(
            1, 0, 64, argument="self_attention.blocks_beside", fixed=True,
            meaning="Number of blocks that local_2d sees to the left of a block, and on each side in the rows above.",
        ),
    }  # fmt: skip

    needs_order = True

    def __init__(
        self, block_height: int, block_width: int, image_width: int, blocks_above: int = 1, blocks_beside: int = 1
    ):
        check_required_sizes(block_height=block_height, block_width=block_width, image_width=image_width)
        if image_width % block_width:
            raise ValueError(
                f"`image_width` must be a multiple of `block_width`={block_width}: received image_width={image_width}."
            )
        self.block_height, self.block_width, self.image_width = block_height, block_width, image_width
        self.size, self.columns = block_height * block_width, image_width // block_width
        self.period = self.size * self.columns  # a row of blocks
        self.blocks_above, self.blocks_beside = blocks_above, blocks_beside
        beside = range(-blocks_beside, blocks_beside + 1)
        around = [(0, column) for column in range(blocks_beside, -1, -1)]
        around += [(row, column) for row in range(1, blocks_above + 1) for column in beside]
        # (rows above, columns to the left, distance in blocks) for each visible block that fits into an image
        self.neighbors = [(r, c, r * self.columns + c) for r, c in around if abs(c) < self.columns]

    def visible(self, i, j, end, causal):
        """Returns whether position i sees position j: see `Pattern.visible`."""
        (row, column), (other_row, other_column) = (
            (x // self.size // self.columns, x // self.size % self.columns) for x in (i, j)
        )
        near = (row - other_row <= self.blocks_above) & (ops.abs(column - other_column) <= self.blocks_beside)
        return (j <= i) & near

    def parts(self, length, causal):
        """Returns the attention as a single part, in which each block sees all its neighbours."""
        if is_short(self.size, length):
            return None
        lefts = ops.convert_to_tensor([c for _, c, _ in self.neighbors for _ in range(self.size)], "int32")

        def mask(i, j, end):
            column = i // self.size % self.columns - lefts  # columns beyond an edge belong to another row
            return (j <= i) & (column >= 0) & (column < self.columns)

        shifts = [shift for *_, shift in self.neighbors]
        return [block_part(self.size, length, shifts, mask, [Strides(-s * self.size, 1, self.size) for s in shifts])]

    def positions(self, at, count):
        """Returns the positions in all neighbours of the block at a position, or -1 beyond an edge."""
        block, within = at // self.size, ops.arange(self.size, dtype="int32")
        column, neighbours = block % self.columns, []
        for _, left, shift in self.neighbors:
            is_there = (column - left >= 0) & (column - left < self.columns)
            neighbours.append(ops.where(is_there, (block - shift) * self.size + within, -1))
        return ops.concatenate(neighbours, axis=1)

    def seen(self, keys):
        """Returns the number of cells in all neighbouring blocks, at most `keys`."""
        return min(len(self.neighbors) * self.size, keys)
