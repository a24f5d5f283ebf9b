"""Searches that may not repeat themselves, against NumPy's spelling of Hugging Face's two logits processors."""
# Nearest tests of: t2t_lite/decoding/search/rules.py, t2t_lite/decoding/search/sampling.py

import collections

import numpy as np
import pytest

from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.settings.search_options import SearchOptions
from tests.decoding.scripted import ScriptedModel, assert_found, log_softmax, numpy_search

SOURCES = [[4, 7, 4, 7, 3, 2], [5], [3, 3, 9, 10, 6, 3, 3, 9, 8], [8, 2, 8]]
RULES = [(1, 1.0), (2, 1.0), (3, 1.0), (0, 1.5), (0, 0.6), (2, 1.5)]


def processed(scores, ids, ngram_size, penalty):
    """RepetitionPenaltyLogitsProcessor, then NoRepeatNGramLogitsProcessor, of transformers' logits_process.py."""
    scores = scores.copy()
    for i in set(ids):
        scores[i] = scores[i] * penalty if scores[i] < 0 else scores[i] / penalty
    if 0 < ngram_size <= len(ids) + 1:
        followers = collections.defaultdict(list)
        for ngram in zip(*[ids[at:] for at in range(ngram_size)], strict=False):
            followers[ngram[:-1]].append(ngram[-1])
        scores[followers[tuple(ids[len(ids) + 1 - ngram_size :])]] = -np.inf
    return scores


def rules_of(source, ngram_size, penalty, continues):
    def change(scores, ids):
        return processed(scores, [*source, *ids] if continues else ids, ngram_size, penalty)

    return change


@pytest.mark.few("3-graph-outputs", "3-graph-prompts")
@pytest.mark.slow
@pytest.mark.parametrize("continues", [False, True], ids=["outputs", "prompts"])
@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["graph", "xla"])
@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_forbidden_and_penalized_is_hugging_faces(request, beam, compile, continues):
    if not compile:
        request.getfixturevalue("eager")
    model, changed = ScriptedModel(vocab_size=12, spread=1.0, end_bias=-4.0), 0
    searcher = Searcher(model, lambda length, options: 12, continues_inputs=continues)
    free = [numpy_search(model, source, 12, beam, 0.6)[0][1] for source in SOURCES]
    for ngram_size, penalty in RULES[1::2] if compile else RULES:
        options = {"no_repeat_ngram_size": ngram_size, "repetition_penalty": penalty}
        found = searcher.search(SOURCES, SearchOptions(beam_size=beam, compile=compile, **options))
        for source, results, plain in zip(SOURCES, found, free, strict=True):
            change = rules_of(source, ngram_size, penalty, continues)
            best = numpy_search(model, source, 12, beam, 0.6, change=change)[0]
            assert_found(results[:1], [best])
            changed += best[1] != plain
    assert changed >= 4, "not a test otherwise"


@pytest.mark.parametrize("compile", [False, True], ids=["graph", "xla"])
def test_a_prompts_ids_are_penalized_and_a_greedy_score_is_the_models_own(request, compile):
    if not compile:
        request.getfixturevalue("eager")
    model, source = ScriptedModel(vocab_size=12, spread=1.0, end_bias=-4.0), SOURCES[0]
    searcher = Searcher(model, lambda length, options: 6, continues_inputs=True)
    ((found,),) = searcher.search([source], SearchOptions(beam_size=1, compile=compile, repetition_penalty=1.5))
    (score, ids, _), (_, of_outputs, _) = (
        numpy_search(model, source, 6, 1, 0.6, change=rules_of(source, 0, 1.5, continues))[0]
        for continues in (True, False)
    )
    assert found.all_ids == ids != of_outputs and found.score == pytest.approx(score, abs=1e-4)


@pytest.mark.slow
@pytest.mark.few("3-1.0", "2-1.5")
@pytest.mark.parametrize("ngram_size, penalty", RULES)
def test_samples_are_of_what_is_left_and_scored_by_the_model_itself(eager, ngram_size, penalty):
    model = ScriptedModel(vocab_size=12, spread=1.0, end_bias=-4.0)
    searcher = Searcher(model, lambda length, options: 12, continues_inputs=True)
    options = {"no_repeat_ngram_size": ngram_size, "repetition_penalty": penalty, "sampling": True, "n_best": 5}
    found = searcher.search(SOURCES, SearchOptions(top_k=1, **options))  # the rules come before: one id is left
    for source, results in zip(SOURCES, found, strict=True):
        change = rules_of(source, ngram_size, penalty, True)
        _, ids, ended = numpy_search(model, source, 12, 1, 0, change=change)[0]
        score = sum(log_softmax(model.logits(source, ids[:n]))[i] for n, i in enumerate(ids))
        for result in results:
            assert (result.ids, result.ended) == ([i for i in ids if i != 1], ended)
            assert result.score == pytest.approx(score, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 2])
def test_a_forced_prefix_may_repeat_itself_and_is_scored_as_without_rules(eager, beam):
    model, prefix = ScriptedModel(spread=0.3, end_bias=-4.0), [5, 5, 5, 5]
    for ngram_size, penalty in ((1, 1.0), (2, 1.5)):
        rules = {"no_repeat_ngram_size": ngram_size, "repetition_penalty": penalty}
        options = SearchOptions(beam_size=beam, alpha=0.0, extra_length=4, **rules)
        found = Searcher(model).search([[4, 1]], options, prefixes=[prefix])[0][0]
        change = rules_of([], ngram_size, penalty, False)
        score, ids, _ = numpy_search(model, [4, 1], 6, beam, 0.0, prefix=prefix, change=change)[0]
        assert found.all_ids == ids and ids[:4] == prefix
        assert found.score == pytest.approx(score, abs=1e-4) and score < 0


@pytest.mark.slow
def test_rules_that_are_off_change_neither_what_is_traced_nor_what_is_remembered():
    model = ScriptedModel()
    plain, off = Searcher(model), Searcher(model, continues_inputs=True)
    found = [searcher.search(SOURCES, SearchOptions()) for searcher in (plain, off)]
    assert found[0] == found[1] and plain.history == off.history
    assert "repe" not in str(plain.history) and "continues" not in str(off.history)
