"""Encodes texts inside the graph of an export; invalid UTF-8 becomes U+FFFD, and long texts are truncated."""

from __future__ import annotations

import functools
import typing

import tensorflow as tf

from t2t_lite.text.encoder_parts import SPACE
from t2t_lite.text.rows import kept_lengths, longest_text
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID

BLANK = SPACE + "*"
_AROUND = rf"\A{SPACE}+|{SPACE}+\z"
_LONGEST = 512


class Sources(typing.NamedTuple):
    """A batch of source texts, encoded for the model.

    Attributes:
        ids: int32 [batch, width]; each row ends in EOS and is padded with 0.
        lengths: int32 [batch], numbers of ids without EOS.
        is_blank: bool [batch], whether a text contains only whitespace or has no ids.
        truncated: bool [batch], whether a text was truncated to the longest length.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    is_blank: tf.Tensor
    truncated: tf.Tensor


def texts_spec():
    """Returns the signature for a batch of texts, a `tf.TensorSpec`."""
    return tf.TensorSpec([None], tf.string, name="inputs")


def valid(texts):
    """Replaces invalid bytes in strings with U+FFFD, so that the strings are valid UTF-8."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")


def longest_input(longest, most):
    """Returns an export's maximum number of input ids: `longest`; if it is None, the smaller of 512 and `most`."""
    return min(_LONGEST, most) if longest is None else longest


def reader(encoder, longest, strips=False):
    """Returns a tf.function that encodes string [batch] as `Sources`; blank texts are encoded like any other text.

    Create one function per vocabulary and export, since each contains the whole vocabulary file as a constant.

    Args:
        encoder: TextEncoder.
        longest: int, the maximum number of ids, including EOS.
        strips: bool, whether to drop the spaces around texts.
    """
    read = functools.partial(_read, encoder, longest - 1, strips)
    return tf.function(read, input_signature=[texts_spec()], autograph=False)


def beginnings(texts, longest, ends=False, strips=True):
    """Truncates texts that are far longer than needed, because encoding megabytes takes many seconds.

    Args:
        texts: string [batch], UTF-8.
        longest: int, number of ids needed per text.
        ends: bool, whether the last ids are needed instead of the first.
        strips: bool, whether to drop the leading spaces of a long text; most vocabularies have no ids for them.

    Returns:
        (string [batch], bool [batch]: whether each text was truncated).
    """
    most = longest_text(longest)  # bytes
    is_long = tf.strings.length(texts) > most
    if strips and not ends:
        texts = tf.where(is_long, tf.strings.regex_replace(texts, f"^{SPACE}+", "", replace_global=False), texts)
    lengths = tf.strings.length(texts)
    start = tf.maximum(lengths - most, 0) if ends else tf.zeros_like(lengths)
    parts = tf.strings.substr(texts, start, tf.fill(tf.shape(texts), most))
    # Drops an incomplete character where the text was cut.
    return tf.strings.unicode_transcode(parts, "UTF-8", "UTF-8", errors="ignore"), is_long


def row_reader(encode, longest, num_texts):
    """Returns a function that encodes one or two batches of texts as (int32 [batch, width], truncated bool [batch]).

    A row of ids has one or two texts, each followed by EOS, and is padded with 0. The longer of two texts is truncated
    first, as in `cut_texts`.

    Args:
        encode: the result of `encoding`.
        longest: int, the maximum length of a row, in ids, including EOS.
        num_texts: 1 or 2, the number of texts per row.
    """

    def read(*texts):
        rows = tf.size(texts[0])
        cut, is_cut = beginnings(valid(tf.concat(texts, 0)), longest)
        pieces = encode(cut)
        lengths = tf.cast(pieces.row_lengths(), tf.int32)
        first, second = lengths[:rows], lengths[rows:] if num_texts > 1 else tf.zeros([rows], tf.int32)
        lengths_kept = kept_lengths(first, second, longest - num_texts)
        row_lengths = tf.concat(lengths_kept[:num_texts], 0)
        sides = tf.RaggedTensor.from_tensor(with_eos(pieces, row_lengths), row_lengths + 1)
        ids = tf.concat([sides[at * rows : (at + 1) * rows] for at in range(num_texts)], 1)
        is_cut = tf.reduce_any(tf.reshape(is_cut, [num_texts, rows]), 0)
        return ids.to_tensor(), is_cut | (first + second > tf.add_n(lengths_kept))

    return read


def as_many(**texts):
    """Returns the tensors of {name: string [n]} as a list, and asserts in the graph that they have the same length."""
    (first, expected), *others = texts.items()
    checks = [
        tf.debugging.assert_equal(
            tf.shape(expected), tf.shape(values),
            f"the numbers of {first} and {name} differ. Expected as many {name} as {first}", summarize=1,
        )
        for name, values in others
    ]  # fmt: skip
    with tf.control_dependencies(checks):
        return [*map(tf.identity, texts.values())]


def encoding(encoder):
    """Returns a tf.function that encodes string [batch], any bytes, as int32 ragged [batch, (length)]. See `reader`."""

    def encode(texts):
        return encoder.tf_encode(valid(texts))

    return tf.function(encode, input_signature=[texts_spec()], autograph=False)


def _read(encoder, longest, strips, texts):
    texts = valid(texts)
    texts, is_cut = beginnings(tf.strings.regex_replace(texts, _AROUND, "") if strips else texts, longest)
    pieces = encoder.tf_encode(texts)  # the ids, ragged [batch, (length)]
    lengths = tf.cast(pieces.row_lengths(), tf.int32)
    is_blank = tf.strings.regex_full_match(texts, BLANK) | (lengths == 0)
    num_ids = tf.minimum(lengths, longest)
    return Sources(with_eos(pieces, num_ids), num_ids, is_blank, is_cut | (lengths > longest))


def blanked(sources):
    """Returns `Sources` in which the ids of a blank text consist only of EOS."""
    is_blank = sources.is_blank
    is_first = tf.range(tf.shape(sources.ids)[1]) == 0
    return Sources(
        ids=tf.where(is_blank[:, None], tf.where(is_first, EOS_ID, PAD_ID), sources.ids),
        lengths=tf.where(is_blank, 0, sources.lengths), is_blank=is_blank, truncated=sources.truncated & ~is_blank,
    )  # fmt: skip


def with_eos(pieces, lengths):
    """Truncates ragged int32 rows to the given lengths; returns int32 [batch, width] with EOS and padding of 0."""
    width = tf.reduce_max(tf.concat([lengths, [0]], 0)) + 1  # the width is at least 1, even in an empty batch
    ids = pieces[:, :width].to_tensor(0, shape=[None, None])
    ids = tf.pad(ids, [[0, 0], [0, width - tf.shape(ids)[1]]])
    position = tf.range(width)[None]
    ids = tf.where(position < lengths[:, None], ids, 0)
    return tf.where(position == lengths[:, None], EOS_ID, ids)
