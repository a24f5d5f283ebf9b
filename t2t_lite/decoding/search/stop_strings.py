"""Ends outputs whose text contains a given string, by an automaton that reads pieces (Aho and Corasick 1975).

A piece may hold the end of a string and more, and different pieces may spell the same string. Each hypothesis therefore
keeps a state, which says how far into which string its text is, and a table has the next state for every piece.
"""

import collections
import functools

import numpy as np
import tensorflow as tf

CONTINUES = 1  # the state in which the output of a row begins that continues a text


@functools.lru_cache(maxsize=8)
def stop_table(encoder, stops):
    """Returns the table of next states, or None if a piece's text depends on the pieces around it.

    Args:
        encoder: TextEncoder of the outputs.
        stops: tuple of str, none empty.

    Returns:
        int32 [S, V]. An output begins in state 0, in which a space before its first word is no part of its text; or, if
        it continues a text, in state `CONTINUES`. It contains one of the strings when it reaches state S - 1.
    """
    pieces = encoder.piece_bytes
    if pieces is None:
        return None
    states = automaton([stop.encode("utf-8", "surrogatepass") for stop in stops])
    table = read_pieces(states, range(len(states)), pieces)
    bare = first_pieces(encoder)
    first = read_pieces(states, [0], bare)
    first[:, [not piece for piece in bare]] = -1  # there is no word yet
    return np.concatenate([first, table]) + CONTINUES


@functools.lru_cache(maxsize=8)  # it decodes every piece that begins with a space, and stop strings change often
def first_pieces(encoder):
    """Returns the list of what pieces are, bytes, where a text begins with them."""
    bare = list(encoder.piece_bytes)
    for i, piece in enumerate(bare):
        if piece.startswith(b" ") and not (text := encoder.decode([i])).startswith(" "):
            bare[i] = text.encode("utf-8", "surrogatepass")
    return bare


def first_states(states, shape):
    """int32 [B], or None for state 0 -> int64 of a shape [B, K]."""
    if states is None:
        return tf.zeros(shape, tf.int64)
    return tf.broadcast_to(tf.cast(states, tf.int64)[:, None], shape)


def next_states(table, states, ids):
    """int32 [S, V], int64 states and ids of equal shapes -> the next states, and whether each has ended: bool."""
    states = tf.cast(tf.gather_nd(table, tf.stack([states, ids], -1)), tf.int64)
    return states, states == tf.shape(table, tf.int64)[0] - 1


def before_stop(text, stops):
    """Returns a text up to the first of the strings that it contains."""
    return text[: min((text.find(stop) for stop in stops if stop in text), default=len(text))]


def automaton(strings):
    """Returns the next state for every state and byte, int32 [S, 256]; the last state, in which it stays, accepts."""
    # A text with a string that holds another one holds the other, too, and is to be known by it at its end.
    strings = [one for one in strings if not any(other in one and other != one for other in strings)]
    children, ends = [{}], set()
    for string in strings:
        state = 0
        for byte in string:
            if byte not in children[state]:
                children[state][byte] = len(children)
                children.append({})
            state = children[state][byte]
        ends.add(state)
    accepts = len(children)
    table = np.full((accepts + 1, 256), accepts, "int32")
    # Breadth first: `fallback` is the longest proper suffix that is a state, which has its row already.
    waiting = collections.deque([(0, None)])
    while waiting:
        state, fallback = waiting.popleft()
        table[state] = 0 if fallback is None else table[fallback]
        for byte, child in children[state].items():
            waiting.append((child, table[state, byte]))
            table[state, byte] = child
        if state in ends:
            table[state] = accepts
    for state in sorted(ends):  # to reach the end of a string is to accept
        table[table == state] = accepts
    return table


def read_pieces(automaton, states, pieces):
    """Returns the state after every piece, bytes, from each of some states, int32 [states, V]."""
    lengths = np.array([len(piece) for piece in pieces])
    table = np.repeat(np.array(states, "int32")[:, None], len(pieces), axis=1)
    for at in range(lengths.max(initial=0)):
        longer = np.flatnonzero(lengths > at)
        table[:, longer] = automaton[table[:, longer], [pieces[i][at] for i in longer]]
    return table
