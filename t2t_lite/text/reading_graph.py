"""Texts -> ids inside the graph of an export; any bytes: invalid UTF-8 becomes U+FFFD, and long texts are truncated."""

import functools
import typing

import tensorflow as tf

from t2t_lite.text.beginnings import longest_text
from t2t_lite.text.pairs import kept_lengths
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID
from t2t_lite.text.words_graph import SPACE

BLANK = SPACE + "*"
TEXTS = tf.TensorSpec([None], tf.string, name="inputs")
_LONGEST = 512


class Sources(typing.NamedTuple):
    """Texts encoded for the model.

    Attributes:
        ids: int32 [batch, width], each row ends in EOS, then 0.
        lengths: int32 [batch], ids without EOS.
        is_blank: bool [batch], only whitespace, or without pieces.
        truncated: bool [batch], truncated to the longest length.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    is_blank: tf.Tensor
    truncated: tf.Tensor


def valid(texts):
    """string, any bytes -> the same in UTF-8, with U+FFFD in place of what is none."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")


def longest_input(given, most):
    """Returns the longest input of an export in ids: what is given, or for None 512, but at most `most`."""
    return min(_LONGEST, most) if given is None else given


def reader(encoder, longest):
    """Returns a tf.function: string [batch] -> `Sources`; blank texts are encoded like any other.

    One per vocabulary and export, since each has the vocabulary's whole file as a constant.

    Args:
        encoder: TextEncoder.
        longest: int, of ids with EOS.
    """
    return tf.function(functools.partial(_read, encoder, longest - 1), input_signature=[TEXTS], autograph=False)


def beginnings(texts, longest, ends=False, strips=True):
    """Cuts texts that are far longer than what is read, since encoding megabytes takes many seconds.

    Args:
        texts: string [batch], UTF-8.
        longest: int, how many ids are read of each.
        ends: bool, whether the last ids are read.
        strips: bool, whether the spaces before such a text are left out, which most vocabularies have no ids for.

    Returns:
        (string [batch], bool [batch]: whether each was cut).
    """
    most = longest_text(longest)  # bytes
    is_long = tf.strings.length(texts) > most
    if strips and not ends:
        texts = tf.where(is_long, tf.strings.regex_replace(texts, f"^{SPACE}+", "", replace_global=False), texts)
    lengths = tf.strings.length(texts)
    start = tf.maximum(lengths - most, 0) if ends else tf.zeros_like(lengths)
    cut = tf.strings.substr(texts, start, tf.fill(tf.shape(texts), most))
    # What is left of a character at the cut goes.
    return tf.strings.unicode_transcode(cut, "UTF-8", "UTF-8", errors="ignore"), is_long


def row_reader(encode, longest, num_texts):
    """Returns a function: `num_texts` times string [batch] -> (ids int32 [batch, width], truncated bool [batch]).

    A row of ids has one text or two, each with EOS at its end, then 0. Of two texts the longer is cut first, as
    `cut_texts` does.

    Args:
        encode: result of `encoding`.
        longest: int, of a row's ids with EOS.
        num_texts: 1 or 2.
    """

    def read(*texts):
        rows = tf.size(texts[0])
        cut, is_cut = beginnings(valid(tf.concat(texts, 0)), longest)
        pieces = encode(cut)
        lengths = tf.cast(pieces.row_lengths(), tf.int32)
        first, second = lengths[:rows], lengths[rows:] if num_texts > 1 else tf.zeros([rows], tf.int32)
        kept = kept_lengths(first, second, longest - num_texts)
        each = tf.concat(kept[:num_texts], 0)
        sides = tf.RaggedTensor.from_tensor(with_eos(pieces, each), each + 1)
        ids = tf.concat([sides[at * rows : (at + 1) * rows] for at in range(num_texts)], 1)
        is_cut = tf.reduce_any(tf.reshape(is_cut, [num_texts, rows]), 0)
        return ids.to_tensor(), is_cut | (first + second > tf.add_n(kept))

    return read


def as_many(**texts):
    """{name: string [n]} -> list of these, after checking in the graph that there are as many of each."""
    (first, expected), *others = texts.items()
    checks = [
        tf.debugging.assert_equal(
            tf.shape(expected), tf.shape(found),
            f"as many {name} as {first} are expected, one for each; the numbers differ", summarize=1,
        )
        for name, found in others
    ]  # fmt: skip
    with tf.control_dependencies(checks):
        return [*map(tf.identity, texts.values())]


def encoding(encoder):
    """Returns a tf.function: string [batch], any bytes -> int32 ragged [batch, (length)]. See `reader`."""

    def encode(texts):
        return encoder.tf_encode(valid(texts))

    return tf.function(encode, input_signature=[TEXTS], autograph=False)


def _read(encoder, longest, texts):
    texts, is_cut = beginnings(valid(texts), longest)
    pieces = encoder.tf_encode(texts)  # ragged [batch, (length)]
    lengths = tf.cast(pieces.row_lengths(), tf.int32)
    is_blank = tf.strings.regex_full_match(texts, BLANK) | (lengths == 0)
    kept = tf.minimum(lengths, longest)
    return Sources(with_eos(pieces, kept), kept, is_blank, is_cut | (lengths > longest))


def blanked(sources):
    """Returns Sources in which blank texts are only EOS."""
    is_blank = sources.is_blank
    is_first = tf.range(tf.shape(sources.ids)[1]) == 0
    return Sources(
        ids=tf.where(is_blank[:, None], tf.where(is_first, EOS_ID, PAD_ID), sources.ids),
        lengths=tf.where(is_blank, 0, sources.lengths),
        is_blank=is_blank,
        truncated=sources.truncated & ~is_blank,
    )


def with_eos(pieces, kept):
    """Ragged int32 [batch, (length)], int32 [batch] -> int32 [batch, width]: the first `kept` of a row, EOS, then 0."""
    width = tf.reduce_max(tf.concat([kept, [0]], 0)) + 1  # at least 1, even in an empty batch
    ids = pieces[:, :width].to_tensor(0, shape=[None, None])
    ids = tf.pad(ids, [[0, 0], [0, width - tf.shape(ids)[1]]])
    position = tf.range(width)[None]
    ids = tf.where(position < kept[:, None], ids, 0)
    return tf.where(position == kept[:, None], EOS_ID, ids)
