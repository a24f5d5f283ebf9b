"""Rows of ids of a text or a pair: how they are truncated, and where they begin in a ragged tensor."""

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
    room = longest - 1 - is_pair  # without the ends
    first_length, second_length = kept_lengths(first, second, room)
    end = tf.constant([EOS_ID], ids.dtype)
    return tf.concat([ids[:first_length], end, ids[first + 1 : first + 1 + second_length], tf.repeat(end, is_pair)], 0)


def kept_lengths(first, second, room):
    """Returns how many ids of each text of a pair are kept if `room` ids fit; the longer text is cut first.

    Args:
        first, second: int tensors of the same shape, the lengths of the texts; 0 for a missing second text.
        room: int, or such a tensor.
    """
    import tensorflow as tf

    # The first gets what the second leaves, and at least half.
    first_kept = tf.minimum(first, tf.maximum(room - second, (room + 1) // 2))
    return first_kept, tf.minimum(second, room - first_kept)


CHARACTERS_OF_AN_ID = 64  # no vocabulary's pieces are that long on average over hundreds
_FEWEST_IDS = 64
_MARGIN = 64  # ids before a cut, which may differ from those of the whole text


def encode_beginning(encoder, text, count, prepare=None):
    """Returns the ids of a text, or the first of them, more than `count`, without encoding all of a long text.

    Args:
        encoder: TextEncoder.
        text: str.
        count: int, number of ids needed.
        prepare: None, or a function of the text that returns the text to encode.

    Raises:
        UserError: as `encoder.encode`.
    """
    prepare = prepare or (lambda text: text)
    size = len(beginning_of(text, count))
    while size < len(text):
        ids = encoder.encode(prepare(text[:size]))
        if len(ids) > count + _MARGIN:
            return ids[: len(ids) - _MARGIN]
        size *= 4  # text without ids, such as spaces, may be of any length
    return encoder.encode(prepare(text))


def beginning_of(text, count):
    """Returns a text, or a beginning of it with the same first `count` ids, except for hostile texts."""
    return text[: longest_text(count + _MARGIN)]


def longest_text(count):
    """Returns a number of characters, or bytes, that contain `count` ids of any text that is not hostile."""
    return CHARACTERS_OF_AN_ID * max(count, _FEWEST_IDS)


def row_ids(ragged):
    """Returns int64 [all values], the row of each.

    `RaggedTensor.value_rowids` needs memory for all rows padded to the longest one: gigabytes for one long word among
    many short ones.
    """
    import tensorflow as tf

    limits = ragged.row_limits()
    return tf.searchsorted(limits, tf.range(ragged.row_splits[-1], dtype=limits.dtype), side="right", out_type=tf.int64)
