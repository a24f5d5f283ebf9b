"""Counter-based random numbers, which depend only on a seed and a position and are the same on every device."""

import tensorflow as tf


@tf.autograph.experimental.do_not_convert
def uniform_numbers(seeds, num_samples, length):
    """Returns float32 [B, num_samples, length, 2] in [0, 1), determined by the seed, the sample and the position.

    Args:
        seeds: int32 [B, 2].
        num_samples, length: ints or int32 scalar tensors.
    """
    key = tf.bitcast(seeds, tf.uint32)[:, None, None]  # [B, 1, 1, 2]
    samples = tf.cast(tf.range(num_samples), tf.uint32)[:, None]
    positions = tf.cast(tf.range(length), tf.uint32)
    words = tf.stack(threefry((key[..., 0], key[..., 1]), (samples, positions)), -1)
    return tf.cast(tf.bitwise.right_shift(words, tf.constant(8, tf.uint32)), tf.float32) * 2.0**-24


@tf.autograph.experimental.do_not_convert
def threefry(key, counter):
    """Computes Threefry-2x32 with 20 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").

    It uses only integer operations, so the numbers are the same on every device, with and without XLA.

    Args:
        key, counter: pairs of uint32 tensors whose shapes broadcast.

    Returns:
        Two uint32 tensors of random bits.
    """
    keys = (*key, key[0] ^ key[1] ^ tf.constant(0x1BD11BDA, tf.uint32))
    one, two = counter[0] + keys[0], counter[1] + keys[1]
    for block in range(5):
        for bits in ((13, 15, 26, 6), (17, 29, 16, 24))[block % 2]:
            one += two
            left = tf.bitwise.left_shift(two, tf.constant(bits, tf.uint32))
            two = one ^ (left | tf.bitwise.right_shift(two, tf.constant(32 - bits, tf.uint32)))
        one += keys[(block + 1) % 3]
        two += keys[(block + 2) % 3] + tf.constant(block + 1, tf.uint32)
    return one, two
