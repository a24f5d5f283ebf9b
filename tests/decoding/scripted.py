"""A small scripted model with the decoding interface, and a plain NumPy beam search to compare with.

The model's logits depend on the source and on every earlier output with its position, so that a wrong parent, a
stale cache or a neighbour's influence changes them. Half of the history is kept as a running state that the search
reorders, the other half as an ancestry cache that stays where it was written, as in the Transformer.
"""

import numpy as np
import pytest
import tensorflow as tf


class ScriptedModel:
    """logits = tanh(source + sum over earlier outputs of table[id] * wave[position]) @ readout + bias.

    A large `spread` makes it sure of itself; a negative `end_bias` makes outputs longer.
    """

    def __init__(self, vocab_size=11, size=8, spread=3.0, seed=0, longest=64, end_bias=0.0):
        draw = np.random.default_rng(seed).normal
        self.vocab_size = vocab_size
        self.table = draw(size=(vocab_size, size)).astype("float32")
        self.table[0] = 0
        self.wave = np.cos(np.outer(np.arange(longest), np.arange(1, size + 1))).astype("float32")
        self.readout = (spread * draw(size=(size, vocab_size))).astype("float32")
        self.bias = np.where(np.arange(vocab_size) == 1, end_bias, 0.0).astype("float32")

    def logits(self, source, outputs):
        """The oracle: one sentence without padding, a list of earlier outputs -> [V]."""
        state = sum(self.table[i] * self.wave[p] for p, i in enumerate(source))
        state = state + sum(self.table[i] * self.wave[p] for p, i in enumerate(outputs))
        return np.tanh(state) @ self.readout + self.bias

    def encode(self, inputs):
        return tf.einsum("bsd,sd->bd", tf.gather(self.table, inputs), tf.constant(self.wave)[: tf.shape(inputs)[1]])

    def init_cache(self, memory, length, beam_size):
        batch, size = memory.shape[0] or tf.shape(memory)[0], memory.shape[1]
        beams = {
            "state": tf.zeros((batch, beam_size, size // 2)),
            "ancestry": tf.zeros((batch, beam_size, length), tf.int32),
        }
        slots = tf.zeros((batch, length * beam_size, size // 2))
        return {"beams": beams, "fixed": {"slots": slots, "memory": memory}}

    def decode_step(self, ids, position, cache):
        memory, slots = cache["fixed"]["memory"], cache["fixed"]["slots"]
        state, ancestry = cache["beams"]["state"], cache["beams"]["ancestry"]
        beam, half = state.shape[1], state.shape[2]
        ids = tf.reshape(ids, (-1, beam))
        # What is written at step i is output i - 1, with its wave; nothing at step 0.
        wave = tf.where(position > 0, tf.gather(self.wave, tf.maximum(position - 1, 0)), tf.zeros(2 * half))
        new = tf.gather(self.table, ids) * wave  # [B, K, D]
        state += new[..., :half]
        own = tf.broadcast_to(tf.range(beam)[None, :, None], tf.shape(ids[..., None]))
        length = tf.shape(ancestry)[2]
        at = tf.range(length * beam)[None, :, None] // beam == position
        slots = tf.where(at, tf.tile(new[..., half:], (1, length, 1)), slots)
        ancestry = tf.where(tf.range(length) == position, own, ancestry)
        seen = (ancestry[..., None] == tf.range(beam)) & (tf.range(length) <= position)[:, None]  # [B, K, T, K]
        seen = tf.cast(tf.reshape(seen, (-1, beam, length * beam)), tf.float32)
        history = tf.concat([state, tf.matmul(seen, slots)], -1)
        logits = tf.tanh(history + memory[:, None]) @ self.readout + self.bias
        cache = cache | {"beams": {"state": state, "ancestry": ancestry}, "fixed": {"slots": slots, "memory": memory}}
        return tf.reshape(logits, (-1, self.vocab_size)), cache


class PlainModel:
    """The same function without the decoding interface: a full pass over all targets."""

    def __init__(self, scripted):
        self.scripted = scripted

    def __call__(self, features, training=False):
        model, targets = self.scripted, features["targets"]
        wave = tf.constant(model.wave)[: tf.shape(targets)[1]]
        history = tf.cumsum(tf.gather(model.table, targets) * wave, axis=1, exclusive=True)  # [N, T, D]
        return tf.tanh(history + model.encode(features["inputs"])[:, None]) @ model.readout + model.bias


def penalty(length, alpha, kind="gnmt"):
    return length**alpha if kind == "power" else ((5 + length) / 6) ** alpha


def log_softmax(logits):
    return logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()


def numpy_search(
    model, source, limit, beam, alpha, kind="gnmt", n_best=1, prefix=(), ends="any", change=None, stops=None
):
    """tensor2tensor's search for one sentence, without a cache. Returns [(score, ids, ended)], best first.

    `change(scores, ids)` changes log-probabilities, or, in greedy search, the logits that choose an id, as in Hugging
    Face. `stops(ids)` says whether they end an output, beside EOS. What `prefix` forces is not changed.
    """

    def ends_with(ids):
        return ids[-1] == 1 or bool(stops and stops(ids))

    live, finished = [(0.0, [])], []
    for length in range(1, limit + 1):
        candidates = []
        for log_prob, ids in live:
            log_probs, forced = model.logits(source, ids).astype("float64"), prefix[length - 1 : length]
            if change and beam == 1 and not forced:
                forced = [1 + int(change(log_probs, ids)[1:].argmax())]
            log_probs = log_softmax(log_probs)
            if change and beam > 1 and not forced:
                log_probs = change(log_probs, ids)
            allowed = forced or range(1, model.vocab_size)
            candidates += [(log_prob + log_probs[i], [*ids, i]) for i in allowed]
        candidates = sorted(candidates, reverse=True)[: 2 * beam]
        ending = candidates[:beam] if beam == 1 or ends == "top" else candidates
        finished += [(p / penalty(length, alpha, kind), ids, True) for p, ids in ending if ends_with(ids)]
        finished = sorted(finished, reverse=True)[:beam]
        live = [(p, ids) for p, ids in candidates if not ends_with(ids)][:beam]
        if beam == 1 and finished:
            break
        best_live = live[0][0] / penalty(limit, alpha, kind)
        if len(finished) >= n_best and finished[n_best - 1][0] > best_live:
            break
    return finished or [(p / penalty(limit, alpha, kind), ids, False) for p, ids in live]


def assert_found(hypotheses, expected):
    """Asserts that hypotheses of a Searcher are those of `numpy_search`."""
    for found, (score, ids, ended) in zip(hypotheses, expected, strict=True):
        assert found.ids == [i for i in ids if i != 1]
        assert (found.score, found.ended) == (pytest.approx(score, abs=1e-4), ended)
