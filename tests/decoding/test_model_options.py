"""The search on every kind of attention and position: compiled with a static cache = graph with a growing one."""

import keras
import numpy as np
import pytest

from t2t_lite.decoding.options import SearchOptions
from t2t_lite.decoding.searcher import Searcher
from t2t_lite.models import Transformer

OPTIONS = {
    "learned": {"position": "learned", "max_position": 24},
    "relative": {"position": "none", "max_relative_position": 3, "add_relative_to_values": True},
    "restricted": {"neighborhood": 3, "norm": "pre"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_compiled_or_not_the_translations_are_equal(options):
    keras.utils.set_random_seed(2)
    model = Transformer(
        vocab_size=30,
        hidden_size=16,
        filter_size=32,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=2,
        **options,
    )
    model.build()
    for weight in model.trainable_weights:  # far from uniform: every step is a choice
        weight.assign(weight * 2)
    draw = np.random.default_rng(0)
    sources = [[*draw.integers(3, 30, length).tolist(), 1] for length in (4, 9, 2)]
    search = {"extra_length": 8, "beam_size": 3, "n_best": 3}
    found = [Searcher(model, 24).search(sources, SearchOptions(compile=c, **search)) for c in (False, True)]
    assert any(len(result.ids) > 5 for results in found[0] for result in results)
    for graph, compiled in zip(*found, strict=True):
        assert [r.ids for r in graph] == [r.ids for r in compiled]
        assert [r.score for r in graph] == pytest.approx([r.score for r in compiled], abs=1e-4)
