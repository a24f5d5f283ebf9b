"""An exact top k that is faster than `tf.math.top_k`."""

import tensorflow as tf


def block_top_k(values, k, block=128):
    """Exact `tf.math.top_k` of the last axis, several times faster on CPUs for many columns.

    The k largest values are in the k blocks with the largest maxima, so only the values of those blocks are compared.
    Ties are resolved as in `top_k`.

    Args:
        values: float32 [N, V], V static.
        k: Python int <= V.
        block: Python int, approximate number of columns per block.

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
