"""The largest of many values, exactly and faster than `tf.math.top_k`."""

import tensorflow as tf


def block_top_k(values, k, block=128):
    """Exact `tf.math.top_k` of the last axis, several times faster on CPU when there are many columns.

    The k largest values lie in at most k blocks, each of which has a maximum at least as large as that of any block
    left out: take the k blocks of largest maximum, then the top k of their values. Ties resolve as in `top_k`.

    Args:
        values: float32 [N, V], V static.
        k: Python int <= V.
        block: Python int, about how many columns a block has.

    Returns:
        Values float32 and indices int32, both [N, k], largest first.
    """
    size = values.shape[-1]
    if size < 4 * k * block:  # hardly anything would be left out
        return tf.math.top_k(values, k)
    rows = values.shape[0] or tf.shape(values)[0]
    divisors = [n for n in range(block // 2, 2 * block + 1) if size % n == 0]
    if divisors:
        block = min(divisors, key=lambda n: abs(n - block))
    else:
        values = tf.pad(values, ((0, 0), (0, -size % block)), constant_values=-float("inf"))
    blocks = tf.reshape(values, (rows, -1, block))
    _, chosen = tf.math.top_k(tf.reduce_max(blocks, -1), k)  # [N, k]
    chosen = tf.sort(chosen, -1)
    found, at = tf.math.top_k(tf.reshape(pick(blocks, chosen), (rows, k * block)), k)
    return found, pick(chosen, at // block) * block + at % block


def pick(values, at):
    """[B, N, ...], int32 [B, M] -> [B, M, ...]: row b of the result is values[b, at[b]]."""
    return tf.gather(values, at, axis=1, batch_dims=1)
