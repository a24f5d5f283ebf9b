"""The recorded tree of a search, against the search itself and the model's own probabilities."""

import numpy as np
import pytest

from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.extras.insights.search_tree import trace
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.text.vocabulary import EOS_ID
from tests.decoding.overlapping_pieces import Letters
from tests.decoding.scripted import ScriptedModel

pytestmark = pytest.mark.slow
some = pytest.mark.few("only the top may end", "a prefix", "no repetition")

SOURCE = [3, 7, 4, 1]
CASES = {
    "beams": ({"beam_size": 3, "n_best": 3}, {}, []),
    "greedy": ({"beam_size": 1}, {}, []),
    "only the top may end": ({"beam_size": 3, "n_best": 2, "ends": "top"}, {}, []),
    "a length penalty": ({"beam_size": 3, "n_best": 3, "alpha": 2.0, "length_penalty": "power"}, {}, []),
    "a prefix": ({"beam_size": 3, "n_best": 3}, {}, [5, 2]),
    "no end within the limit": ({"beam_size": 2, "n_best": 2, "extra_length": 2}, {"end_bias": -99.0}, []),
    "no repetition": ({"beam_size": 2, "n_best": 2, "no_repeat_ngram_size": 1}, {"end_bias": -5.0}, []),
    "a long output": ({"beam_size": 2, "n_best": 2, "extra_length": 20}, {"end_bias": -5.0}, []),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def case(request):
    """(model, options, prefix, nodes, hypotheses, the search's results)."""
    given, bias, prefix = request.param
    model, options = ScriptedModel(**bias), SearchOptions(compile=False, **given)
    searcher = Searcher(model)
    (results,) = searcher.search([SOURCE], options, [prefix])
    return model, options, prefix, *trace(searcher, SOURCE, options, prefix), results


def path(nodes, at):
    """Returns the ids from the root to a node."""
    return [*path(nodes, nodes[at].parent), nodes[at].id] if at else []


@some
def test_its_hypotheses_are_the_search_s(case):
    _, _, _, nodes, hypotheses, results = case
    assert len(hypotheses) == len(results)
    for at, result in zip(hypotheses, results, strict=True):
        assert path(nodes, at) == [*result.ids, *[EOS_ID] * result.ended]
        assert nodes[at].score == pytest.approx(result.score, abs=1e-5)
        assert nodes[at].kept and nodes[at].finished == result.ended


@some
def test_log_probabilities_are_the_model_s(case):
    model, _, _, nodes, *_ = case
    for at, node in enumerate(nodes[1:], 1):
        *before, last = path(nodes, at)
        logits = model.logits(SOURCE, before)
        assert node.log_prob == pytest.approx(logits[last] - np.logaddexp.reduce(logits), abs=1e-4)
        assert node.total == pytest.approx(nodes[node.parent].total + node.log_prob, abs=1e-5)
        assert node.step == len(before) + 1


@some
def test_it_holds_the_best_continuations_of_what_was_kept(case):
    model, options, prefix, nodes, *_ = case
    for step in range(1, nodes[-1].step + 1):
        live = [at for at, node in enumerate(nodes) if node.step == step - 1 and node.kept and node.id != EOS_ID]
        every = {}
        for at in live:
            logits = model.logits(SOURCE, path(nodes, at))
            ids = prefix[step - 1 : step] or range(1, model.vocab_size)
            ids = set(ids) - set(path(nodes, at)) if options.no_repeat_ngram_size else ids
            every |= {(at, i): nodes[at].total + logits[i] - np.logaddexp.reduce(logits) for i in ids}
        best = sorted(every, key=every.get, reverse=True)[: 2 * options.beam_size]
        now = [node for node in nodes if node.step == step]
        assert [(node.parent, node.id) for node in now] == best
        kept = [node for node in now if node.kept and node.id != EOS_ID]
        assert kept == [node for node in now if node.id != EOS_ID][: options.beam_size]
        ends = 2 * options.beam_size if options.ends == "any" and options.beam_size > 1 else options.beam_size
        assert [node.finished for node in now] == [node.id == EOS_ID and rank < ends for rank, node in enumerate(now)]


def test_a_stop_string_ends_a_path_as_eos_does():
    model, encoder = ScriptedModel(spread=1.0, end_bias=-2.0), Letters()
    searcher = Searcher(model, lambda length, options: 9, encoder=encoder)
    options = SearchOptions(beam_size=3, n_best=3, compile=False, stop=["c", "dd"])
    (results,) = searcher.search([[4, 7, 3]], options)
    nodes, found = trace(searcher, [4, 7, 3], options)
    assert any(result.stopped for result in results), "not a test otherwise"
    assert [nodes[at].score for at in found] == pytest.approx([result.score for result in results], abs=1e-5)
