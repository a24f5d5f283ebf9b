# Nearest tests of: t2t_lite/decoding/search/loops.py

import itertools

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decoding.search.beam_search import beam_search, block_top_k
from t2t_lite.decoding.search.loops import phase_lengths
from t2t_lite.settings.search_options import SearchOptions
from tests.decoding.scripted import ScriptedModel, log_softmax, numpy_search, penalty

graph_and_xla = pytest.mark.parametrize("mode", ["graph", pytest.param("xla", marks=pytest.mark.slow)])


def padded(sources):
    width = max(len(source) for source in sources)
    return np.array([source + [0] * (width - len(source)) for source in sources], "int32")


def sources_of(count, vocab_size=11, seed=1):
    draw = np.random.default_rng(seed)
    return [[*draw.integers(2, vocab_size, draw.integers(1, 9)).tolist(), 1] for _ in range(count)]


def search(model, sources, limit, mode="graph", **options):
    """Runs the search and returns for each sentence [(score, ids)], best first, without empty places."""
    inputs, limit = tf.constant(padded(sources)), tf.constant(limit, tf.int32)
    others = {name: options.pop(name) for name in ("prefix",) if name in options}
    options = SearchOptions(**options)

    def search_one(inputs, limit):
        return beam_search(model, inputs, limit, options, **others)

    if mode == "graph":
        signature = [tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)]
        run = tf.function(search_one, input_signature=signature, autograph=False)
    else:
        others["max_length"] = int(max(limit))
        run = tf.function(search_one, jit_compile=mode == "xla", autograph=False)
    found = tf.nest.map_structure(lambda t: t.numpy(), run(inputs, limit))
    return [
        [
            (score, [int(i) for i in ids if i], bool(ended))
            for ids, score, ended in zip(*rows, strict=True)
            if score > -np.inf
        ]
        for rows in zip(found.ids, found.scores, found.ended, strict=True)
    ]


def assert_same(found, expected, places=None):
    for ours, theirs in zip(found, expected, strict=True):
        ours, theirs = ours[:places], theirs[:places]
        assert [ids for _, ids, _ in ours] == [ids for _, ids, _ in theirs]
        assert [ended for _, _, ended in ours] == [ended for _, _, ended in theirs]
        np.testing.assert_allclose([s for s, _, _ in ours], [s for s, _, _ in theirs], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.few("graph", instead="test_finds_the_best_of_all_outputs_when_the_beam_is_wide_enough")
@graph_and_xla
@pytest.mark.parametrize(
    "beam, alpha, kind, n_best",
    [(1, 0.6, "gnmt", 1), (2, 0.0, "gnmt", 1), (4, 0.6, "gnmt", 4), (3, 0.8, "power", 2), (8, 1.0, "gnmt", 1)],
)
def test_equals_the_plain_search(mode, beam, alpha, kind, n_best):
    model, sources = ScriptedModel(spread=1.0), sources_of(6)
    model.bias[0] = 5.0  # padding is the most probable id, and never an output
    limit = [len(source) + extra for source, extra in zip(sources, [0, 12, 3, 20, 1, 12], strict=True)]
    options = {"beam_size": beam, "alpha": alpha, "length_penalty": kind, "n_best": n_best}
    expected = [
        numpy_search(model, source, n, beam, alpha, kind, n_best) for source, n in zip(sources, limit, strict=True)
    ]
    assert_same(search(model, sources, limit, mode, **options), expected)


@pytest.mark.slow
@pytest.mark.few("3-graph", "1-xla")
@graph_and_xla
@pytest.mark.parametrize("beam", [1, 3])
def test_outputs_begin_with_their_prefixes(mode, beam):
    model, sources, limit = ScriptedModel(spread=1.0), sources_of(4), [14] * 4
    prefixes = [[5, 9, 2], [], [7], [3, 3, 3, 3]]
    expected = [
        numpy_search(model, source, 14, beam, 0.6, n_best=beam, prefix=prefix)
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
    options = {"beam_size": beam, "alpha": 0.6, "n_best": beam, "prefix": tf.constant(padded(prefixes))}
    found = search(model, sources, limit, mode, **options)
    assert_same(found, expected)
    for hypotheses, prefix in zip(found, prefixes, strict=True):
        assert all(ids[: len(prefix)] == prefix for _, ids, _ in hypotheses)


@pytest.mark.slow
def test_finds_the_best_of_all_outputs_when_the_beam_is_wide_enough():
    model, source, longest = ScriptedModel(vocab_size=4, spread=0.5, seed=3), [2, 3, 1], 4
    outputs = [[*ids, 1] for length in range(longest) for ids in itertools.product(range(2, 4), repeat=length)]

    def score(ids):
        log_probs = [log_softmax(model.logits(source, ids[:at]))[i] for at, i in enumerate(ids)]
        return sum(log_probs) / penalty(len(ids), 0.6)

    best = sorted(((score(ids), ids, True) for ids in outputs), reverse=True)
    for mode in ("graph", "xla"):
        assert_same(search(model, [source], [longest], mode, beam_size=8, alpha=0.6, n_best=8), [best[:8]])


class Counting(ScriptedModel):
    """Counts its steps. If it `is_sure`, it ends after the second output."""

    def __init__(self, is_sure=False):
        super().__init__()
        self.steps, self.is_sure = tf.Variable(0), is_sure

    def decode_step(self, ids, position, cache):
        self.steps.assign_add(1)
        logits, cache = super().decode_step(ids, position, cache)
        sure = tf.one_hot(tf.where(position == 1, 1, 5), 11, on_value=20.0)
        return tf.zeros_like(logits) + sure if self.is_sure else logits, cache


@pytest.mark.slow
def test_a_row_of_limit_0_costs_no_steps():
    model = Counting()
    assert search(model, [[2, 1], [3, 1]], [0, 0])[0][0][1] == []
    assert model.steps.numpy() == 0
    search(model, [[2, 1], [3, 1]], [0, 3], alpha=0.0)
    assert model.steps.numpy() <= 3


@pytest.mark.slow
def test_stops_as_soon_as_nothing_better_can_come():
    model = Counting(is_sure=True)
    assert search(model, [[2, 1]], [50])[0][0][1] == [5, 1]
    assert model.steps.numpy() == 2


@pytest.mark.slow
def test_phases_do_not_change_the_result():
    model, sources = ScriptedModel(spread=0.3, seed=8, end_bias=-3.0), sources_of(4, seed=9)
    limit = [60, 50, 9, 17]
    assert len(phase_lengths(60)) == 3
    together = search(model, sources, limit, "xla", n_best=4)
    assert max(len(h[1]) for hypotheses in together for h in hypotheses) > phase_lengths(60)[1], "not a test otherwise"
    assert_same(together, search(model, sources, limit, "graph", n_best=4))


def test_phase_lengths():
    for total in (1, 7, 8, 9, 16, 58, 104, 1074):
        lengths = phase_lengths(total)
        assert lengths[-1] == total and lengths == sorted(set(lengths)) and len(lengths) <= 3
        assert all(length % 8 == 0 for length in lengths[:-1])


@pytest.mark.slow
def test_no_hypothesis_comes_twice_or_from_nowhere():
    """With more beams than there are continuations, empty places stay empty."""
    found = search(ScriptedModel(vocab_size=3, spread=0.2), [[2, 1]], [2], beam_size=6, n_best=6)[0]
    assert sorted(ids for _, ids, _ in found) == [[1], [2, 1]]


@pytest.mark.slow
@pytest.mark.parametrize("size", [2048, 5000, 8191])
def test_block_top_k_is_exact(size):
    values = np.random.default_rng(0).normal(size=(6, size)).astype("float32")
    values[1, :] = 0  # all equal
    values[2, 4096 % size :] = -np.inf
    values[3] = np.round(values[3])  # many ties
    for k in (1, 3):
        found, at = tf.function(lambda v, k=k: block_top_k(v, k), jit_compile=True)(values)
        expected, expected_at = tf.math.top_k(values, k)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(at, expected_at)
