"""Encodes text with byte-level BPE in a TensorFlow graph, for exports; gives the same ids as `ByteLevelBPEEncoder`.

It uses only operations of TensorFlow and tensorflow-text that TensorFlow Serving includes. Regular expressions are
avoided, because in tensorflow-text they end a text at its first NUL and use a different version of Unicode for their
character classes.
"""

import tensorflow as tf

from t2t_lite.text.published import pre_tokenization
from t2t_lite.text.published.pre_tokenization import CHARACTERS, CONTRACTIONS
from t2t_lite.text.rows import row_ids

_END = -1  # a code point that is appended to each text, so that no word spans two texts


def encode(strings, tokenizer):
    """Encodes string [batch] as int32 ragged [batch, (length)]; `tokenizer` returns the ids of spelled words."""
    texts = tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", errors="replace")
    ends = tf.fill([tf.size(texts), 1], _END)
    codes = tf.concat([tf.strings.unicode_decode(texts, "UTF-8"), ends], axis=1)
    is_real = codes.flat_values != _END
    begins = tf.boolean_mask(_begins(codes.flat_values), is_real)  # bool [characters]
    rows = tf.boolean_mask(tf.boolean_mask(row_ids(codes), is_real), begins)  # int64 [words]
    codes_of_bytes = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
    codes_of_bytes = tf.cast(codes_of_bytes, tf.int32)  # [bytes]
    is_first = tf.bitwise.bitwise_and(codes_of_bytes, 0xC0) != 0x80  # whether a byte is the first byte of its character
    begins = is_first & tf.gather(begins, tf.cumsum(tf.cast(is_first, tf.int32)) - 1)
    spelled = tf.gather(tf.constant([ord(character) for character in CHARACTERS]), codes_of_bytes)
    words = tf.RaggedTensor.from_value_rowids(spelled, tf.cumsum(tf.cast(begins, tf.int64)) - 1)
    ids = tokenizer.tokenize(tf.strings.unicode_encode(words, "UTF-8"))  # the ids of each word, ragged [words, (ids)]
    return tf.RaggedTensor.from_value_rowids(ids, rows, tf.size(texts, tf.int64)).merge_dims(1, 2)


def _begins(codes):
    """Returns bool [n], True where a word begins. `codes` is int32 [n], the code points of texts that end in `_END`."""
    spaces = pre_tokenization.is_in(codes, pre_tokenization.SPACES)
    letters, numbers = (pre_tokenization.is_in(codes, pre_tokenization.ranges(name)) for name in "LN")
    kinds = tf.where(codes == _END, 4, tf.where(spaces, 3, tf.where(numbers, 2, tf.where(letters, 1, 0))))
    is_new = kinds != _shifted(kinds, 1, 4)
    # The last of several white space characters begins a new word; if it is a space, the following word joins it.
    is_last = spaces & (_shifted(kinds, -1, 4) < 3)
    begins = tf.where(_shifted(codes, 1, _END) == ord(" "), spaces & is_new, is_new) | is_last
    # The ending of a contraction, such as 's, is a separate word if its apostrophe begins a word.
    following = [_shifted(codes, -1, _END), _shifted(codes, -2, _END)]
    apostrophes = begins & (codes == ord("'"))
    for ending in CONTRACTIONS:
        is_contraction = apostrophes
        for letter, code in zip(ending, following, strict=False):
            is_contraction &= code == ord(letter)
        begins = (begins & ~_shifted(is_contraction, 1, False)) | _shifted(is_contraction, 1 + len(ending), False)
    return begins


def _shifted(values, by, fill):
    """Shifts the values of a tensor [n] to the right by `by` places, or to the left if `by` is negative."""
    fill = tf.fill(tf.minimum([abs(by)], tf.size(values)), tf.constant(fill, values.dtype))
    return tf.concat([fill, values[:-by]] if by > 0 else [values[-by:], fill], 0)
