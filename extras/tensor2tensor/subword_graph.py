"""Encodes and decodes tensor2tensor's subwords inside a TensorFlow graph, for exports.

The graph computes the same ids and texts as `SubwordTextEncoder`. It uses only operations of TensorFlow and
tensorflow-text, both of which TensorFlow Serving includes. The greedy longest-match search is done by WordPiece,
which uses the same vocabulary here for the beginnings and the continuations of words.
"""

import functools
import unicodedata

import numpy as np
import tensorflow as tf

from t2t_lite.text.rows import row_ids

_DIGITS = 7  # number of digits of the largest code point
_UNDEFINED = "\u3013"
_ESCAPE = r"(\\\\|\\u|\\[0-9]+;)"
_MARK = b"\xff"  # a byte that no UTF-8 text has


class SubwordGraph:
    """Converts texts to ids, and ids to texts, in a graph.

    Args:
        pieces: list of str, the piece of each id.
        ids: {piece: id} for the pieces that texts are encoded with.
        alphabet: set of characters that are not escaped.
    """

    def __init__(self, pieces, ids, alphabet):
        self._pieces = pieces
        self._longest = max(map(len, ids))
        # The second alphabet is for tokens that the first one cannot spell: all characters that are not pieces are
        # escaped.
        single = {piece for piece in ids if len(piece) == 1}
        self._alphabets = [np.sort([ord(c) for c in characters if c != "\n"]) for characters in (alphabet, single)]
        with tf.init_scope():  # outside any function being traced, because an export has to track the table
            values = tf.constant([*ids.values()], tf.int64)
            self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([*ids], values), 0)

    def encode(self, strings):
        """Encodes texts: string [batch] -> int32 ragged [batch, (length)], without EOS."""
        codes = tf.strings.unicode_decode(strings, "UTF-8")
        rows, codes = row_ids(codes), codes.values
        is_word = _in_ranges(codes)
        begins = tf.concat(
            [tf.ones_like(rows[:1], tf.bool), (is_word[1:] != is_word[:-1]) | (rows[1:] != rows[:-1])], 0
        )
        token_of_each = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        token_rows, first_codes = rows[begins], codes[begins]
        lengths = tf.math.bincount(tf.cast(token_of_each, tf.int32), dtype=tf.int32)
        lengths = lengths[: tf.shape(token_rows)[0]]
        changes = token_rows[1:] != token_rows[:-1]
        is_first = tf.concat([tf.ones_like(token_rows[:1], tf.bool), changes], 0)
        is_last = tf.concat([changes, tf.ones_like(token_rows[:1], tf.bool)], 0)
        stays = ~((first_codes == ord(" ")) & (lengths == 1)) | is_first | is_last
        spelled = []
        for alphabet in self._alphabets:
            escaped = tf.RaggedTensor.from_value_rowids(_escaped(codes, alphabet), token_of_each)
            tokens = tf.boolean_mask(tf.strings.reduce_join(escaped, axis=-1) + "_", stays)
            spelled.append(self._wordpiece.tokenize(tokens))
        usual, instead = spelled
        is_spelled = tf.reduce_min(usual, axis=1) > 0
        # If no piece fits, WordPiece returns 0, the id of padding.
        ids = tf.ragged.stack([usual, instead], axis=1)  # [tokens, 2, (pieces)]
        spelling = tf.gather(ids, tf.where(is_spelled, 0, 1), batch_dims=1)
        spelling = tf.RaggedTensor.from_value_rowids(
            spelling, tf.boolean_mask(token_rows, stays), tf.size(strings, tf.int64)
        )
        return tf.cast(spelling.merge_dims(1, 2), tf.int32)

    @functools.cached_property
    def _wordpiece(self):
        import tensorflow_text

        return tensorflow_text.WordpieceTokenizer(
            self.table,
            suffix_indicator="",
            max_bytes_per_word=2**31 - 1,
            max_chars_per_token=self._longest,
            token_out_type=tf.int64,
            unknown_token=self._pieces[0],
        )

    def decode(self, ids):
        """Decodes ids, none of them special: int32 ragged [batch, (length)] -> string [batch]."""
        joined = tf.strings.reduce_join(tf.gather(tf.constant(self._pieces), ids), axis=-1)
        tokens = _not_empty(tf.strings.split(joined, "_"))
        tokens = _not_empty(tf.ragged.map_flat_values(_unescaped, tokens))
        first = tf.strings.unicode_decode(tf.strings.substr(tokens.values, 0, 1, unit="UTF8_CHAR"), "UTF-8")
        is_word, rows = _in_ranges(first.to_tensor(0, shape=[None, 1])[:, 0]), tokens.value_rowids()
        needs_space = tf.concat(
            [tf.zeros_like(rows[:1], tf.bool), is_word[1:] & is_word[:-1] & (rows[1:] == rows[:-1])], 0
        )
        return tf.strings.reduce_join(tokens.with_values(tf.where(needs_space, " ", "") + tokens.values), axis=-1)


def _not_empty(ragged):
    return tf.ragged.boolean_mask(ragged, ragged != "")


def _escaped(codes, alphabet):
    """Escapes characters: int32 code points [characters] -> string [characters]."""
    characters = tf.strings.unicode_encode(codes[:, None], "UTF-8")
    numbers = "\\" + tf.strings.as_string(codes) + ";"
    place = tf.minimum(tf.searchsorted(tf.constant(alphabet, tf.int32), codes), len(alphabet) - 1)
    plain = tf.where(tf.gather(tf.constant(alphabet, tf.int32), place) == codes, characters, numbers)
    return tf.where(codes == ord("\\"), "\\\\", tf.where(codes == ord("_"), "\\u", plain))


def _unescaped(tokens):
    """Reverses the escapes in tokens: string [tokens] -> string [tokens]."""
    # not tensorflow_text.regex_split, which ends a text at its first NUL
    parts = tf.strings.split(tf.strings.regex_replace(tokens, _ESCAPE, _MARK + rb"\1" + _MARK), _MARK)
    return tf.strings.reduce_join(tf.ragged.map_flat_values(_unescaped_part, parts), axis=-1)


def _unescaped_part(parts):
    is_number = tf.strings.regex_full_match(parts, r"\\[0-9]+;")
    digits = tf.where(is_number, tf.strings.regex_replace(parts, r"\\0*([0-9]*);", r"0\1"), "0")
    is_short = tf.strings.length(digits) <= _DIGITS + 1
    codes = tf.strings.to_number(tf.where(is_short, digits, "0"), tf.int32)
    exists = is_short & ((codes < 0xD800) | (codes > 0xDFFF)) & (codes <= 0x10FFFF)
    characters = tf.strings.unicode_encode(tf.where(exists, codes, 0)[:, None], "UTF-8")
    unescaped = tf.where(is_number, tf.where(exists, characters, _UNDEFINED), parts)
    return tf.where(parts == "\\u", "_", tf.where(parts == "\\\\", "\\", unescaped))


def _in_ranges(codes):
    """Returns whether each code point is a letter or a number: int32 [n] -> bool [n]."""
    return tf.searchsorted(tf.constant(_ranges(), tf.int32), codes, side="right") % 2 == 1


@functools.cache
def _ranges():
    """Returns the code points where ranges of letters and numbers begin and end, as in Python's table, not ICU's."""
    is_word = np.array([unicodedata.category(chr(i))[0] in "LN" for i in range(0x110000)], np.int8)
    return np.flatnonzero(np.diff(is_word, prepend=0)).astype("int32")
