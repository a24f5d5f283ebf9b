"""A language model decodes through the same search: prompts of unequal lengths, read once and shared by all beams."""

import numpy as np
import pytest
from keras import ops

from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.layers import MultiHeadAttention
from t2t_lite.settings.search_options import SearchOptions
from tests.decoding.letter_generator import FullPasses, log_probs, model_of
from tests.decoding.scripted import assert_found, numpy_search
from tests.layers.kinds import RELATIVE_VALUES, RESTRICTED, registered


class SharpAttention(MultiHeadAttention):
    """Overrides how heads attend, and nothing else."""

    def attend(self, query, key, value, mask, training):
        return super().attend(3 * query, key, value, mask, training)


EXTRA = 5
PROMPTS = [[5, 3, 7, 4, 9, 2, 8, 6, 10], [], [4], [6, 6, 3, 10, 2]]
KINDS = registered({  # others are in search/test_every_model.py
    "attend overridden": {},
    "restricted": {"self_attention": RESTRICTED},
    "local": {"self_attention": {"type": "local_1d", "block_length": 3}},
    "strided": {"self_attention": {"type": "memory+strided", "stride": 3}},
    "fixed": {"self_attention": {"type": "fixed", "stride": 4, "summary": 2}},
})  # fmt: skip
COMPILED = [(kind, True) for kind in ("restricted", "strided") if kind in KINDS]


def searcher_of(model, **options):
    return Searcher(model, longest_output=lambda length, options: options.extra_length, **options)


@pytest.mark.few("restricted-False", "strided-False")
@pytest.mark.slow
@pytest.mark.parametrize("kind, compile", [*((kind, False) for kind in KINDS), *COMPILED])
def test_the_search_is_that_of_full_passes_over_each_prompt_alone(request, monkeypatch, kind, compile):
    if not compile:
        request.getfixturevalue("eager")
    model, read = model_of(**KINDS[kind]), []
    if kind == "attend overridden":
        model.decoder.layers[0].self_attention.layer.__class__ = SharpAttention
    encode = model.encode
    monkeypatch.setattr(model, "encode", lambda inputs: read.append(inputs.shape) or encode(inputs))
    options = SearchOptions(beam_size=3, n_best=3, extra_length=EXTRA, compile=compile)
    for prompt, results in zip(PROMPTS, searcher_of(model).search(PROMPTS, options), strict=True):
        expected = numpy_search(FullPasses(model), prompt, EXTRA, 3, options.alpha, n_best=3)
        assert_found(results, expected)
    assert len(read) == 1, "the prompts were read more than once"


@pytest.mark.slow
@pytest.mark.parametrize("compile", [False, True])
def test_samples_without_an_end_are_as_long_as_the_limit_and_have_the_scores_of_one_pass(request, compile):
    if not compile:
        request.getfixturevalue("eager")
    model = model_of("end", position="none", self_attention=RELATIVE_VALUES)
    options = SearchOptions(sampling=True, n_best=8, extra_length=EXTRA, seed=4, compile=compile)
    found = searcher_of(model, end_id=None).search(PROMPTS, options)
    assert any(1 in result.ids for results in found for result in results), "not a test otherwise"
    for prompt, results in zip(PROMPTS, found, strict=True):
        for result in results[::3]:
            expected = sum(log_probs(model, prompt, result.ids))
            assert (result.score, result.ended) == (pytest.approx(expected, abs=1e-4), False)


def test_beams_share_the_slots_of_a_prompt():
    model = model_of()
    inputs = np.array([prompt + [0] * (9 - len(prompt)) for prompt in PROMPTS], "int32")
    cache = model.init_cache(model.encode(ops.convert_to_tensor(inputs)), 5, 4)["fixed"]["layers"][0]["self"]
    assert (cache.prompt.key.shape, cache.key.shape) == ((4, 2, 9, 8), (4, 2, 5 * 4, 8))
