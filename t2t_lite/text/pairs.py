"""Rows of ids of a text or a pair, and how they are truncated."""

from t2t_lite.text.vocabulary import EOS_ID


def cut_texts(ids, longest):
    """Truncates a row, in a graph, to at most `longest` ids; of a pair the longer text is cut first, as BERT does.

    Args:
        ids: int [length], a text or a pair, each ending in 1.
        longest: int, at least 4.

    Returns:
        int [at most `longest`], each text ending in 1.
    """
    import tensorflow as tf

    size = tf.size(ids, tf.int64)
    first = tf.concat([tf.where(ids == EOS_ID)[:, 0], [size]], 0)[0]  # where the first text ends
    second = tf.maximum(size - first - 2, 0)  # ids of the second one, if there is one
    is_pair = tf.cast(size > first + 1, tf.int64)
    room = longest - 1 - is_pair  # beside the ends
    first_length, second_length = kept_lengths(first, second, room)
    end = tf.constant([EOS_ID], ids.dtype)
    return tf.concat([ids[:first_length], end, ids[first + 1 : first + 1 + second_length], tf.repeat(end, is_pair)], 0)


def kept_lengths(first, second, room):
    """Returns how many ids of each text of a pair are kept if `room` ids fit; the longer text is cut first.

    Args:
        first, second: int tensors of the same shape, the texts' lengths; second 0: there is only the first text.
        room: int, or such a tensor.
    """
    import tensorflow as tf

    # The first gets what the second leaves, and at least half.
    first_kept = tf.minimum(first, tf.maximum(room - second, (room + 1) // 2))
    return first_kept, tf.minimum(second, room - first_kept)
