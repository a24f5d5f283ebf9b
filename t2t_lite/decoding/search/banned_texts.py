"""Keeps texts out of outputs: by an automaton that reads pieces, as for `stop_strings`.

A text has many spellings in pieces, and a piece may hold the end of one and more. What is banned is therefore not a
sequence of ids, as in Hugging Face's `bad_words_ids`, but the text: each hypothesis keeps a state, which says how far
into which text it is, and every piece is excluded with which it would contain one.
"""

import functools

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.search.stop_strings import CONTINUES, automaton, first_pieces, first_states, read_pieces
from t2t_lite.errors import UserError, shown


class BannedTexts:
    """The rule of a search.

    Args:
        table: int32 [S, V], of `banned_table`.
        states: int32 [B], in which outputs begin; None: 0.
    """

    def __init__(self, table, states=None):
        self._table, self._states = table, states
        self._completes = tf.equal(table, tf.shape(table)[0] - 1)  # bool, which a GPU gathers

    def first(self, shape):
        """Returns the states of outputs before their first piece, int64 of a shape [B, K]."""
        return first_states(self._states, shape)

    def __call__(self, scores, states):
        """Returns scores, float32 [B*K, V], with -inf for pieces that would complete a text; states: int64 [B, K]."""
        return tf.where(tf.gather(self._completes, tf.reshape(states, (-1,))), -float("inf"), scores)

    def next(self, states, ids):
        """Returns the states after ids, both int64 of equal shapes."""
        return tf.cast(tf.gather_nd(self._table, tf.stack([states, ids], -1)), tf.int64)


def banned_rule(table, states=None):
    """Returns a `BannedTexts`, or None if there is no table."""
    return None if table is None else BannedTexts(table, states)


@functools.lru_cache(maxsize=4)
def banned_table(encoder, texts):
    """Returns the table of next states.

    A space at the beginning of a text also stands for the beginning of an output.

    Args:
        encoder: TextEncoder of the outputs.
        texts: tuple of str, none empty.

    Returns:
        int32 [S, V]. An output begins in state 0; or, if it continues a text, in state `CONTINUES`. State S - 1 is that
        of one that contains one of the texts.

    Raises:
        UserError: a piece's text depends on the pieces around it.
    """
    pieces = encoder.piece_bytes
    if pieces is None:
        raise UserError(
            f"banned_texts: the vocabulary is a {type(encoder).__name__}, whose pieces are spelled by their neighbors. "
            "Expected one of SentencePiece's, byte-level BPE, bytes or words. Leave them out."
        )
    states = automaton([text.encode("utf-8", "surrogatepass") for text in texts])
    table = read_pieces(states, range(len(states)), pieces)
    bare = first_pieces(encoder)
    start = states[0, ord(" ")]
    first = read_pieces(states, [0 if start == len(states) - 1 else start], bare)
    first[:, [not piece for piece in bare]] = -1  # there is no word yet
    return np.concatenate([first, table]) + CONTINUES


def check_prefixes(encoder, prefixes, texts):
    """Raises `UserError` for a prefix, a list of ids, whose text contains a banned one: it could not be avoided."""
    for prefix in filter(None, prefixes):
        text = encoder.decode(prefix)
        for banned in texts:
            if banned in text or (banned != " " and f" {text}".startswith(banned)):
                raise UserError(
                    f"the prefix {shown(text)} contains {shown(banned)}, a banned text. Leave out one of both."
                )
