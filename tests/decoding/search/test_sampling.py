import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.data.random_numbers import uniform_numbers
from t2t_lite.decoding.search.sampling import draw, sample, truncated
from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.settings.search_options import SearchOptions
from tests.decoding.scripted import ScriptedModel, log_softmax

SOURCES = [[2, 7, 3, 1], [5, 1], [4, 4, 9, 10, 6, 1]]


def exact_score(model, source, result):
    ids = [*result.ids, 1] if result.ended else result.ids
    return sum(log_softmax(model.logits(source, ids[:n]))[i] for n, i in enumerate(ids))


def drawn(searcher, sources=SOURCES, **options):
    return searcher.search(sources, SearchOptions(sampling=True, **options))


def ids_of(found):
    return [[result.ids for result in results] for results in found]


@pytest.mark.slow
@pytest.mark.parametrize("size", [5, 300])  # one block, several
def test_ids_are_drawn_as_often_as_they_are_probable(size):
    random = np.random.default_rng(0)
    weights = np.exp(3 * random.normal(size=size)).astype("float32") * (np.arange(size) % 4 != 0)
    count = 200_000
    found = draw(tf.tile(weights[None], (count, 1)), uniform_numbers(tf.constant([[1, 2]]), count, 1)[0, :, 0])
    observed, expected = np.bincount(found, minlength=size), count * weights / weights.sum()
    assert not observed[weights == 0].any()
    likely = expected > 5
    statistic = ((observed - expected)[likely] ** 2 / expected[likely]).sum()
    freedom = likely.sum() - 1
    assert statistic < freedom + 5 * np.sqrt(2 * freedom)  # chi-square's mean is `freedom`, its variance twice that


@pytest.mark.slow
def test_whole_outputs_come_as_often_as_they_are_probable():
    """Against the probabilities of all outputs of up to three ids."""
    model, source, count = ScriptedModel(vocab_size=5, spread=1.0), [3, 2, 1], 40_000
    one = SearchOptions(sampling=True)
    run = tf.function(lambda inputs, limit, seeds: sample(model, inputs, limit, one, seeds=seeds), autograph=False)
    seeds = np.stack([np.arange(count), np.full(count, 7)], 1).astype("int32")
    found = run(tf.constant([source] * count), tf.constant([3] * count), tf.constant(seeds))
    outputs, observed = np.unique(found.ids[:, 0], axis=0, return_counts=True)
    distance = 1.0
    for output, times in zip(outputs, observed, strict=True):
        ids = [int(i) for i in output if i]
        log_prob = sum(log_softmax(model.logits(source, ids[:n]))[i] for n, i in enumerate(ids))
        distance -= min(np.exp(log_prob) / not_padding(model, source, ids), times / count)
    assert distance < 0.02  # total variation; drawing from the exact distribution gives 0.007 here


def not_padding(model, source, ids):
    return np.prod([1 - np.exp(log_softmax(model.logits(source, ids[:n]))[0]) for n in range(len(ids))])


@pytest.mark.parametrize(
    "options, kept",
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"top_k": 1}, [1]),
        ({"top_k": 2}, [1, 2, 3]),  # what equals the last one stays
        ({"top_k": 9}, [1, 2, 3, 4, 5]),
        ({"top_p": 0.3}, [1]),
        ({"top_p": 0.4001}, [1, 2, 3]),  # the one that crosses stays, and what equals it
        ({"top_p": 0.79}, [1, 2, 3]),
        ({"top_p": 0.81}, [1, 2, 3, 4]),
        ({"top_p": 0.951}, [1, 2, 3, 4, 5]),
        ({"top_k": 3, "top_p": 0.51}, [1, 2, 3]),  # top_k is first: of what is left, 1 has 0.5
        ({"top_k": 3, "top_p": 0.49}, [1]),
        ({"temperature": 0.5, "top_p": 0.6}, [1]),  # the temperature is before both
        ({"temperature": 0.5, "top_p": 0.64}, [1, 2, 3]),
        ({"temperature": 0.0}, [1]),
    ],
)
def test_what_may_be_drawn(options, kept):
    """Padding, id 0, has the largest logit and is never drawn."""
    probabilities = np.array([9.0, 0.4, 0.2, 0.2, 0.15, 0.05], "float32")
    logits = tf.constant([np.log(probabilities) + 3])
    weights = truncated(logits, options.get("temperature", 1.0), options.get("top_k", 0), options.get("top_p")).numpy()
    assert np.flatnonzero(weights[0]).tolist() == kept
    if "temperature" not in options:
        np.testing.assert_allclose(weights[0, kept], probabilities[kept] / 0.4, rtol=1e-5)


@pytest.mark.parametrize("top_p", [0.5, 0.999])  # few ids, and more than are sorted at first
def test_top_p_of_a_large_vocabulary(top_p):
    logits = np.random.default_rng(0).normal(size=(3, 2000)).astype("float32")
    logits[1] *= 20
    weights = truncated(tf.constant(logits), 1.0, top_p=top_p).numpy()
    for row, values in zip(weights, logits, strict=True):
        probabilities = np.exp(log_softmax(values[1:]))
        order = np.argsort(-probabilities)
        before = np.concatenate([[0], np.cumsum(probabilities[order])[:-1]])
        assert set(np.flatnonzero(row)) == set(1 + order[before < top_p])


def test_without_temperature_equally_good_ids_are_chosen_as_in_greedy_search():
    class Coarse(ScriptedModel):
        """Its logits are rounded, as in low precision, so several ids are equally good."""

        def decode_step(self, ids, position, cache):
            logits, cache = super().decode_step(ids, position, cache)
            return tf.round(logits / 4), cache

    searcher, greedily = Searcher(Coarse(end_bias=-9.0)), SearchOptions(beam_size=1, extra_length=9)
    greedy = [results[0].ids for results in searcher.search(SOURCES, greedily)]
    for seed in range(3):
        assert [ids for (ids,) in ids_of(drawn(searcher, temperature=0.0, seed=seed, extra_length=9))] == greedy
    assert [[*searcher.stream(source, greedily)] for source in SOURCES] == greedy


@pytest.mark.slow
def test_a_temperature_of_nearly_nothing_is_greedy_search_and_so_is_a_choice_of_one(eager):
    searcher = Searcher(ScriptedModel(end_bias=-1.0))
    greedy = searcher.search(SOURCES, SearchOptions(beam_size=1, alpha=0, extra_length=9))
    for options in ({"temperature": 0.0}, {"temperature": 1e-4}, {"top_k": 1}, {"top_p": 1e-6}):
        found = drawn(searcher, extra_length=9, n_best=2, **options)
        for ours, theirs in zip(found, greedy, strict=True):
            assert [r.ids for r in ours] == [theirs[0].ids] * 2
            assert ours[0].score == pytest.approx(theirs[0].score, abs=1e-4)
            assert ours[0].ended == theirs[0].ended


@pytest.mark.slow
def test_samples_are_those_of_the_seed_and_of_the_sentence():
    """With a model that thinks the same of every source."""

    class Blind(ScriptedModel):
        def encode(self, inputs):
            return tf.zeros_like(super().encode(inputs))

    searcher, sources = Searcher(Blind(spread=0.5, end_bias=-3.0)), [[2, 3, 1], [3, 2, 1], [2, 3, 1]]
    first, again, other = (ids_of(drawn(searcher, sources, n_best=2, seed=seed)) for seed in (5, 5, 6))
    assert first == again and first[0] == first[2]
    every = [tuple(ids) for samples in first[:2] + other[:2] for ids in samples]
    assert len(set(every)) == len(every)


@pytest.mark.slow
@pytest.mark.parametrize("compile", [False, True])
def test_samples_do_not_depend_on_neighbours_or_on_compilation(compile):
    """Twelve are drawn in several groups. The scores are the model's own, whatever they were drawn by."""
    model = ScriptedModel(spread=1.0, end_bias=-1.0)
    searcher = Searcher(model)
    options = {"n_best": 12, "extra_length": 5, "temperature": 1.5, "top_k": 7, "top_p": 0.9}
    together = drawn(searcher, batch_size=16, compile=compile, **options)
    for source, results in zip(SOURCES, together, strict=True):
        (alone,) = drawn(searcher, [source], compile=False, **options | {"n_best": 2})
        assert [r.ids for r in alone] == [r.ids for r in results[:2]]
        for result in results:
            assert result.score == pytest.approx(exact_score(model, source, result), abs=1e-3)
            assert result.ended or len(result.ids) == len(source) + 5
    assert any(r.ended for results in together for r in results)
    assert any(not r.ended for results in together for r in results)
