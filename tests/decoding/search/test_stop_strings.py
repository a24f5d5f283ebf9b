# Nearest tests of: t2t_lite/decoding/search/rules.py, t2t_lite/decoding/search/searcher.py

import numpy as np
import pytest

from t2t_lite.decoding.generator import Generator
from t2t_lite.decoding.search.rules import before_stop
from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.decoding.translator import Translator
from t2t_lite.models.transformer_lm import TransformerLM
from t2t_lite.settings.search_options import SearchOptions
from tests.decoding.overlapping_pieces import Letters, encoders
from tests.decoding.scripted import ScriptedModel, assert_found, numpy_search


def test_a_text_ends_before_the_first_of_several():
    for stops in (["!", "b."], ["b.", "!"], ["?", "b.", "!"]):
        assert before_stop("ab. ab. c!", stops) == "a"
    assert before_stop("ab", ["?"]) == "ab"


@pytest.mark.few("3-graph")
@pytest.mark.slow
@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["graph", "xla"])
@pytest.mark.parametrize("beam", [1, 3])
def test_a_string_ends_a_hypothesis_as_eos_does(beam, compile):
    model, encoder, ended = ScriptedModel(spread=1.0, end_bias=-2.0), Letters(), 0
    searcher = Searcher(model, lambda length, options: 9, encoder=encoder)
    sources = [[4, 7, 3], [5, 6, 2], [3, 3, 9, 10], [8, 2, 8], [10]]
    for stops in (["abab"], ["c", "dd"]):
        options = SearchOptions(beam_size=beam, n_best=beam, compile=compile, stop=stops)
        for source, results in zip(sources, searcher.search(sources, options), strict=True):
            contains = lambda ids: any(stop in encoder.decode(ids) for stop in stops)  # noqa: B023, E731
            expected = numpy_search(model, source, 9, beam, 0.6, n_best=beam, stops=contains)
            assert_found(results, expected[: len(results)])
            for result, (_, ids, end) in zip(results, expected, strict=False):
                assert result.stopped == (end and ids[-1] != 1)
                ended += result.stopped
    assert ended > 2, "not a test otherwise"


@pytest.mark.slow
@pytest.mark.parametrize("compile", [False, True], ids=["graph", "xla"])
def test_a_sample_is_the_beginning_of_the_one_without_stops(compile):
    model, encoder = ScriptedModel(spread=0.3, end_bias=-3.0), Letters()
    searcher = Searcher(model, lambda length, options: 12, encoder=encoder)
    options = {"sampling": True, "n_best": 6, "seed": 3}
    (free,) = searcher.search([[4, 7]], SearchOptions(**options, compile=False))
    (found,) = searcher.search([[4, 7]], SearchOptions(**options, compile=compile, stop="dd"))
    assert 1 < sum(result.stopped for result in found) < 6
    for whole, result in zip(free, found, strict=True):
        assert whole.ids[: len(result.ids)] == result.ids
        assert ("dd" in encoder.decode(result.ids)) == result.stopped == (len(result.ids) < len(whole.ids))


@pytest.mark.slow
def test_translations_are_cut_before_the_first_string(eager, run_dir):
    translator = Translator.load(str(run_dir))
    options = {"beam_size": 1, "extra_length": 8}
    (whole,) = translator.translate(["the red house is old"], **options, return_token_scores=True)
    at = len(whole.text) // 2
    stop = whole.text[at : at + 2]
    (found,) = translator.translate(["the red house is old"], **options, stop=["\x00", stop], return_token_scores=True)
    hypothesis = found.hypotheses[0]
    assert found.text == whole.text[: whole.text.index(stop)] == before_stop(whole.text, [stop])
    assert hypothesis.ended and len(hypothesis.ids) < len(whole.hypotheses[0].ids)
    assert hypothesis.token_scores == pytest.approx(
        whole.hypotheses[0].token_scores[: len(hypothesis.ids)], abs=1e-5
    ), "one for each id: no EOS was made"


@pytest.mark.slow
def test_the_space_before_the_first_word_is_no_part_of_a_text_without_prompt(eager, tmp_path):
    encoder, draw = encoders(tmp_path)["sentencepiece"], np.random.default_rng(0)
    words = [i for i, piece in enumerate(encoder.pieces(range(encoder.vocab_size))) if piece[:1] in "\u2581abo"]
    model = TransformerLM(
        encoder.vocab_size, hidden_size=8, filter_size=16, num_heads=2, num_layers=1, softmax_bias=True
    )
    model.build()
    bias = np.full(encoder.vocab_size, -50.0)
    bias[words] = draw.normal(size=len(words))
    model.target_embedding.bias.assign(bias)
    generator, cut = Generator(model, {"targets": encoder}, None), 0
    options = {"sampling": True, "n_best": 20, "seed": 1, "max_new_tokens": 6}
    for prompt in ("", "a"):
        free, found = (generator.generate([prompt], **options, stop=stop)[0].hypotheses for stop in ((), " "))
        for whole, hypothesis in zip(free, found, strict=True):
            assert hypothesis.text == whole.text.partition(" ")[0]
            cut += len(hypothesis.ids) < len(whole.ids)
    assert cut > 20, "not a test otherwise"
