"""Encodes text with WordPiece inside a TensorFlow graph, for exports; gives the same ids as `WordPieceEncoder`.

It uses only operations of TensorFlow and tensorflow-text that TensorFlow Serving includes. tensorflow-text's
`FastBertNormalizer` is not used, because it folds case and composes characters, so that even plain German would get
different ids than in BERT.
"""

import functools

import numpy as np
import tensorflow as tf

from t2t_lite.text.published.pre_tokenization import normalization
from t2t_lite.text.vocabulary import UNK_ID


def encode(strings, tokens, lower, longest_word):
    """Encodes string [batch] as int32 ragged [batch, (length)].

    Args:
        strings: the texts.
        tokens: list of str by id.
        lower: see `split`.
        longest_word: int, number of characters above which a word is unknown.
    """
    return _spelled(split(strings, lower), tokens, longest_word)[0]


def encode_with_offsets(strings, tokens, lower, longest_word):
    """Encodes like `encode`, and returns the span of characters of each piece.

    Returns:
        (ids, starts, ends); starts and ends are int64 [all ids]. Characters are counted across all strings.
    """
    parts = _normalized(strings, lower)
    ids, sizes = _spelled(_words(parts), tokens, longest_word)
    # For each normalized character, the index of the original character. A removed character counts as a part of the
    # preceding character.
    texts = parts.values  # ragged [all characters, (normalized characters)]
    origins = texts.value_rowids()
    nonempty = tf.where(texts.row_lengths() > 0)[:, 0]
    following = tf.gather(tf.concat([nonempty, [texts.nrows()]], 0), tf.searchsorted(nonempty, origins, side="right"))
    row_ends = tf.gather(parts.row_limits(), tf.gather(parts.value_rowids(), origins))
    is_last = tf.range(tf.size(origins, tf.int64)) + 1 == tf.gather(texts.row_limits(), origins)
    ends = tf.where(is_last, tf.minimum(following, row_ends), origins + 1)
    starts, ends = (tf.boolean_mask(places, texts.values != ord(" ")) for places in (origins, ends))
    borders = tf.cumsum(sizes)
    return ids, tf.gather(starts, borders - sizes), tf.gather(ends, borders - 1)


def _spelled(words, tokens, longest_word):
    """Returns the ids of words, int32 ragged [batch, (length)], and each id's number of characters, int64 [all ids]."""
    import tensorflow_text

    pieces = tensorflow_text.FastWordpieceTokenizer(
        tokens, token_out_type=tf.int32, unknown_token=tokens[UNK_ID], no_pretokenization=True,
        max_bytes_per_word=4 * longest_word, support_detokenization=False,
    )  # fmt: skip
    lengths = tf.strings.length(words.flat_values, unit="UTF8_CHAR")
    ids = pieces.tokenize(tf.where(lengths > longest_word, tokens[UNK_ID], words.flat_values))  # [words, (pieces)]
    sizes = tf.gather(tf.constant([len(token.removeprefix("##")) for token in tokens]), ids.values)
    sizes = tf.where(ids.values == UNK_ID, tf.gather(lengths, ids.value_rowids()), sizes)
    return words.with_flat_values(ids).merge_dims(1, 2), tf.cast(sizes, tf.int64)


def split(strings, lower):
    """Splits string [batch] into BERT's normalized words and punctuation marks, string ragged [batch, (words)].

    Args:
        strings: the texts.
        lower: whether text is converted to lower case and loses its accents.
    """
    return _words(_normalized(strings, lower))


def _words(parts):
    return tf.strings.split(tf.strings.unicode_encode(parts.merge_dims(1, 2), "UTF-8"))


def _normalized(strings, lower):
    """Normalizes string [batch] to int32 ragged [batch, (characters), (characters of the normalized text)]."""
    changed, values, row_splits = map(tf.constant, _changes(lower))
    replacements = tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
    codes = tf.strings.unicode_decode(strings, "UTF-8")
    place = tf.minimum(tf.searchsorted(changed, codes.flat_values), tf.size(changed) - 1)
    is_changed = tf.gather(changed, place) == codes.flat_values
    # The characters are code points, because joining one string per character would pad every row to the longest row.
    either = tf.concat([replacements, tf.RaggedTensor.from_tensor(codes.flat_values[:, None])], 0)
    at = tf.where(is_changed, place, tf.size(changed) + tf.range(tf.size(place)))
    return codes.with_values(tf.gather(either, at))


@functools.cache  # cached, because iterating over all of Unicode's characters takes seconds
def _changes(lower):
    """Returns the code points to normalize, int32 [changes], their replacements, int32, and row splits, int64."""
    changes = normalization(lower).changes()
    values = [ord(character) for text in changes.values() for character in text]
    row_splits = np.cumsum([0, *map(len, changes.values())], dtype=np.int64)
    return np.array([*changes], np.int32), np.array(values, np.int32), row_splits
