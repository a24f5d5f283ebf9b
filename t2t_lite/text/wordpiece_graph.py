"""WordPiece inside a TensorFlow graph, for exports: the same ids as `WordPieceEncoder`.

It uses operations of TensorFlow and tensorflow-text, which TensorFlow Serving includes. tensorflow-text's own
`FastBertNormalizer` is not used: it folds cases and composes, so that plain German already gets other ids than BERT's.
"""

import tensorflow as tf
import tensorflow_text

from t2t_lite.text.bert_normalization import normalization
from t2t_lite.text.vocabulary import UNK_ID


def encode(strings, tokens, lower, longest_word):
    """string [batch] -> int32 ragged [batch, (length)].

    Args:
        strings: the texts.
        tokens: list of str by id.
        lower: as of `split`.
        longest_word: characters; longer words are unknown.
    """
    words = split(strings, lower)
    pieces = tensorflow_text.FastWordpieceTokenizer(
        tokens,
        token_out_type=tf.int32,
        unknown_token=tokens[UNK_ID],
        no_pretokenization=True,
        max_bytes_per_word=4 * longest_word,
        support_detokenization=False,
    )
    is_long = tf.strings.length(words.flat_values, unit="UTF8_CHAR") > longest_word
    ids = pieces.tokenize(tf.where(is_long, tokens[UNK_ID], words.flat_values))  # ragged [words, (pieces)]
    return words.with_flat_values(ids).merge_dims(1, 2)


def split(strings, lower):
    """string [batch] -> string ragged [batch, (words)]: BERT's normalised words and punctuation marks.

    Args:
        strings: the texts.
        lower: whether text is converted to lower case and loses its accents.
    """
    changes = normalization(lower).changes()
    changed = tf.constant([*changes], tf.int32)
    replacements = tf.ragged.constant(
        [[*map(ord, text)] for text in changes.values()], tf.int32, row_splits_dtype=tf.int64
    )
    codes = tf.strings.unicode_decode(strings, "UTF-8")
    place = tf.minimum(tf.searchsorted(changed, codes.flat_values), tf.size(changed) - 1)
    is_changed = tf.gather(changed, place) == codes.flat_values
    # Code points, not strings: to join a string per character would pad every row to the longest one.
    either = tf.concat([replacements, tf.RaggedTensor.from_tensor(codes.flat_values[:, None])], 0)
    at = tf.where(is_changed, place, tf.size(changed) + tf.range(tf.size(place)))
    texts = tf.strings.unicode_encode(codes.with_values(tf.gather(either, at)).merge_dims(1, 2), "UTF-8")
    return tf.strings.split(texts)
