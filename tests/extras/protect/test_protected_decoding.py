"""Protected texts through a Translator, the lines of t2t-decoder and an export; by a model that copies its input."""

# Nearest tests of: extras/protect/protection.py, extras/protect/protected_graph.py

import logging
import random
import re

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.corpora.sentences import sentence_parts
from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.decoding.command.lines import LineTranslator
from t2t_lite.decoding.command.text_files import json_line
from t2t_lite.decoding.sentence_parts import unbroken
from t2t_lite.decoding.translator import Translator
from t2t_lite.export import formats
from t2t_lite.extras.protect.protected_graph import ProtectedSignatures
from t2t_lite.extras.protect.protected_texts import KINDS, ProtectedTexts
from t2t_lite.settings.config import HParams
from t2t_lite.text.subwords import train_sentencepiece
from t2t_lite.text.vocabulary import SentencePieceEncoder

ALL = ProtectedTexts(KINDS)
TEXTS = [
    "see https://x.org/a?b=1 , {name} !",
    "",
    "{name}",
    " {a}\u00a0<b/> ",
    "the {a} and the {a}",
    "<b>old</b> me@x.org",
    "nothing",
    "⟦url1⟧ is no url https://x.org/b",
    " ".join(f"{{a{number}}}" for number in range(12)) + " see",
    "⟦ or ⟦url12⟧",
    "see {n, plural, one {the house} other {# old}} &nbsp; 5%% of %-5.2f <!-- no <b> -->",
]


class Copying:
    """Gives each id of the input what a table says, 20 nats before any other."""

    max_length = None

    def __init__(self, vocab_size, changes=()):
        self.table = np.arange(vocab_size)
        for old, new in changes:
            self.table[old] = new

    def __call__(self, features, training=False):
        inputs, count = features["inputs"], tf.shape(features["targets"])[1]
        inputs = tf.pad(inputs, ((0, 0), (0, count)))[:, :count]
        return 20.0 * tf.one_hot(tf.gather(tf.constant(self.table, tf.int32), inputs), len(self.table))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    prefix = str(tmp_path_factory.mktemp("vocabulary") / "v")
    train_sentencepiece(["see the old house and nothing else, or is no x"] * 9, prefix, 360,
                        user_defined_symbols=ALL.symbols)  # fmt: skip
    return SentencePieceEncoder(f"{prefix}.model")


@pytest.fixture(scope="module")
def made(encoder):
    """Returns a function that makes a Translator whose model changes symbols: {"⟦url1⟧": "x"}."""

    def make(changes=()):
        problem = registry.problem("translate_own")
        problem.remember({"files": {}, "languages": ["en", "de"], "protect": list(KINDS)})
        ids = [(encoder.encode(old)[-1], encoder.encode(new)[-1]) for old, new in dict(changes).items()]
        encoders = {"inputs": encoder, "targets": encoder}
        return Translator(Copying(encoder.vocab_size, ids), encoders, HParams(), problem)

    return make


@pytest.fixture(scope="module")
def copying(made):
    return made()


@pytest.fixture(scope="module")
def wrong(made):
    return made(WRONG)


SWAPPED = {"⟦url1⟧": "⟦placeholder1⟧", "⟦placeholder1⟧": "⟦url1⟧"}
WRONG = {"⟦url1⟧": ",", "⟦placeholder2⟧": "⟦placeholder1⟧", "⟦tag1⟧": "⟦url7⟧"}


def texts_of(translations):
    return [translation.text for translation in translations]


@pytest.mark.slow
def test_protected_texts_come_through(copying):
    found = copying.translate(TEXTS, beam_size=2, n_best=2)
    expected = [*TEXTS]
    expected[TEXTS.index("⟦ or ⟦url12⟧")] = "⟦ or ⟦ url12⟧"  # no symbol of this vocabulary, and made to look like none
    assert texts_of(found) == expected
    assert "⟦url1⟧" in found[0].tokens and "⟦url1⟧" in found[0].source_tokens
    assert not any(translation.hypotheses[0].lost for translation in found)
    for text, translation in zip(TEXTS, found, strict=True):  # which the second best may well lose
        for one in translation.hypotheses:
            assert all(one.text.count(kept) == text.count(kept) for _, kept in ALL.hide(text).texts)
    for unchanged in found[2:4]:  # nothing to translate: no search
        assert (unchanged.score, unchanged.tokens, unchanged.hypotheses[0].ended) == (0.0, [], True)


@pytest.mark.slow
def test_another_order_is_that_of_the_symbols(made):
    (found,) = made(SWAPPED).translate(TEXTS[:1])
    assert found.text == "see {name} , https://x.org/a?b=1 !" and not found.hypotheses[0].lost


@pytest.mark.slow
def test_what_the_model_loses_stands_at_the_end_and_what_it_invents_is_removed(wrong):
    found = wrong.translate(TEXTS)
    assert texts_of(found)[0] == "see , , {name} ! https://x.org/a?b=1"
    assert texts_of(found)[4:6] == ["the {a} and the {a}", "old</b> me@x.org <b>"]
    assert [one.hypotheses[0].lost for one in found[:6]] == [["https://x.org/a?b=1"], [], [], [], ["{a}"], ["<b>"]]


def test_lines_are_named_whose_protected_texts_were_lost(wrong, caplog):
    lines_of = LineTranslator(wrong, DecodeHParams.parse(""), "in.en", as_json=True)
    with caplog.at_level(logging.WARNING):
        outputs, answers = lines_of.outputs(["nothing", *TEXTS[4:6], "see"])
    assert re.search(r"in\.en: .*line 2 \(\{a\}\), 3 \(<b>\)", caplog.text)
    assert '"lost": ["{a}"]' in outputs[1] and '"lost"' not in outputs[0]
    assert json_line(2, "", answers[1]) == outputs[1].replace(TEXTS[4], "", 1)


@pytest.mark.slow
def test_a_prefix_and_a_scored_target_have_the_symbols_of_their_text(copying, encoder):
    text = TEXTS[0]
    (found,) = copying.translate([text], prefixes=["{name} see https://x.org/a?b=1"])
    assert found.text.startswith("{name} see https://x.org/a?b=1")
    assert found.tokens.count("⟦placeholder1⟧") >= 1 and "{" not in "".join(found.tokens)
    ids = found.hypotheses[0].ids[:3]  # which have the symbols already
    assert copying.translate([text], prefixes=[ids])[0].hypotheses[0].ids[:3] == ids
    (score,) = copying.score([text], [text])
    assert score.log_prob == pytest.approx(0, abs=1e-3)  # that of the output it copies
    pair = copying.pair_ids("{a} {b} {a}", "{b} {a} {c} {a} {a}")
    assert encoder.decode(pair[1]) == "⟦placeholder2⟧ ⟦placeholder1⟧ {c} ⟦placeholder3⟧ {a}"


def test_pieces_have_their_places_in_the_texts(copying):
    source = copying.read(TEXTS[0])
    pieces = copying.encoders["inputs"].pieces(source.ids)
    places = [TEXTS[0][start:end] for start, end in source.spans(copying.encoders["inputs"], source.ids)]
    assert dict(zip(pieces, places, strict=True))["⟦url1⟧"] == "https://x.org/a?b=1"
    assert "".join(places[1:]).replace(" ", "") == TEXTS[0].replace(" ", "")
    output, lost, spans = source.restored(pieces, "⟦url1⟧ see", [(0, 6), (6, 10)])
    assert [output[start:end] for start, end in spans] == ["https://x.org/a?b=1", " see"] and lost == ["{name}"]


@pytest.mark.slow
def test_of_a_long_text_only_what_is_read_is_put_back(copying):
    text = "see {a} " + "the old house " * 9 + "{b}"
    (found,) = copying.translate([text], max_input_length=12)
    assert found.truncated and found.text.startswith("see {a} the old") and "{b}" not in found.text


def test_no_sentence_ends_within_a_protected_text(copying):
    text = 'The house. See <img alt="An old house. It is."/> here. Nothing else.'
    assert unbroken(sentence_parts(text), text, copying.problem) == [
        "The house.", 'See <img alt="An old house. It is."/> here.', "Nothing else."
    ]  # fmt: skip
    assert len(unbroken(sentence_parts(text), text, None)) == 4
    assert texts_of(copying.translate([text], split_sentences="always")) == [text]


@pytest.mark.slow
def test_an_export_gives_what_a_translator_gives(wrong):
    draw = random.Random(4)
    parts = [
        "see ", "the ", "old ", "{a}", "{b} ", "http://x.y ", "<b>", "</b>", " ", "⟦url1⟧", "⟦", "me@x.yz", "é", "%d",
        "%%", "&amp;", "{n, plural, other {", "}}", "<!--", "-->",
    ]  # fmt: skip
    texts = [*TEXTS, *("".join(draw.choices(parts, k=draw.randrange(1, 16))) for _ in range(60))]
    signatures = ProtectedSignatures(wrong, 24, beam_size=2, extra_length=2)
    options = {"beam_size": 2, "extra_length": 2, "n_best": 2, "split_sentences": "never", "max_input_length": 24}
    expected = wrong.translate(texts, **options)
    assert 5 < sum(one.truncated for one in expected) < 50
    found = signatures.n_best(tf.constant(texts))
    for row, one in zip(found["outputs"].numpy(), expected, strict=True):
        assert [each.decode() for each in row] == [*(h.text for h in one.hypotheses), ""][:2]
    assert found["truncated"].numpy().tolist() == [one.truncated for one in expected]
    assert found["scores"][2].numpy().tolist() == [0.0, tf.float32.min]
    found = signatures.tokens(tf.constant(texts))
    assert [one.decode() for one in found["outputs"].numpy()] == texts_of(expected)
    tokens = [one.decode() for one in found["tokens"][0].numpy() if one]
    assert tokens == expected[0].tokens and "⟦placeholder1⟧" in tokens
    scored = signatures.score(tf.constant(texts[:20]), tf.constant(texts[20:40]))
    whole = ~scored["truncated"].numpy()  # a URL that the input lacks is spelled, which may take many pieces
    by_python = np.array([one.log_prob for one in wrong.score(texts[:20], texts[20:40])])
    assert whole.sum() > 5 and scored["scores"].numpy()[whole] == pytest.approx(by_python[whole], rel=1e-4, abs=1e-3)
    assert signatures.card()[0]["unchanged in outputs"] == ", ".join(KINDS)


def test_an_export_for_another_toolkit_says_that_symbols_are_its_user_s(copying, monkeypatch, caplog):
    monkeypatch.setattr(formats, "check_model", lambda *arguments: None)
    with caplog.at_level(logging.WARNING):
        formats.check("ctranslate2", copying)
    assert "⟦url1⟧" in caplog.text and "SavedModels" in caplog.text
