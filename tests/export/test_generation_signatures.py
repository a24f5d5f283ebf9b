"""The export of a language model, called as a server does."""

import os
import pathlib
import types

import keras
import pytest
import tensorflow as tf

import t2t_lite
from t2t_lite.data.problem import Problem
from t2t_lite.decoding.generator import Generator
from t2t_lite.errors import UserError
from t2t_lite.export import export_saved_model, generation_signatures
from t2t_lite.export.generation_signatures import GenerationSignatures
from t2t_lite.models import TransformerLM
from t2t_lite.settings.config import HParams
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.text.subwords import train_sentencepiece
from t2t_lite.text.vocabulary import SentencePieceEncoder, TokenTextEncoder
from tests.decoding.runs import SENTENCES
from tests.export.served import HOSTILE, answers_here, as_texts, served, stock_operations

pytestmark = pytest.mark.slow

_LONGEST = 15
_SEARCH = {"beam_size": 3, "alpha": 0.8, "extra_length": 6, "no_repeat_ngram_size": 2, "repetition_penalty": 1.2}
_SEARCH["stop"] = ["r", "ס", "?-"]  # the last would be no regular expression
ROWS = [b"the red", b"", b"   ", b"a gre", "Gr\u00fc".encode(), b"the " * 40, *HOSTILE]
_ALONE = range(0, len(ROWS), 3)


@pytest.fixture(scope="module")
def texts():
    """The rows as a server's graph reads them."""
    return as_texts(ROWS)


@pytest.fixture(scope="module", params=["byte-level BPE", pytest.param("SentencePiece", marks=pytest.mark.long)])
def generator(request, tmp_path_factory):
    """A GPT-2, and a model of our own that reads the zero vector first; both with random weights."""
    made = tmp_path_factory.mktemp("made")
    if request.param == "byte-level BPE":
        folder, _ = pytest.importorskip("tests.extras.hugging_face.gpt_folders").write_gpt(made / "theirs")
        t2t_lite.export.import_hugging_face(folder, str(made / "run"))
        return t2t_lite.load(str(made / "run"))
    train_sentencepiece(SENTENCES, str(made / "vocab"), 330)
    encoder = SentencePieceEncoder(str(made / "vocab.model"))
    keras.utils.set_random_seed(1)
    model = TransformerLM(encoder.vocab_size, hidden_size=16, filter_size=32, num_heads=2, num_layers=1)
    model.build()
    return Generator(model, {"targets": encoder}, HParams())


@pytest.fixture(scope="module")
def exported(generator, tmp_path_factory):
    return export_saved_model(generator, str(tmp_path_factory.mktemp("export")), max_input_length=_LONGEST, **_SEARCH)


@pytest.fixture(scope="module")
def answers(exported):
    calls = {"together": ("serving_default", {"inputs": ROWS}, {})}
    for name in ("generate", "score"):
        calls[name, "none"] = (name, {"inputs": []}, {})
        calls |= {(name, at): (name, {"inputs": [ROWS[at]]}, {}) for at in _ALONE}
    calls["scores"] = ("score", {"inputs": ROWS}, {})
    calls["other"] = ("with_options", {"inputs": ROWS[:5]}, {"alpha": [0.1] * 5, "extra_length": [1, 2, 9, 4, 5]})
    calls["odd"] = ("with_options", {"inputs": ROWS[:5]}, {"alpha": float("nan"), "extra_length": -5})
    return answers_here(exported, calls)


def generated(generator, texts, **options):
    options = {**_SEARCH, **options}
    length = options.pop("extra_length")
    return generator.generate(texts, max_new_tokens=length, max_prompt_length=_LONGEST, **options)


def assert_same(found, expected):
    assert found["outputs"] == [g.text for g in expected]
    assert found["scores"] == pytest.approx([g.score for g in expected], abs=1e-4)
    assert found["truncated"] == [g.truncated for g in expected]


def test_it_generates_as_generator_does(generator, answers, texts):
    """To any bytes; of long prompts only the end is read."""
    found = answers["together"]
    expected = generated(generator, texts)
    assert_same(found, expected)
    endless = [g.text for g in generated(generator, texts, stop=[])]
    assert any(stop in text for stop in _SEARCH["stop"] for text in endless), "not a test otherwise"
    assert found["truncated"][:6] == [False] * 5 + [True] and len({*found["outputs"]}) > 4


def test_options_of_a_call(generator, answers, texts):
    lengths = [1, 2, 9, 4, 5]
    each = [generated(generator, [t], alpha=0.1, extra_length=n)[0] for t, n in zip(texts, lengths, strict=False)]
    assert_same(answers["other"], each)
    assert_same(answers["odd"], generated(generator, texts[:5], extra_length=1))


def test_scores(generator, answers, texts):
    found = answers["scores"]
    encoder = generator.encoders["targets"]
    fits = [at for at, text in enumerate(texts) if len(encoder.encode(text)) <= _LONGEST]
    assert len(fits) > 8 and found["truncated"] == [at not in fits for at in range(len(texts))]
    for at, expected in zip(fits, generator.score([texts[at] for at in fits]), strict=True):
        length = len(expected.token_log_probs)
        assert found["lengths"][at] == length and not any(found["token_scores"][at][length:])
        assert found["scores"][at] == pytest.approx(expected.log_prob, abs=1e-4)
        assert found["token_scores"][at][:length] == pytest.approx(expected.token_log_probs, abs=1e-4)


@pytest.mark.parametrize("name, among", [("generate", "together"), ("score", "scores")])
def test_no_row_changes_another(answers, name, among):
    for at in _ALONE:
        for key, (alone,) in answers[name, at].items():
            other = answers[among][key][at]
            other = other[: len(alone)] if key == "token_scores" else other
            kind = pytest.approx(alone, abs=1e-4) if key in ("scores", "token_scores") else alone
            assert other == kind, (ROWS[at][:50], key)
    assert all(values == [] for values in answers[name, "none"].values())


def test_only_operations_of_the_stock_server(exported):
    assert "SentencepieceTokenizeOp" in stock_operations(exported)


def test_its_card(exported):
    pytest.importorskip("t2t_lite.extras.model_card")
    text = pathlib.Path(exported, "README.md").read_text()
    for words in ('"text-generation"', "beam 3, alpha 0.8", "at most 6 new pieces", "last 15 pieces", "| `score` |"):
        assert words in text, words


def test_samples_depend_on_the_seed_and_the_prompt_alone(eager, tmp_path):
    options = {"sampling": True, "temperature": 0.9, "top_k": 4, "top_p": 0.9, "extra_length": 5, "seed": 3}
    signatures = GenerationSignatures(of_words(tmp_path), None, **options).functions()
    prompts = tf.constant(["red", "house", "red", ""])
    usual = signatures["serving_default"](prompts)["outputs"].numpy().tolist()
    assert usual[0] == usual[2] and len({*usual}) == 3

    def with_seeds(*seeds):
        return signatures["with_options"](prompts, tf.constant(seeds), tf.constant([5] * 4))["outputs"].numpy()

    assert with_seeds(3, 3, 3, 3).tolist() == usual
    first, _, third, _ = with_seeds(1, 2, 5, 4)
    assert first != third and with_seeds(9, 9, 5, 9)[2] == third
    lengths = signatures["with_options"](prompts, tf.constant([3] * 4), tf.constant([1, 2, 1, 5]))["outputs"].numpy()
    words = [len(text.split()) for text in lengths.tolist()]
    assert words[0] <= 1 and words[1] <= 2 and lengths[3] == usual[3], "one limit for each row"


@pytest.mark.long
def test_an_export_opens_again(generator, exported, texts):
    if generator.runs:
        again = t2t_lite.load(os.path.dirname(exported))
        assert generated(again, texts[:5]) == generated(generator, texts[:5])


@pytest.mark.parametrize(
    "wrong", [{"max_input_length": 24}, {"max_input_length": 0}, {"beam_size": 0}, {"stop": ""}, {"extra_length": 0}]
)
def test_mistakes(generator, tmp_path, wrong):
    """Of GPT-2, whose table has 24 positions: one of them is for the continuation."""
    if generator.runs:
        with pytest.raises((UserError, TypeError), match=next(iter(wrong))):
            export_saved_model(generator, str(tmp_path / "x"), **wrong)
        assert not (tmp_path / "x").exists()


class Usual(Problem):
    """Has defaults of its own for searches; its examples have a number of ids if `whole` is one."""

    decode_defaults = {"beam_size": 1, "extra_length": 7, "alpha": 0.0}  # noqa: RUF012
    whole = None

    def example_length(self, encoders):
        return self.whole


def test_what_is_asked_for_precedes_what_the_problem_says(tmp_path):
    """And that precedes what holds for every problem."""
    generator = of_words(tmp_path, Usual())
    for asked in (
        {},
        {"extra_length": 3},
        {"beam_size": 2, "alpha": 0.9},
        {"alpha": 0.0, "top_k": 5, "sampling": True},
    ):
        settings = GenerationSignatures(generator, None, **asked).settings
        expected = {**Usual.decode_defaults, **asked}
        assert {name: settings[name] for name in expected} == expected
        assert settings["repetition_penalty"] == 1 and settings["ends"] == SearchOptions().ends
    signatures = GenerationSignatures(generator, None, extra_length=3)
    assert "beam 1, alpha 0 " in signatures.card()[0]["search"] and "at most 3 new" in signatures.card()[0]["search"]


@pytest.fixture
def searched(eager, monkeypatch):
    """List of the (limit, alpha) of every row that is searched; nothing is found for any."""
    rows = []
    nothing = types.SimpleNamespace(ids=tf.zeros([1, 1, 0], tf.int32), scores=tf.zeros([1, 1]))

    def search(model, prompts, limit, options, alpha, rules):
        rows.extend(zip(limit.numpy().tolist(), alpha.numpy().tolist(), strict=True))
        return nothing

    monkeypatch.setattr(generation_signatures, "beam_search", search)
    return rows


@pytest.mark.parametrize("whole", [None, 9, 900])
def test_a_call_may_ask_for_what_the_export_makes_itself_and_no_more(searched, tmp_path, monkeypatch, whole):
    """Of continuations, and of whole examples; an export of short ones allows 512 ids."""
    problem = Usual()
    problem.whole = whole
    signatures = GenerationSignatures(of_words(tmp_path, problem), None)
    own = whole or 7

    def limit(asked):
        signatures.with_alpha(tf.constant([""]), tf.constant(0.0), tf.constant(asked))
        return searched.pop()[0]

    most = whole or 512
    for asked, expected in ((9999, most), (512, min(512, most)), (511, min(511, most)), (own, own), (0, 1), (-3, 1)):
        assert limit(asked) == expected, asked
    for largest, asked, expected in (
        (own - 1, 9999, own), (own - 1, own, own), (own - 1, own - 1, own - 1), (own, own + 1, own),
    ):  # fmt: skip
        monkeypatch.setattr(generation_signatures, "LARGEST_EXTRA_LENGTH", largest)
        assert limit(asked) == expected, (largest, asked)


@pytest.mark.parametrize("own", [0.0, 0.75, 5.0])
def test_the_alpha_of_a_call_is_in_its_range(searched, tmp_path, own):
    signatures = GenerationSignatures(of_words(tmp_path), None, alpha=own, extra_length=3)
    for asked, expected in ((-1.0, 0), (0.0, 0), (0.0625, 0.0625), (5.0, 5), (6.0, 5), (float("nan"), own)):
        signatures.with_alpha(tf.constant([""]), tf.constant(asked), tf.constant(2))
        assert searched.pop() == (2, expected), asked
    signatures.generate(tf.constant([""]))
    assert searched.pop() == (3, own)


def of_words(folder, problem=None):
    """Returns a Generator of random weights whose ids are words."""
    (folder / "words").write_text("<pad>\n<EOS>\nUNK\nred\nhouse\ngreen\ntree\n")
    encoder = TokenTextEncoder(str(folder / "words"), replace_oov="UNK")
    keras.utils.set_random_seed(1)
    model = TransformerLM(encoder.vocab_size, hidden_size=16, filter_size=32, num_heads=2, num_layers=1)
    model.build()
    return Generator(model, {"targets": encoder}, HParams(), problem)


def test_either_rule_against_repetition_holds_alone(eager, tmp_path):
    """For the prompt's words, too: what was there loses to all other ids, of which there are enough."""
    generator, prompts = of_words(tmp_path), ["red", "tree green", ""]
    repeated = []
    for rules in ({}, {"repetition_penalty": 1000.0}, {"no_repeat_ngram_size": 1}):
        signatures = GenerationSignatures(generator, None, beam_size=1, extra_length=3, **rules)
        outputs = signatures.generate(tf.constant(prompts))["outputs"].numpy()
        words = [f"{prompt} {text.decode()}".split() for prompt, text in zip(prompts, outputs, strict=True)]
        repeated.append(sum(len({*row}) < len(row) for row in words))
    assert repeated[0] and repeated[1:] == [0, 0], repeated


def test_a_prompt_with_the_end_of_a_text_is_continued_as_in_python(tmp_path):
    """By the words of a vocabulary, whose table is a resource that the export has to hold."""
    generator = of_words(tmp_path)
    prompts = ["red <EOS> house", "red <EOS>", "<EOS>", "tree\u00a0house", "", "green <pad>"]
    settings = {"beam_size": 1, "stop": ["red"]}
    path = export_saved_model(generator, str(tmp_path / "export"), extra_length=6, **settings)
    found = served(path)("generate", {"inputs": [prompt.encode() for prompt in prompts]})["outputs"]
    expected = [one.text for one in generator.generate(prompts, max_new_tokens=6, **settings)]
    assert [text.decode() for text in found] == expected
    assert expected[0], "not a test otherwise"  # behind an end inside of the prompt
