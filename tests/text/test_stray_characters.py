"""Odd spaces and invisible characters in a text to be translated give the ids of the plain text."""

import random
import unicodedata

import pytest
import tensorflow as tf

from t2t_lite.decoding.translator import Translator
from t2t_lite.settings.config import HParams
from t2t_lite.text.offsets import piece_spans
from t2t_lite.text.reading_graph import reader
from t2t_lite.text.stray_characters import INVISIBLE, SPACES, reading_plain
from t2t_lite.text.subwords import train_sentencepiece
from t2t_lite.text.vocabulary import ByteTextEncoder, SentencePieceEncoder
from tests.decoding.scripted import ScriptedModel

LINES = ["the red house was built", "das rote Haus wurde gebaut", "größe 語"]
STRAY = {**dict.fromkeys(map(chr, SPACES), " "), **dict.fromkeys(map(chr, INVISIBLE), "")}


def learned(folder, lines=LINES, **options):
    train_sentencepiece(lines * 9, str(folder / "v"), 330, **options)
    return SentencePieceEncoder(str(folder / "v.model"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return learned(tmp_path_factory.mktemp("plain"))


def test_the_characters_are_those_of_unicode():
    """Each space is one of Unicode's; what is removed has no category that is visible."""
    assert {*SPACES, 0x20} == {code for code in range(0x110000) if unicodedata.category(chr(code)) == "Zs"}
    assert {unicodedata.category(chr(code)) for code in INVISIBLE} <= {"Cf", "Mn", "Cn"}


def test_every_stray_character_gives_the_ids_of_the_plain_text(encoder):
    plain = reading_plain(encoder)
    texts = [f"the{c}red {c} hou{c}se{c}" for c in STRAY] + ["".join(STRAY)]
    expected = [encoder.encode(f"the{p}red {p} hou{p}se{p}") for p in STRAY.values()] + [[]]
    assert [plain.encode(text) for text in texts] == expected
    assert plain.tf_encode(tf.constant(texts)).to_list() == expected
    assert encoder.encode("the\u00a0red") != encoder.encode("the red"), "the vocabulary itself is as it was"
    assert plain.fingerprint == encoder.fingerprint and plain.decode(expected[0]) == encoder.decode(expected[0])


def test_texts_without_them_keep_their_ids_and_mixtures_are_one_in_python_and_in_the_graph(encoder):
    draw, plain = random.Random(5), reading_plain(encoder)
    usual = [*"the red größe 語 ", "\t", "\x00", "\x85", "\u2028", "\u2581", "\ufffd", "\u0301", "😀", "\u3164", "  "]
    assert not {*usual} & {*STRAY}
    texts = ["".join(draw.choices(usual, k=draw.randint(0, 12))) for _ in range(1000)]
    assert [plain.encode(text) for text in texts] == [encoder.encode(text) for text in texts]
    mixed = ["".join(draw.choices([*usual, *[*STRAY][:40]], k=draw.randint(0, 12))) for _ in range(1000)]
    expected = [encoder.encode("".join(STRAY.get(c, c) for c in text)) for text in mixed]
    assert [plain.encode(text) for text in mixed] == expected == plain.tf_encode(tf.constant(mixed)).to_list()


def test_pieces_keep_their_places_in_the_text(encoder):
    plain, text = reading_plain(encoder), "the\u00a0re\u00add \u200bhouse"
    spans = piece_spans(plain, plain.encode(text), text)
    assert "".join(text[start:end] for start, end in spans).replace("\u00ad", "").replace("\u200b", "") == "theredhouse"


def test_what_a_vocabulary_has_learned_or_its_publisher_decided_stays(tmp_path):
    french = learned(tmp_path, [*LINES, "Qui est là\u00a0?", "le zéro\u200cnon joint"])
    plain = reading_plain(french)
    for text in ("là\u00a0?", "zéro\u200cnon"):
        assert plain.encode(text) == french.encode(text)
    assert plain.encode("là\u202f?") == french.encode("là ?")
    other = learned(tmp_path, normalization="nmt_nfkc")
    assert reading_plain(other) is other
    characters = ByteTextEncoder()
    assert reading_plain(characters) is characters


def test_a_translator_and_its_export_read_the_plain_text(encoder):
    encoders = {"inputs": encoder, "targets": encoder}
    model = ScriptedModel(vocab_size=encoder.vocab_size, longest=64)
    translator = Translator(model, encoders, HParams())
    odd, usual = "\ufeffDas rote\u00a0Haus wur\u00adde\u200b gebaut", "Das rote Haus wurde gebaut"
    assert translator.read(odd).ids == translator.read(usual).ids == encoder.encode(usual)
    assert translator.translate(["\u200b\u00ad"])[0].text == ""
    sources = reader(translator.encoders["inputs"], 64)(tf.constant([odd, usual, "\u200b\u00ad"]))
    assert sources.ids[0].numpy().tolist() == sources.ids[1].numpy().tolist()
    assert sources.is_blank.numpy().tolist() == [False, False, True]
    assert translator.pair_ids(odd, odd) == [[*encoder.encode(usual), 1], [*encoder.encode(odd), 1]]
