"""Searches with a model, and how their results are compared."""

import pytest
import tensorflow as tf

from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.settings.search_options import SearchOptions

SOURCES = [[5, 9, 15, 1], [7, 12, 18, 3, 15, 1], [6]]


OPTIONS = {"extra_length": 2, "beam_size": 3, "n_best": 3, "alpha": 4.0, "compile": False}


class Talkative:
    """A model whose outputs are of some length: the end has a small probability."""

    def __init__(self, model):
        self.model = model
        for name in ("max_length", "joins_inputs"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        self.encode, self.init_cache = model.encode, model.init_cache

    def decode_step(self, ids, position, cache):
        logits, cache = self.model.decode_step(ids, position, cache)
        return logits - 6 * tf.one_hot(1, logits.shape[-1]), cache


def searched(model, sources=SOURCES, **options):
    return Searcher(Talkative(model)).search(sources, SearchOptions(**{**OPTIONS, **options}))


def assert_same_results(found, expected):
    assert any(len(result.ids) > 2 for results in expected for result in results)
    for one, other in zip(found, expected, strict=True):
        assert [r.ids for r in one] == [r.ids for r in other]
        assert [r.score for r in one] == pytest.approx([r.score for r in other], abs=1e-4)
