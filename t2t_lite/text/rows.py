"""Truncates rows of ids that hold one or two texts, and computes the row of each value in a ragged tensor."""

from t2t_lite.text.vocabulary import EOS_ID


def cut_texts(ids, longest):
    """Truncates a row, in a graph, to at most `longest` ids; in a pair, the longer text is cut first, as in BERT.

    Args:
        ids: int [length], a text or a pair, each ending in 1.
        longest: int, at least 4, the maximum number of ids.

    Returns:
        int [at most `longest`]; each text ends in 1.
    """
    import tensorflow as tf

    size = tf.size(ids, tf.int64)
    first = tf.concat([tf.where(ids == EOS_ID)[:, 0], [size]], 0)[0]  # index of the end of the first text
    second = tf.maximum(size - first - 2, 0)  # number of ids of the second text, if there is one
    is_pair = tf.cast(size > first + 1, tf.int64)
    room = longest - 1 - is_pair  # the number of ids that fit in addition to EOS
    first_length, second_length = kept_lengths(first, second, room)
    end = tf.constant([EOS_ID], ids.dtype)
    return tf.concat([ids[:first_length], end, ids[first + 1 : first + 1 + second_length], tf.repeat(end, is_pair)], 0)


def kept_lengths(first, second, room):
    """Returns how many ids of each text in a pair to keep if `room` ids fit; the longer text is truncated first.

    Args:
        first, second: int tensors of the same shape, the lengths of the texts; 0 for a missing second text.
        room: int, or an int tensor of the same shape.
    """
    import tensorflow as tf

    # The first text may use half of the room, or more if the second text leaves room.
    first_kept = tf.minimum(first, tf.maximum(room - second, (room + 1) // 2))
    return first_kept, tf.minimum(second, room - first_kept)


CHARACTERS_OF_AN_ID = 64  # upper bound: with any vocabulary, the mean over hundreds of pieces is lower
_FEWEST_IDS = 64
_MARGIN = 64  # the maximum number of ids before a cut that can differ from the ids of the whole text


def encode_beginning(encoder, text, count, prepare=str):
    """Returns the ids of a text. If the text is long, encodes only its beginning, which has more than `count` ids.

    Args:
        encoder: TextEncoder.
        text: str.
        count: int, the number of ids that the caller needs.
        prepare: function that takes the text and returns the text to encode.

    Raises:
        UserError: see `encoder.encode`.
    """
    size = len(beginning_of(text, count))
    while size < len(text):
        ids = encoder.encode(prepare(text[:size]))
        if len(ids) > count + _MARGIN:
            return ids[: len(ids) - _MARGIN]
        size *= 4  # text without ids, such as spaces, may have any length
    return encoder.encode(prepare(text))


def beginning_of(text, count):
    """Truncates a text so that its first `count` ids stay the same, except in texts constructed to prevent this."""
    return text[: longest_text(count + _MARGIN)]


def longest_text(count):
    """Returns how many characters or bytes always give at least `count` ids, except in texts made to prevent this."""
    return CHARACTERS_OF_AN_ID * max(count, _FEWEST_IDS)


def row_ids(ragged):
    """Returns int64 [all values], the index of each value's row in a ragged tensor.

    `RaggedTensor.value_rowids` needs memory for all rows padded to the longest row, which can be gigabytes if there is
    one long word among many short words.
    """
    import tensorflow as tf

    limits = ragged.row_limits()
    return tf.searchsorted(limits, tf.range(ragged.row_splits[-1], dtype=limits.dtype), side="right", out_type=tf.int64)
