"""The functions of an export around a model that is written by hand: one id a byte."""

import types

import pytest
import tensorflow as tf

from t2t_lite.decoding.translator import Translator
from t2t_lite.export.signatures import TextSignatures
from t2t_lite.models.transformer_lm import TransformerLM
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.decoding.scripted import PlainModel, ScriptedModel

ENCODERS = {"inputs": ByteTextEncoder(), "targets": ByteTextEncoder()}


class Scripted(ScriptedModel):
    """The scripted model, which can be asked for all logits at once, too."""

    def __call__(self, features, training=False):
        return PlainModel(self)(features)


def made(longest=64, hparams=None, end_bias=0.0, **options):
    model = Scripted(vocab_size=258, spread=1.0, end_bias=end_bias, longest=160)
    translator = Translator(model, ENCODERS, hparams or HParams())
    return translator, TextSignatures(translator, longest, **options)


@pytest.fixture(scope="module")
def small():
    """Inputs of up to eight bytes and EOS; greedy."""
    return made(9, beam_size=1, extra_length=2)[1]


def test_an_export_says_whether_its_model_wants_single_sentences(small):
    """By a signature more, which is that of texts."""
    functions = small.functions()
    assert functions["sentences"] is functions["serving_default"] and "`sentences`" in small.card()[1]
    translator = made(9)[0]
    translator.runs = [types.SimpleNamespace(config={"several_sentences": 0.5})]
    of_several = TextSignatures(translator, 9)
    assert "sentences" not in of_several.functions() and "`sentences`" not in of_several.card()[1]


@pytest.mark.slow
def test_a_text_is_truncated_beyond_the_longest_length_alone(small):
    inputs = tf.constant(["a" * 7, "a" * 8, "a" * 9, f"\u3000 {'a' * 8}\n ", "", " " * 8, " " * 50])
    expected = [False, False, True, False, False, False, False]  # the spaces around a text are not read
    for name in ("serving_default", "n_best", "tokens"):
        assert getattr(small, name)(inputs)["truncated"].numpy().tolist() == expected, name
    cut = small.tokens(inputs[:3])["input_ids"].numpy()
    assert [[i for i in row if i] for row in cut.tolist()] == [[99] * n for n in (7, 8, 8)]


def test_of_a_score_either_side_may_be_truncated(small):
    inputs, targets = tf.constant(["a" * 8, "a" * 9, "a", "a"]), tf.constant(["b" * 8, "b", "b" * 9, ""])
    found = small.score(inputs, targets)
    assert found["truncated"].numpy().tolist() == [False, True, True, False]
    assert found["lengths"].numpy().tolist() == [9, 2, 9, 1]  # with EOS


def test_of_positions_that_both_sides_share_inputs_have_half_and_outputs_the_rest():
    sizes = {"hidden_size": 8, "filter_size": 16, "num_heads": 2, "num_layers": 1}
    model = TransformerLM(258, **sizes, position="learned", max_position=32)
    translator = Translator(model, ENCODERS, HParams())
    options = {"beam_size": 2, "extra_length": 30, "alpha": 0.0}
    signatures, texts = TextSignatures(translator, None, **options), ["a" * 9, "b", "a" * 15]
    assert signatures.max_input_length == 16
    found = tf.function(signatures.serving_default, autograph=False)(tf.constant(texts))
    for text, score, t in zip(found["outputs"], found["scores"], translator.translate(texts, **options), strict=True):
        assert text.numpy().decode() == t.text and float(score) == pytest.approx(t.score, abs=1e-4)
    scored = signatures.score(tf.constant(texts), tf.constant(["b" * 20, "b", "b" * 15]))
    expected = translator.score(texts, ["b" * 15, "b", "b" * 15])
    assert scored["scores"].numpy() == pytest.approx([score.log_prob for score in expected], abs=1e-4)
    assert scored["truncated"].numpy().tolist() == [True, False, False]


@pytest.mark.slow
def test_a_request_may_ask_for_as_much_as_the_export_has(eager, monkeypatch):
    """Though it is more than others may ask for."""
    monkeypatch.setattr("t2t_lite.export.signatures.LARGEST_EXTRA_LENGTH", 1)
    translator, signatures = made(9, end_bias=-99.0, beam_size=1, extra_length=4)
    for asked, length in ((4, 4), (9, 4), (2, 2)):
        found = signatures.with_options(tf.constant(["ab", "c"]), tf.constant(0.6), tf.constant(asked))
        expected = translator.translate(["ab", "c"], beam_size=1, extra_length=length, compile=False)
        assert found["scores"].numpy() == pytest.approx([t.score for t in expected], abs=1e-4)


@pytest.mark.slow
def test_n_best_is_a_search_for_so_many(eager):
    """Where a search for the best output ends before the others are final."""
    texts, options = ["ab", "hello", "xyz"], {"beam_size": 4, "extra_length": 8, "alpha": 0.6}
    translator, signatures = made(end_bias=6.0, **options)
    expected = translator.translate(texts, n_best=4, **options)
    assert [len(t.hypotheses) for t in expected] == [2, 4, 4]
    found = signatures.n_best(tf.constant(texts))
    outputs = [[text.decode() for text in row] for row in found["outputs"].numpy()]
    assert outputs == [[h.text for h in t.hypotheses] + [""] * (4 - len(t.hypotheses)) for t in expected]
    for row, translation in zip(found["scores"].numpy(), expected, strict=True):
        assert row[: len(translation.hypotheses)] == pytest.approx([h.score for h in translation.hypotheses], abs=1e-4)


@pytest.mark.few("ends")
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{"beam_size": 1}, {"alpha": 2.0}, {"extra_length": 3}, {"length_penalty": "power"}, {"ends": "top"}],
    ids=lambda options: next(iter(options)),
)
def test_an_export_searches_by_its_own_settings(options):
    """Each of which changes what is found."""
    texts, usual = ["ab", "hello", "xyz", "q", "the red", "old house"], {"extra_length": 12, "alpha": 1.0}
    usual["beam_size"] = 2
    translator, signatures = made(end_bias=6.0, **usual | options)
    expected, otherwise = (translator.translate(texts, **usual | more) for more in (options, {}))
    assert [t.text for t in expected] != [t.text for t in otherwise], "not a test otherwise"
    found = signatures.serving_default(tf.constant(texts))
    assert [text.decode() for text in found["outputs"].numpy()] == [t.text for t in expected]
    assert found["scores"].numpy() == pytest.approx([t.score for t in expected], abs=1e-4)


def test_a_problem_has_its_own_defaults():
    translator, _ = made(9)
    translator.problem = types.SimpleNamespace(decode_defaults={"beam_size": 3, "extra_length": 300})
    assert TextSignatures(translator, 9).settings | {"alpha": 0.6} == made(9, beam_size=3, extra_length=300)[1].settings
    assert TextSignatures(translator, 9, beam_size=2).settings["beam_size"] == 2


@pytest.mark.slow
def test_an_export_keeps_banned_texts():
    banned, texts = ["%3", "o"], ["abc", "de", "fgh"]
    translator, signatures = made(9, beam_size=2, extra_length=6, banned_texts=banned)
    found = [text.numpy().decode() for text in signatures.serving_default(tf.constant(texts))["outputs"]]
    options = {"beam_size": 2, "extra_length": 6}
    assert found == [one.text for one in translator.translate(texts, **options, banned_texts=banned)]
    free = [one.text for one in translator.translate(texts, **options)]
    assert found != free and signatures.settings["banned_texts"] == tuple(banned)
    assert 'never "%3", "o"' in signatures.card()[0]["search"]
