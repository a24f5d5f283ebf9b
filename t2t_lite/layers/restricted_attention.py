"""Self-attention restricted to a neighbourhood of r positions (paper, section 4)."""

import keras
from keras import ops

from t2t_lite.layers.attention import MultiHeadAttention
from t2t_lite.layers.checks import check_sizes
from t2t_lite.layers.masks import masked_softmax

_SMALLEST_BLOCK = 32  # shorter ones make many small matrix products
_FEW_BLOCKS = 4  # up to here all scores cost no more than those of three blocks for each


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
        key_dim, value_dim, dropout, use_bias: as `MultiHeadAttention`.

    Raises:
        ValueError: as `MultiHeadAttention`, or `neighborhood` is less than 1, or a second sequence is given.
    """

    is_self_attention = True

    def __init__(self, num_heads: int, neighborhood: int, **kwargs):
        super().__init__(num_heads, **kwargs)
        check_sizes(neighborhood=neighborhood)
        self.neighborhood = neighborhood

    def attend_sequence(self, query, key, value, visible, training, needs_weights):
        """Attends block by block where that saves scores; as `MultiHeadAttention.attend_sequence`."""
        length, first = ops.shape(query)[2], visible.first
        if not (isinstance(first, int) and first == 0):
            raise ValueError(f"{type(self).__name__} has no `context`.")
        causal, mask = visible.causal, visible._replace(causal=False).merged(length, length)
        for_each_query = visible.dense is not None
        # (Not a condition in the graph where the length is only known there: TensorFlow 2.21's optimizer makes
        # wrong graphs of this one.)
        short = isinstance(length, int) and length <= _FEW_BLOCKS * self._block_length(length)
        if needs_weights or for_each_query or short or self.overrides_attend:
            return self._attend_in_full(query, key, value, mask, causal, training)
        return self._attend_in_blocks(query, key, value, mask, causal, training), None

    def _block_length(self, length):
        block = max(self.neighborhood, _SMALLEST_BLOCK)
        if isinstance(length, int):
            return max(min(block, length), 1)
        return ops.maximum(ops.minimum(block, length), 1)

    def _neighbors(self, i, j, end, causal):
        """Returns whether position i sees position j (int32, broadcast together) in sentences that end at `end`."""
        if causal:
            return (j <= i) & (j > i - self.neighborhood) & (j >= 0)
        first = ops.minimum(i - self.neighborhood // 2, end - self.neighborhood)
        first = ops.maximum(first, 0)
        return (j >= first) & (j < first + self.neighborhood)

    def _attend_in_full(self, query, key, value, mask, causal, training):
        """Attends with all scores made; arguments as `_attend_in_blocks`, returns also the weights."""
        positions = ops.arange(ops.shape(query)[2], dtype="int32")
        visible = self._neighbors(ops.expand_dims(positions, 1), positions, _end(mask, ops.shape(query)[2]), causal)
        visible = visible if mask is None else ops.logical_and(visible, mask)
        return self.attend(query, key, value, visible, training)

    def _attend_in_blocks(self, query, key, value, mask, causal, training):
        """Attends block by block.

        Args:
            query, key, value: [B, heads, T, size].
            mask: bool [B, 1, 1, T] or None.
            causal: bool.
            training: bool.

        Returns:
            [B, heads, T, value_dim].
        """
        batch, heads, length, _ = ops.shape(query)
        block = self._block_length(length)
        count = (length + block - 1) // block
        # A neighbourhood reaches r - 1 positions back, and at a beginning as many ahead: never past the next block.
        near = 2 if causal else 3
        width = near * block
        key, value = (_windows(x, block, count, near, training) for x in (key, value))  # [B, heads, count, width, size]
        query = ops.pad(query, ((0, 0), (0, 0), (0, count * block - length), (0, 0)))
        query = ops.reshape(query, (batch, heads, count, block, self.query_size))

        first = ops.expand_dims(ops.arange(count, dtype="int32"), (1, 2)) * block
        i = first + ops.expand_dims(ops.arange(block, dtype="int32"), 1)  # [count, block, 1]
        j = first - block + ops.arange(width, dtype="int32")  # [count, 1, width]
        visible = self._neighbors(i, j, _end(mask, length), causal)
        if mask is not None:
            seen = _windows(ops.cast(ops.swapaxes(mask, 2, 3), "int32"), block, count, near, training)
            visible = ops.logical_and(visible, ops.reshape(seen, (batch, count, 1, width)) > 0)

        # Masks in four axes: LiteRT can't compare or choose in more.
        visible = ops.reshape(visible, (1 if mask is None else batch, 1, count * block, width))
        query = query * ops.cast(self.query_size**-0.5, query.dtype)
        scores = ops.reshape(ops.matmul(query, ops.swapaxes(key, 3, 4)), (batch, heads, count * block, width))
        weights = self.dropout(masked_softmax(scores, visible), training=training)
        output = ops.matmul(ops.reshape(weights, (batch, heads, count, block, width)), value)
        return ops.reshape(output, (batch, heads, count * block, self.value_size))[:, :, :length]

    def attend_cached(self, query, past, mask, step):
        """Attends to the last r positions; arguments and results as `MultiHeadAttention.attend_cached`."""
        beams, slots = ops.shape(query)[2], ops.shape(past.key)[2]
        window = self.neighborhood * beams
        size = min(slots, window) if isinstance(slots, int) else ops.minimum(slots, window)
        first = ops.maximum(0, (step + 1) * beams - window)

        def near(x, axis):
            starts, sizes = [0] * 4, list(ops.shape(x))
            starts[axis], sizes[axis] = first, size
            return ops.slice(x, starts, sizes)

        seen = None if mask is None else near(mask, 3)
        if past.prompt:
            *_, distances = past.parts(beams, step)[0]
            length = ops.shape(distances)[1]
            of_prompt = mask[..., :length] & ops.expand_dims(distances > -self.neighborhood, (1, 2))
            seen = ops.concatenate([of_prompt, near(mask[..., length:], 3)], axis=3)
        past = past._replace(key=near(past.key, 2), value=near(past.value, 2))
        return super().attend_cached(query, past, seen, step)


def _end(mask, length):
    """Returns int32 [B, 1, 1, 1]: one past each sentence's last visible position; `length` where there is no mask."""
    if mask is None:
        return length
    positions = ops.arange(1, length + 1, dtype="int32")
    return ops.max(ops.where(mask, positions, 0), axis=(1, 2, 3), keepdims=True, initial=0)  # also of nothing


def _windows(x, block, count, near, training):
    """[B, h, T, size] -> [B, h, count, near * block, size]: each block with the one before and, if near is 3, after.

    Before the first block comes the last one: what is outside of the sequence must be masked.
    """
    batch, heads, length, size = ops.shape(x)
    x = ops.pad(x, ((0, 0), (0, 0), (0, count * block - length), (0, 0)))
    x = ops.reshape(x, (batch, heads, count, block, size))
    if training:  # rolled, not sliced: the gradient of a slice fills a whole tensor with zeros first
        before, after = ops.roll(x, 1, axis=2), ops.roll(x, -1, axis=2)
    else:  # sliced: LiteRT has no roll
        before = ops.concatenate([x[:, :, -1:], x[:, :, :-1]], axis=2)
        after = ops.concatenate([x[:, :, 1:], x[:, :, :1]], axis=2)
    return ops.concatenate([before, x, after][:near], axis=3)
