"""A trained Universal Transformer translates with its cache, and says in how many steps it thought about each piece."""

import copy
import dataclasses

import numpy as np
import pytest

from t2t_lite.decoding.command.flag_checks import DecodeRequest, check
from t2t_lite.decoding.hypothesis import Hypothesis, Translation
from t2t_lite.decoding.search.adapters import Ensemble
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.extras.universal.pondering import PonderSteps, draw_ponder_steps
from t2t_lite.models.outputs import named_outputs
from t2t_lite.runs.locating import find_run
from t2t_lite.settings.search_options import SearchOptions
from tests.decoding.scripted import numpy_search
from tests.extras.universal.pondering_run import make_pondering_run

TEXTS = ["the red.", "", "a tree. old."]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return make_pondering_run(tmp_path_factory.mktemp("universal"))


@pytest.fixture(scope="module")
def translator(run_dir):
    return Translator.load(str(run_dir))


class FullPasses:
    """The model without its cache."""

    def __init__(self, model):
        self.model, self.vocab_size = model, model.target_vocab_size

    def logits(self, source, outputs):
        batch = {"inputs": np.array([source]), "targets": np.array([[*outputs, 5]])}
        logits, _ = named_outputs(self.model(batch, training=False))
        return np.asarray(logits["targets"])[0, -1]


@pytest.mark.long
def test_a_search_with_the_cache_is_one_by_full_passes(translator, eager):
    source = [*translator.read(TEXTS[0]).ids[:4], 1]
    options = SearchOptions(beam_size=2, n_best=2, extra_length=1, compile=False)
    (found,) = translator.searcher.search([source], options)
    expected = numpy_search(FullPasses(translator.model), source, len(source) + 1, 2, 0.6, n_best=2)
    for result, (score, ids, _) in zip(found, expected, strict=True):
        assert result.all_ids == ids
        assert result.score == pytest.approx(score, abs=1e-4)


@pytest.mark.slow
def test_steps_of_every_piece(translator, eager):
    options = {"beam_size": 2, "extra_length": 0, "n_best": 2, "compile": False, "return_ponder_steps": True}
    found = translator.translate(TEXTS, split_sentences="never", **options)
    assert found[1].hypotheses[0].ponder_steps is None
    every = []
    for translation in (found[0], found[2]):
        for hypothesis in translation.hypotheses:
            source, target = hypothesis.ponder_steps
            assert (len(source), len(target)) == (len(translation.source_tokens), len(hypothesis.tokens))
            ids = [*translator.encoders["inputs"].encode(TEXTS[0 if translation is found[0] else 2]), 1]
            steps = translator.model.ponder_steps(
                {"inputs": np.array([ids]), "targets": np.array([hypothesis.all_ids])}
            )
            assert source == np.asarray(steps["inputs"])[0, :-1].tolist()
            assert target == np.asarray(steps["targets"])[0, : len(target)].tolist()
            every += [*source, *target]
    assert {*every} <= {1, 2, 3} and len({*every}) > 1
    # Those of a text in parts are those of its parts, one after the other.
    parts = translator.translate(["a tree.", "old."], **options)
    (joined,) = translator.translate([TEXTS[2]], split_sentences="always", **options)
    for side in (0, 1):
        expected = [n for part in parts for n in part.hypotheses[0].ponder_steps[side]]
        assert joined.hypotheses[0].ponder_steps[side] == expected


@pytest.mark.long
def test_an_export_gives_the_decoders_texts(translator, tmp_path):
    import tensorflow as tf

    from t2t_lite.export import export_saved_model

    options = {"beam_size": 2, "extra_length": 3}
    path = export_saved_model(translator, str(tmp_path), **options)
    signature = tf.saved_model.load(path).signatures["serving_default"]
    outputs = signature(tf.constant(TEXTS))["outputs"].numpy()
    texts = [found.text for found in translator.translate(TEXTS, split_sentences="never", **options)]
    assert [text.decode() for text in outputs] == texts


def test_a_model_of_equal_steps_has_none(run_dir):
    run = find_run(str(run_dir))
    flags = {"decode_from_file": "in", "ponder_file": "steps"}
    check(DecodeRequest(flags, [run]))
    plain = dataclasses.replace(run, config={**run.config, "model": "transformer"})
    with pytest.raises(UserError, match=r"--ponder_file: .* transformer"):
        check(DecodeRequest(flags, [plain]))
    with pytest.raises(UserError, match=r"--ponder_file: .*2 models"):
        check(DecodeRequest(flags, [run, run]))


def test_steps_that_a_model_has_not_are_refused_before_a_search(translator, monkeypatch):
    monkeypatch.setattr(translator.searcher, "model", None)  # a search would fail by another error
    ensemble = copy.copy(translator)
    ensemble._teller = lambda name: PonderSteps(Ensemble([translator.model] * 2))
    with pytest.raises(UserError, match="return_ponder_steps: Ensemble"):
        ensemble.translate(TEXTS, return_ponder_steps=True)


def test_bars_are_as_long_as_the_steps():
    output = Hypothesis(text="x y", tokens=["▁x", "▁y"], ids=[5, 6], told={"ponder_steps": ([3, 1, 4], [2, 4])})
    drawing = draw_ponder_steps(Translation((output,), source_tokens=["▁a", "▁b", "▁c"]))
    bars = [(note, width) for _, _, width, _, _, _, note in drawing.rectangles if note]
    assert [note for note, _ in bars] == [
        "▁a: 3 steps", "▁b: 1 step", "▁c: 4 steps", "▁x: 2 steps", "▁y: 4 steps"
    ]  # fmt: skip
    unit = bars[1][1]
    assert [width / unit for _, width in bars] == [3, 1, 4, 2, 4]
    texts = [text.text for text in drawing.texts]
    assert {"source, mean 2.67", "output, mean 3.00", "▁c"} <= {*texts}
    for x, _, width, *_ in drawing.rectangles:
        assert x >= 0 and x + width <= drawing.width
    assert max(text.y for text in drawing.texts) < drawing.height
    assert drawing.svg().startswith("<svg")


def test_a_translation_without_steps_has_no_picture():
    with pytest.raises(UserError, match="return_ponder_steps=True"):
        draw_ponder_steps(Translation())


def test_steps_as_text():
    assert PonderSteps.text(([3, 1, 4], [2, 5])) == "3 1 4\t2 5"
    assert PonderSteps.joined([([3, 1], [4]), ([5], [9, 2])]) == ([3, 1, 5], [4, 9, 2])
    with pytest.raises(UserError, match=r"return_ponder_steps: object.*universal_transformer"):
        PonderSteps(object())
