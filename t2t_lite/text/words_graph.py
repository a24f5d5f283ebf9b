"""Texts -> words inside a TensorFlow graph, as Python's `str.split` splits them."""

SPACE = r"[\s\v\x1c-\x1f\x{85}\p{Z}]"  # whitespace as defined by `str.isspace`, for RE2


def split_words(texts):
    """string [batch], UTF-8 -> ragged [batch, (words)], the parts between whitespace."""
    import tensorflow as tf

    return tf.strings.split(tf.strings.regex_replace(texts, f"{SPACE}+", " "))
