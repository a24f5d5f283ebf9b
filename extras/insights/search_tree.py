"""Records all continuations that a beam search considers, as a tree."""

import dataclasses
import typing

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.search.adapters import refuse, searches
from t2t_lite.decoding.search.beam_search import BeamSearch, beam_search


@dataclasses.dataclass
class Node:
    """A node of the tree: a continuation that a beam search considered.

    Attributes:
        parent: int, the index of the node that this node continues, or -1 for the root, where the search starts.
        step: int, the number of ids from the root to this node.
        id: int, the last id, or 0 for the root.
        total: float, log-probability (nats) of all ids from the root.
        log_prob: float, log-probability (nats) of the last id, given the previous ids.
        score: float, `total` / length penalty.
        kept: bool, whether the node stayed in the beam, or is a hypothesis that the search returns.
        finished: bool, whether the continuation ends and was allowed to end (see `ends` of `beam_search`).
    """

    parent: int
    step: int
    id: int
    total: float
    log_prob: float
    score: float
    kept: bool
    finished: bool


class Record(typing.NamedTuple):
    """The 2K best continuations in each step of a search with K beams, best first; all tensors are [steps, 2K].

    Attributes:
        totals, scores: float32, see `Node`; -inf if there is no continuation.
        parents: int32, the index of the live hypothesis that is continued.
        ids: int32, the last id of the continuation.
        ends, finished: bool, whether the continuation ends an output, and whether it was allowed to end.
    """

    totals: tf.Tensor
    scores: tf.Tensor
    parents: tf.Tensor
    ids: tf.Tensor
    ends: tf.Tensor
    finished: tf.Tensor


def trace(searcher, source, options, prefix=()):
    """Runs a beam search for one source, and returns the tree of continuations that the search considers.

    Args:
        searcher: Searcher.
        source: list of ids, see `Searcher.search`.
        options: SearchOptions, without sampling.
        prefix: list of ids, see `Searcher.search`.

    Returns:
        (list of `Node`, list of int: the indices of the hypotheses that `Searcher.search` returns).

    Raises:
        UserError: the model uses its own search.
    """
    if searches(searcher.model):
        refuse(searcher.model, "a search tree")
    hypotheses, record = searcher.search_by(recorded_beam_search, source, options, prefix)
    return tree(record, [one.all_ids for one in hypotheses])


def recorded_beam_search(*arguments, **settings):
    """Runs `beam_search` without a `max_length` for one sentence, and returns (SearchResult, `Record`)."""
    return beam_search(*arguments, search_class=_RecordingSearch, **settings)


class _RecordingSearch(BeamSearch):
    """A beam search for one sentence that records each step."""

    def run(self, cache):
        room = tf.zeros((1, self.max_length, 2 * self.beam_size), tf.int32)
        nothing = tf.cast(room, tf.float32) - float("inf")

        def body(state, record):
            here = tf.range(self.max_length)[:, None] == state.position
            state = self.step(state)
            return state, Record(*(tf.where(here, new, old) for new, old in zip(self.latest, record, strict=True)))

        start = Record(nothing, nothing, room, room, tf.cast(room, tf.bool), tf.cast(room, tf.bool))
        state, record = cache.run(self, body, self.start(cache.first), start)
        return self.result(state), Record(*(rows[0] for rows in record))

    def continuations(self, logits, state):
        totals, parents, ids = super().continuations(logits, state)
        scores = totals / self.penalty(state.position + 1, self.alpha_of(state.rows))
        ends, _ = self.ending(state, parents, ids)
        numbers = (tf.cast(each, tf.int32) for each in (parents, ids))
        self.latest = Record(totals, scores, *numbers, ends, self.finishes(totals, ends))  # all are [B, 2K]
        return totals, parents, ids


def tree(record, hypotheses):
    """Returns the nodes of a search and the indices of its hypotheses.

    Args:
        record: `Record`.
        hypotheses: list of lists of int, the ids of each hypothesis, including the id that ends it.

    Returns:
        (list of `Node`, in which each node comes after its parent; list of int, the index of each hypothesis's node).
    """
    nodes, live, places = [Node(-1, 0, 0, 0.0, 0.0, 0.0, True, False)], [0], {}
    for step, row in enumerate(zip(*(values.numpy() for values in record), strict=True), 1):
        alive = []
        for total, score, parent, number, ends, finished in zip(*(values.tolist() for values in row), strict=True):
            if total == -np.inf:
                continue
            at, before = len(nodes), live[parent]
            is_kept = not ends and len(alive) < len(row[0]) // 2
            alive += [at] * is_kept
            nodes.append(Node(before, step, number, total, total - nodes[before].total, score, is_kept, finished))
            places[before, number] = at
        live = alive
    ends_at = []
    for ids in hypotheses:
        at = 0
        for number in ids:
            at = places[at, number]
        nodes[at].kept = True
        ends_at.append(at)
    return nodes, ends_at
