"""Finds the positions of pieces in encoded texts, inside a TensorFlow graph; the results equal those of `offsets`."""

import functools

import tensorflow as tf

from t2t_lite.text.published import wordpiece_graph
from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder
from t2t_lite.text.published.wordpiece import LONGEST_WORD, WordPieceEncoder
from t2t_lite.text.vocabulary import ByteTextEncoder, SentencePieceEncoder

_SPACES = [code for code in range(0x3001) if chr(code).isspace()]


def has_offsets(encoder):
    """Returns whether `encode_with_offsets` supports an encoder."""
    return _encoded.dispatch(type(encoder)) is not _encoded.dispatch(object)


def encode_with_offsets(encoder, texts):
    """Encodes texts, and returns the span of characters of each piece.

    Args:
        encoder: TextEncoder for which `has_offsets` is true.
        texts: string [batch], valid UTF-8.

    Returns:
        (ids, int32 ragged [batch, (length)]; starts and ends, int64 [all ids], in characters from the start of the
        text). White space around a piece is excluded: see `offsets.encode_with_offsets`. If a SentencePiece vocabulary
        normalizes one character to several (ﬁ, ½), and a piece ends after the first of them, the piece's end may be the
        start of the original character. The same holds for a byte piece before a character that the vocabulary drops.
    """
    codes = tf.strings.unicode_decode(texts, "UTF-8")
    encoded = _with_added_tokens if getattr(encoder, "added", None) else _encoded
    ids, starts, ends = encoded(encoder, texts)
    is_space = tf.reduce_any(codes.flat_values[:, None] == tf.constant(_SPACES), 1)
    solid = tf.where(~is_space)[:, 0]
    following = tf.gather(tf.concat([solid, [tf.size(is_space, tf.int64)]], 0), tf.searchsorted(solid, starts))
    starts = tf.minimum(following, ends)
    # for each end, the last character before it that is not a space
    preceding = tf.gather(tf.concat([[-1], solid], 0), tf.searchsorted(solid, ends))
    ends = tf.maximum(starts, preceding + 1)
    first = tf.gather(codes.row_starts(), ids.value_rowids())
    return ids, starts - first, ends - first


def _with_added_tokens(encoder, texts):
    """Encodes like `_encoded`, but each added token becomes a single id, whose span is the whole token."""
    parts, added = encoder.added.tf_split(texts)
    ids, starts, ends = _encoded(encoder, parts.flat_values)
    rows = ids.value_rowids()
    is_added = tf.gather(added >= 0, rows)
    part_ends = tf.cumsum(tf.strings.length(parts.flat_values, unit="UTF8_CHAR"))
    part_ends = tf.cast(part_ends, tf.int64)
    part_starts = tf.concat([[0], part_ends], 0)[:-1]
    values = tf.where(is_added, tf.gather(added, rows), ids.values)
    starts = tf.where(is_added, tf.gather(part_starts, rows), starts)
    ends = tf.where(is_added, tf.gather(part_ends, rows), ends)
    is_first = tf.range(tf.size(rows, tf.int64)) == tf.gather(ids.row_starts(), rows)
    values, starts, ends, rows = (
        tf.boolean_mask(tensor, is_first | ~is_added) for tensor in (values, starts, ends, rows)
    )
    rows = tf.gather(parts.value_rowids(), rows)
    return tf.RaggedTensor.from_value_rowids(values, rows, tf.size(texts, tf.int64)), starts, ends


@functools.singledispatch
def _encoded(encoder, texts):
    """Returns (ids, starts, ends). Spans include white space, and count the characters of all texts."""
    raise NotImplementedError(type(encoder).__name__)


@_encoded.register
def _(encoder: ByteTextEncoder, texts):
    ids = encoder.tf_encode(texts)
    return ids, *_character_spans(tf.ones_like(ids.values, tf.int64), texts)


@_encoded.register
def _(encoder: ByteLevelBPEEncoder, texts):
    ids = encoder.tf_encode_part(texts)
    sizes = tf.constant([len(piece) for piece in encoder.piece_bytes], tf.int64)
    return ids, *_character_spans(tf.gather(sizes, ids.values), texts)


@_encoded.register
def _(encoder: SentencePieceEncoder, texts):
    ids, starts, ends = encoder.tf_encode_with_offsets(texts)
    sizes = tf.cast(tf.strings.length(texts), tf.int64)
    first = tf.gather(tf.cumsum(sizes, exclusive=True), ids.value_rowids())
    characters = tf.concat([[0], _characters(texts)], 0)
    starts, ends = (tf.gather(characters, first + offsets.values) for offsets in (starts, ends))
    # If a character consists of several pieces, SentencePiece gives a length only to the last piece.
    return ids, starts, tf.where(starts == ends, starts + 1, ends)


@_encoded.register
def _(encoder: WordPieceEncoder, texts):
    return wordpiece_graph.encode_with_offsets(texts, encoder.spellings, encoder.lower, LONGEST_WORD)


def _character_spans(sizes, texts):
    """Returns (start, end) in characters of consecutive pieces, given their `sizes` in bytes."""
    characters, borders = _characters(texts), tf.cumsum(sizes)
    return tf.gather(characters, borders - sizes) - 1, tf.gather(characters, borders - 1)


def _characters(texts):
    """Returns int64 [bytes of all texts]: the number of characters that start at or before each byte."""
    codes = tf.cast(tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8), tf.int32)
    return tf.cumsum(tf.cast(tf.bitwise.bitwise_and(codes, 0xC0) != 0x80, tf.int64))
