# Nearest tests of: t2t_lite/decoding/answering.py, t2t_lite/decoding/hypothesis.py

import json

import numpy as np
import pytest
import tensorflow as tf

import t2t_lite
from t2t_lite.data.problem import Problem
from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.decoding.command.lines import LineTranslator
from t2t_lite.decoding.minimum_bayes_risk import expected_utilities
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.models.transformer import Transformer
from t2t_lite.models.transformer_lm import TransformerLM
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.decoding.scripted import PlainModel, ScriptedModel

TEXTS = ["the red house.", "", "a tree", " \u2003\t", "old and new and old and new.", "Grün\u2028und \U0001f600", "x"]


@pytest.fixture(scope="module")
def translator(run_dir):
    return Translator.load(str(run_dir))


def of_random_weights(**hparams):
    hparams = HParams(num_hidden_layers=1, hidden_size=16, filter_size=32, num_heads=2, **hparams)
    encoder = ByteTextEncoder()
    model = Transformer.from_hparams(hparams, vocab_size=encoder.vocab_size)
    return Translator(model, {"inputs": encoder, "targets": encoder}, hparams)


def of_a_script(problem=None):
    """Returns a Translator of bytes whose model is traced in a moment: for what does not depend on the model."""
    model = PlainModel(ScriptedModel(vocab_size=258, longest=128))
    return Translator(model, dict.fromkeys(("inputs", "targets"), ByteTextEncoder()), HParams(), problem)


def test_blank_gives_blank(translator):
    for translation in translator.translate(["", " ", "\u2003\t", "\x1f"], n_best=2):
        assert (translation.text, translation.score, translation.tokens) == ("", 0.0, [])
        assert len(translation.hypotheses) == 1 and not translation.truncated


def test_stray_characters_are_dropped_from_what_is_translated_alone(translator):
    stray, plain = "the\u00ad red\u00a0house", "the red house"
    assert translator.read(stray).ids == translator.read(plain).ids
    assert translator.read("red \ud800").ids == translator.read("red \ufffd").ids
    targets = translator.encoders["targets"]  # prefixes, and what is scored, are read as they are
    assert targets.encode(stray) != targets.encode(plain)


@pytest.mark.slow
def test_translate_ids_is_translate_without_text(translator):
    encoder = translator.encoders["inputs"]
    ids = [[*encoder.encode(text), 1] for text in TEXTS if text.strip()]
    padded = [row + [0] * 3 for row in ids]
    expected = [t.hypotheses[0].ids for t in translator.translate([t for t in TEXTS if t.strip()], extra_length=5)]
    assert translator.translate_ids(ids, extra_length=5) == expected
    assert translator.translate_ids(np.array(padded, object), extra_length=5) == expected


class Last(Problem):
    """Chooses the output of lowest score, and keeps what it was asked."""

    chooses_output = True

    def __init__(self):
        super().__init__()
        self.asked = []

    def choose_output(self, inputs, outputs, encoders):
        self.asked.append((inputs, outputs))
        return len(outputs) - 1


@pytest.mark.slow
def test_a_problem_chooses_among_the_outputs_of_the_beam():
    problem, texts = Last(), ["the red house.", "", "a tree"]
    translator, choosing = of_a_script(), of_a_script(problem)
    options = {"beam_size": 3, "extra_length": 5}
    usual = translator.translate(texts, n_best=3, **options)
    found = choosing.translate(texts, n_best=2, **options)
    for before, after in zip(usual, found, strict=True):
        *others, chosen = before.hypotheses
        assert [h.ids for h in after.hypotheses] == [h.ids for h in (chosen, *others)][:2]
        assert after.score == pytest.approx(chosen.score, abs=1e-4)
    assert problem.asked == [
        (text, [h.text for h in t.hypotheses]) for text, t in zip(texts, usual, strict=True) if text
    ]
    (alone,) = choosing.translate(texts[:1], **options)  # n_best=1
    assert [h.ids for h in alone.hypotheses] == [found[0].hypotheses[0].ids]
    ids = [[*translator.encoders["inputs"].encode(text), 1] for text in texts if text]
    assert choosing.translate_ids(ids, **options) == [t.hypotheses[0].ids for t in found if t.text]


class Own(Problem):
    """Has its own settings of the search, and its own texts."""

    decode_defaults = {"beam_size": 1, "extra_length": 2}  # noqa: RUF012

    def input_text(self, text):
        return text.replace("#", "")

    def output_text(self, inputs, outputs, encoders):
        return f"{inputs}: {outputs}"


@pytest.mark.slow
def test_a_problem_has_its_own_settings_and_texts():
    translator, owned = of_a_script(), of_a_script(Own())
    texts = ["#the red# house.", "a tree"]
    plain = [text.replace("#", "") for text in texts]
    for given in ({}, {"beam_size": 3}):
        found = owned.translate(texts, **given)
        expected = translator.translate(plain, **{"beam_size": 1, "extra_length": 2} | given)
        assert [t.hypotheses[0].ids for t in found] == [t.hypotheses[0].ids for t in expected]
        assert [t.text for t in found] == [f"{text}: {t.text}" for text, t in zip(plain, expected, strict=True)]
    assert owned.score(texts[:1], ["alt"])[0].log_prob == translator.score(plain[:1], ["alt"])[0].log_prob


@pytest.mark.parametrize("wrong", [[99999999], {5}, True, [[5]], np.ones((1, 1, 1), int)], ids=str)
def test_ids_in_place_of_texts_are_checked(translator, wrong):
    with pytest.raises((UserError, TypeError), match=r"sentence 2: |`prefixes`, item 1"):
        translator.translate(["x", "y"], prefixes=[[5], wrong])
    with pytest.raises(UserError, match=r"^inputs, row 1: "):
        translator.translate_ids([[5, 1], wrong])
    with pytest.raises(UserError, match=r"^pair 2: "):
        translator.score_ids([([5, 1], [5, 1]), ([5, 1], wrong)])


def test_rows_and_pairs_of_ids_have_such_a_form(translator):
    with pytest.raises(UserError, match=r"^sentence 2: id 1 is EOS"):
        translator.translate(["x", "y"], prefixes=[[5], [5, 1]])
    for pair in (None, [[5, 1]], [[5, 1]] * 3):
        with pytest.raises(UserError, match=r"^pair 2: .*expected the ids of a text and the ids of its target"):
            translator.score_ids([([5, 1], [5, 1]), pair])
    for call, name in ((translator.translate_ids, "inputs"), (translator.score_ids, "pairs")):
        with pytest.raises(TypeError, match=f"`{name}` must be a list of .*ids, received one int"):
            call(5)


@pytest.mark.parametrize("length", [0, 5.5, "many", True, float("nan")])
def test_a_length_that_is_none(translator, length):
    with pytest.raises(UserError, match="max_input_length="):
        translator.translate(["a"], max_input_length=length)
    with pytest.raises(UserError, match="batch_size="):
        translator.score(["a"], ["b"], batch_size=length)


@pytest.mark.slow
def test_long_inputs_are_cut_and_flagged():
    translator = of_random_weights(pos="emb", max_position=12)
    assert translator.max_input_length == 12
    kept, cut = translator.translate(["a" * 11, "a" * 12], extra_length=3)
    assert not kept.truncated and cut.truncated
    assert kept.text == cut.text
    assert len(cut.hypotheses[0].ids) <= 12
    assert translator.translate(["abcd"], max_input_length=3)[0].truncated
    letter = translator.encoders["inputs"].encode("a")
    whole, longer = (letter * count + [1] for count in (11, 30))
    assert translator.translate_ids([longer, whole], extra_length=3) == [kept.hypotheses[0].ids] * 2
    with pytest.raises(UserError, match="has only 12"):
        translator.translate(["a"], max_input_length=13)


@pytest.mark.slow
@pytest.mark.parametrize("begin", ["zero", "end"])
def test_positions_that_inputs_and_outputs_share_are_enough_for_both(begin):
    encoder = ByteTextEncoder()
    model = TransformerLM(
        encoder.vocab_size, hidden_size=8, filter_size=16, num_heads=2, num_layers=1,
        position="learned", max_position=32, begin=begin,
    )  # fmt: skip
    translator = Translator(model, {"inputs": encoder, "targets": encoder}, HParams())
    texts = ["a" * 9, "b", "a" * 14, "a" * 30, "a" * 40]
    for options in ({"beam_size": 3}, {"sampling": True, "seed": 1}):
        found = translator.translate(texts, extra_length=30, return_token_scores=True, alpha=0, **options)
        for text, t in zip(texts, found, strict=True):
            (h,), room = t.hypotheses, 32 - len(t.source_tokens) - 1
            assert len(h.token_scores) <= room and (h.ended or len(h.ids) == room)
            assert sum(h.token_scores) == pytest.approx(h.score, abs=1e-4) and t.truncated == (len(text) > 30)
    pairs = ("a" * 20, "b" * 10), ("a", "b" * 29), ("a" * 29, "b")
    together = translator.score(*zip(*pairs, strict=True))
    for (text, target), score in zip(pairs, together, strict=True):
        assert translator.score([text], [target])[0].log_prob == pytest.approx(score.log_prob, abs=1e-4)
    with pytest.raises(UserError, match=r"sentence 1: the text and the target together have 33 ids.* 32 ids"):
        translator.score(["a" * 20], ["b" * 11])
    with pytest.raises(UserError, match=r"max_input_length=32: .* 32 positions.* at most 31"):
        translator.translate(["a"], max_input_length=32)
    with pytest.raises(UserError, match=r"max_input_size=32: .* 32 positions.* at most 31"):  # as it was typed
        LineTranslator(translator, DecodeHParams(max_input_size=32), "in")


@pytest.mark.slow
def test_outputs_begin_with_their_prefixes(translator):
    encoder, prefixes = translator.encoders["targets"], ["der rote Haus", "", None, "neu", " ein", "\u00fc\u2028", "x"]
    for sampling in (False, True):
        options = {"n_best": 2, "extra_length": 20, "alpha": 0, "sampling": sampling}
        found = translator.translate(TEXTS, prefixes=prefixes, return_token_scores=True, **options)
        for text, prefix, translation in zip(TEXTS, prefixes, found, strict=True):
            forced = encoder.encode(prefix or "") if text.strip() else []
            for h in translation.hypotheses:
                assert h.ids[: len(forced)] == forced and h.tokens == encoder.pieces(h.ids)
                assert h.text == (encoder.decode(h.ids) if text.strip() else "")
                assert h.text.startswith((prefix or "").strip() if text.strip() else "")
                assert sum(h.token_scores) == pytest.approx(h.score, abs=1e-4)


@pytest.mark.slow
def test_prefixes_that_cannot_be(eager, translator):
    length, source = (len(translator.encoders["inputs"].encode(text)) for text in ("a tree a tree", "x"))
    extra_length = length - source  # EOS is counted on both sides
    (found,) = translator.translate(["x"], prefixes=["a tree a tree"], extra_length=extra_length)
    assert found.text.startswith("a tree a tree") and len(found.hypotheses[0].ids) <= length + 1
    with pytest.raises(UserError, match=f"sentence 2: the prefix has {length} ids.* at most {length - 1}"):
        translator.translate(["", "x"], prefixes=["", "a tree a tree"], extra_length=extra_length - 1)
    with pytest.raises(UserError, match="2 texts, but prefixes: 1"):
        translator.translate(["x", "y"], prefixes=["a"])


@pytest.mark.slow
@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_of_several_samples_the_one_of_least_risk(translator, utility):
    options = {"extra_length": 0, "temperature": 0.5, "top_k": 20, "seed": 3}
    drawn = translator.translate(TEXTS, sampling=True, n_best=9, **options)
    found = translator.translate_by_risk(TEXTS, utility=utility, num_samples=9, return_token_scores=True, **options)
    for text, samples, translation in zip(TEXTS, drawn, found, strict=True):
        outputs = [h.text for h in samples.hypotheses]
        if text.strip():
            assert [(h.text, h.score) for h in translation.hypotheses] == [
                (outputs[at], value) for at, value in expected_utilities(outputs, utility)
            ]
            assert (
                len(translation.hypotheses[0].token_scores)
                == len(translation.hypotheses[0].ids) + translation.hypotheses[0].ended
            )
        else:
            assert (translation.text, translation.score) == ("", 0.0)
    with pytest.raises(UserError, match="utility=ter"):
        translator.translate_by_risk(TEXTS, utility="ter")


def test_mistakes_in_calls():
    translator = of_random_weights()
    for call in (translator.translate, translator.translate_by_risk, lambda texts: translator.score(texts, ["a"]),
                 lambda texts: translator.score(["a"], texts)):  # fmt: skip
        with pytest.raises(TypeError, match="must be a list of str, received one str"):
            call("one string")
        with pytest.raises(TypeError, match=r"item 0: must be str, received bytes. Decode it"):
            call([b"bytes"])
    with pytest.raises(TypeError, match=r"no argument `beam`. Nearest: beam_size"):
        translator.translate(["a"], beam=4)
    with pytest.raises(UserError, match="beam_size=0"):
        translator.translate(["a"], beam_size=0)


@pytest.mark.long
@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_model_in_training_on_replicas(compile):
    """The trainer translates with the model whose variables are mirrored; the weights change in between."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        translator = of_random_weights()
    other = of_random_weights()
    for _ in range(2):
        for variable, value in zip(translator.model.weights, other.model.weights, strict=True):
            variable.assign(value)
        found = translator.translate(["abc", "hello"], extra_length=5, compile=compile)
        assert [t.text for t in found] == [t.text for t in other.translate(["abc", "hello"], extra_length=5)]
        for variable in other.model.weights:
            variable.assign(-0.7 * variable)


@pytest.mark.slow
def test_loads_the_newest_checkpoint_or_the_one_named(run_dir):
    newest, first = Translator.load(str(run_dir)), t2t_lite.Translator.load(f"{run_dir}/model.ckpt-100")
    assert (newest.run.step, first.run.step) == (200, 100)
    assert first.run.config["problem"] == "translate_own"
    assert first.problem.languages == ("en", "de")
    assert json.loads((run_dir / "hparams.json").read_text())["hparams"] == first.hparams.values()
