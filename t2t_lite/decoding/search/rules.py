"""Rules of a search: stop strings, banned texts, and penalties for repetition.

A piece may extend beyond the end of a text, and different pieces may spell the same text. Therefore stop strings and
banned texts are matched as texts, not as sequences of ids as in Hugging Face's `bad_words_ids`. Each hypothesis has a
state, which says how much of these texts it has matched. A table has the next state for every state and piece (Aho and
Corasick 1975).
"""

import collections
import functools

import numpy as np
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.layers.checks import shape_of
from t2t_lite.text.vocabulary import PAD_ID

CONTINUES = 1  # the start state's number when the output continues a given text


class Rule:
    """Constrains the outputs of a search.

    Each hypothesis has a state, which is stored by the search. This base class allows all outputs and has no states. R
    is the number of rows of a search, and K the number of hypotheses per row.
    """

    changes_scores = True  # whether calling the rule changes scores

    def first(self, rows, count):
        """Returns the states of outputs before their first piece, int64 [R, K], or ().

        Args:
            rows: int [R], the sentence of each row.
            count: Python int, K.
        """
        return ()

    def __call__(self, scores, states, outputs, position, rows):
        """Returns the changed scores.

        Args:
            scores: float32 [R*K, V], logits or log-probabilities.
            states: states of the outputs so far, int64 [R, K], or ().
            outputs: int64 [R, K, T], 0 from `position` on.
            position: int32 [], the number of ids in each output.
            rows: see `first`.
        """
        return scores

    def next(self, states, ids):
        """Returns the next states after adding ids; states and ids are int64 of equal shapes."""
        return states

    def ended(self, states):
        """Returns whether outputs end, a bool tensor of the states' shape; None if this rule never ends an output."""


class TextRule(Rule):
    """Base of the rules that match texts.

    Args:
        table: int32 [S, V], the result of `text_table`.
        states: int32 [B], the first state of each sentence's output; None means 0 for all sentences.
    """

    def __init__(self, table, states=None):
        self.table, self.states = table, states

    def first(self, rows, count):
        """See `Rule.first`."""
        shape = (shape_of(rows)[0], count)
        if self.states is None:
            return tf.zeros(shape, tf.int64)
        return tf.broadcast_to(tf.cast(tf.gather(self.states, rows), tf.int64)[:, None], shape)

    def next(self, states, ids):
        """See `Rule.next`."""
        return tf.cast(tf.gather_nd(self.table, tf.stack([states, ids], -1)), tf.int64)


class StopStrings(TextRule):
    """Ends an output as soon as its text contains a stop string."""

    changes_scores = False

    def ended(self, states):
        """See `Rule.ended`."""
        return states == tf.shape(self.table, tf.int64)[0] - 1


class BannedTexts(TextRule):
    """Gives the score -inf to each piece that would complete a banned text in the output."""

    def __init__(self, table, states=None):
        super().__init__(table, states)
        self._completes = tf.equal(table, tf.shape(table)[0] - 1)  # bool, which a GPU can gather

    def __call__(self, scores, states, outputs, position, rows):
        """See `Rule`."""
        return tf.where(tf.gather(self._completes, tf.reshape(states, (-1,))), -float("inf"), scores)


class Repetition(Rule):
    """The rules of Hugging Face's NoRepeatNGramLogitsProcessor and RepetitionPenaltyLogitsProcessor.

    Both rules read the prompt, if any, and the output so far. First the penalty is applied to each id that has
    occurred: a positive score is divided by the penalty, and a negative score is multiplied by it. Then every id that
    would repeat an n-gram gets the score -inf.

    Args:
        ngram_size: Python int n, or 0 to allow repeated n-grams.
        penalty: float or float32 scalar tensor > 0 (Keskar et al. 2019, "CTRL", section 4.1), or None.
        prompts: int32 [B, P], in which each row ends in 0s, or None.
    """

    def __init__(self, ngram_size, penalty, prompts=None):
        self.ngram_size = ngram_size
        self.penalty = penalty
        # Padding for n - 1 ids, so that windows never begin before the first column.
        self._before = max(ngram_size - 1, 0)
        self.prompts = None
        if prompts is not None:
            prompts = tf.pad(_flushed_right(prompts), ((0, 0), (self._before, 0)))
            self.prompts = tf.cast(prompts, tf.int64)  # the dtype of outputs

    def __call__(self, scores, states, outputs, position, rows):
        """See `Rule`."""
        history, known = self._history(outputs, position, rows)
        width = tf.shape(history)[1]
        at = tf.cast(tf.range(tf.shape(history)[0]), tf.int64)
        at = tf.broadcast_to(at[:, None], tf.shape(history))
        at = tf.stack([at, history], -1)  # [R*K, W, 2], the index of each earlier id in the scores
        if self.penalty is not None:
            history_scores = tf.gather(scores, history, axis=1, batch_dims=1)
            changed = tf.where(history_scores < 0, history_scores * self.penalty, history_scores / self.penalty)
            scores = tf.tensor_scatter_nd_update(scores, at, tf.where(history == PAD_ID, history_scores, changed))
        if self.ngram_size:
            first = self.ngram_size - 1
            repeats = history[:, first:] != PAD_ID  # whether the last n - 1 ids precede each id
            for back in range(1, self.ngram_size):
                last = tf.gather(history, known - back, axis=1)[:, None]
                repeats &= history[:, first - back : width - back] == last
            scores = tf.tensor_scatter_nd_min(scores, at[:, first:], tf.where(repeats, -float("inf"), float("inf")))
        return scores

    def _history(self, outputs, position, rows):
        """Returns the ids so far, int64 [R*K, W], padded with 0s on both sides, and the column after them, int32 []."""
        if self.prompts is None:
            nothing = tf.zeros((*tf.unstack(tf.shape(outputs)[:2]), self._before), outputs.dtype)
            outputs = tf.concat([nothing, outputs], -1)  # `tf.pad` does not support int64 on GPUs
            before = self._before
        else:
            prompts = tf.repeat(tf.gather(self.prompts, rows)[:, None], outputs.shape[1], axis=1)
            outputs = tf.concat([prompts, outputs], -1)
            before = tf.shape(self.prompts)[1]
        return tf.reshape(outputs, (-1, tf.shape(outputs)[2])), before + position


def _flushed_right(ids):
    """Moves the padding, the 0s at the end of each row of [B, P], to the row's beginning."""
    width = tf.shape(ids)[1]
    length = tf.reduce_sum(tf.cast(ids != PAD_ID, tf.int32), 1, keepdims=True)
    at = tf.range(width) - (width - length)
    return tf.where(at < 0, PAD_ID, tf.gather(ids, tf.maximum(at, 0), axis=1, batch_dims=1))


def change(rules, scores, states, outputs, position, rows):
    """Applies all rules to scores, one after the other: see `Rule`. `states` has the states of each rule."""
    for rule, state in zip(rules, states, strict=True):
        scores = rule(scores, state, outputs, position, rows)
    return scores


def advance(rules, states, ids, end_id):
    """Returns whether ids, int64 [R, K], end outputs (by a rule, or because they are `end_id`), and the next states."""
    states = tuple(rule.next(state, ids) for rule, state in zip(rules, states, strict=True))
    ended = [rule.ended(state) for rule, state in zip(rules, states, strict=True)]
    return functools.reduce(tf.logical_or, [one for one in ended if one is not None], ids == end_id), states


def rules_of(options, stops=None, banned=None, states=None, repetition_penalty=None, prompts=None):
    """Returns the `Rule`s that a search needs, in the order in which they change scores.

    Args:
        options: SearchOptions; only `no_repeat_ngram_size` is used.
        stops, banned: tables of `text_tables`, which are tensors or arrays.
        states: int32 [B], see `TextRule`.
        repetition_penalty: float or float32 scalar tensor, or None for no penalty.
        prompts: int32 [B, P], see `Repetition`.
    """
    rules = []
    if options.no_repeat_ngram_size or repetition_penalty is not None:
        rules.append(Repetition(options.no_repeat_ngram_size, repetition_penalty, prompts))
    if banned is not None:
        rules.append(BannedTexts(banned, states))
    return [*rules, *([] if stops is None else [StopStrings(stops, states)])]


def text_tables(encoder, options):
    """Returns {"stops": table, "banned": table} for `rules_of`, omitting a table without texts.

    There is no table of stop strings if the text of a piece depends on its neighbors.

    Args:
        encoder: TextEncoder of the outputs.
        options: SearchOptions.

    Raises:
        UserError: texts are banned, but the text of a piece depends on its neighbors.
    """
    tables = {}
    if options.stop and encoder.piece_bytes is not None:
        tables["stops"] = text_table(encoder, options.stop)
    if options.banned_texts:
        if encoder.piece_bytes is None:
            raise UserError(
                f"banned_texts: the vocabulary is a {type(encoder).__name__}, in which the text of a piece depends on "
                "its neighbors. Expected SentencePiece, byte-level BPE, bytes or words. Remove banned_texts."
            )
        tables["banned"] = text_table(encoder, options.banned_texts, space_begins=True)
    return tables


@functools.lru_cache(maxsize=12)
def text_table(encoder, texts, space_begins=False):
    """Returns the table of next states that matches texts.

    Args:
        encoder: TextEncoder of the outputs.
        texts: tuple of non-empty str.
        space_begins: bool, whether a space at the beginning of a text also matches the beginning of an output.

    Returns:
        int32 [S, V]. An output that continues a given text begins in state `CONTINUES`. Any other output begins in
        state 0, in which a space before the first word is not part of the text. An output in state S - 1 contains one
        of the texts.
    """
    states = automaton([text.encode("utf-8", "surrogatepass") for text in texts])
    table = read_pieces(states, range(len(states)), encoder.piece_bytes)
    bare = first_pieces(encoder)
    start = states[0, ord(" ")] if space_begins else 0
    first = read_pieces(states, [0 if start == len(states) - 1 else start], bare)
    first[:, [not piece for piece in bare]] = -1  # the piece has no text, so the text has not begun
    return np.concatenate([first, table]) + CONTINUES


@functools.lru_cache(maxsize=8)  # cached: decoding all pieces is slow, and stop strings vary
def first_pieces(encoder):
    """Returns a list with the bytes of each piece as they are at the beginning of a text."""
    bare = list(encoder.piece_bytes)
    for i, piece in enumerate(bare):
        if piece.startswith(b" ") and not (text := encoder.decode([i])).startswith(" "):
            bare[i] = text.encode("utf-8", "surrogatepass")
    return bare


def automaton(strings):
    """Returns the next state for every state and byte, int32 [S, 256]; the last state accepts and is final."""
    # A string that contains another string is redundant, since the other string is matched first or at the same byte.
    strings = [one for one in strings if not any(other in one and other != one for other in strings)]
    # The states are the beginnings of the strings, the shortest first.
    beginnings = {string[:length] for string in strings for length in range(len(string))}
    states = sorted(beginnings, key=lambda state: (len(state), state))
    numbers = {state: number for number, state in enumerate(states)} | dict.fromkeys(strings, len(states))
    children = collections.defaultdict(list)
    for longer in filter(None, numbers):
        children[longer[:-1]].append(longer)
    table = np.full((len(states) + 1, 256), len(states), "int32")
    table[0] = 0
    for number, state in enumerate(states):
        if state:  # the row of its longest proper suffix that is a state, which is shorter, is already known
            suffixes = (state[begin:] for begin in range(1, len(state) + 1))
            table[number] = table[next(numbers[suffix] for suffix in suffixes if suffix in numbers)]
        for longer in children[state]:
            table[number, longer[-1]] = numbers[longer]
    return table


def read_pieces(automaton, states, pieces):
    """Returns the states to which the pieces (bytes) lead from each of the given states, int32 [states, V]."""
    lengths = np.array([len(piece) for piece in pieces])
    table = np.repeat(np.array(states, "int32")[:, None], len(pieces), axis=1)
    for at in range(lengths.max(initial=0)):
        longer = np.flatnonzero(lengths > at)
        table[:, longer] = automaton[table[:, longer], [pieces[i][at] for i in longer]]
    return table


def before_stop(text, stops):
    """Cuts a text before the first occurrence of any of the stop strings."""
    return text[: min((text.find(stop) for stop in stops if stop in text), default=len(text))]
