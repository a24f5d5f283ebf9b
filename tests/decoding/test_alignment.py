import keras
import numpy as np
import pytest

from t2t_lite.config import HParams
from t2t_lite.decoding.alignment import memory_attention, pharaoh, piece_words, replace_unknown, word_alignment
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.models import Transformer
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.decoding.scripted import ScriptedModel


@pytest.mark.parametrize(
    "text, pieces, words",
    [
        ("das Haus, ja", "▁das ▁Ha us , ▁ja", [0, 1, 1, 1, 2]),
        ("  das \t Haus ", "▁das ▁ Ha us", [0, 1, 1, 1]),
        ("a ü x", "▁a ▁ <0xC3> <0xBC> ▁x", [0, 1, 1, 1, 2]),
        ("a\u2003b x", "▁a <0xE2> <0x80> <0x83> b ▁x", [0, 1, 1, 1, 1, 2]),  # a blank for split(), of three bytes
        ("ab\u00a0c d", "▁ab \u00a0 c ▁d", [0, 1, 1, 2]),
        ("the Ωψ, house", "▁the ▁ <unk> , ▁house", [0, 1, 1, 1, 2]),
        (
            "the \u2047 house \u2047",
            "▁the <unk> ▁house ▁ <unk>",
            [0, 1, 2, 3, 3],
        ),  # as SentencePiece writes unknown ones
        ("\ufffd a", "▁ <0xFF> ▁a", [0, 0, 1]),
        ("Ａ １０ ｂ", "▁A ▁1 0 ▁b", [0, 1, 1, 2]),  # the vocabulary's normalization
        ("ab c", "<0x61> <0x62> <0x20> <0x63>", [0, 0, 1, 1]),
        ("one two two", "one <UNK> two", [0, 1, 2]),  # a vocabulary of words
        ("cut off here", "▁cut ▁of", [0, 1]),
        ("", "", []),
    ],
)
def test_pieces_are_found_in_their_words(text, pieces, words):
    assert piece_words(text, pieces.split(" ") if pieces else []) == words


def test_every_piece_of_a_real_vocabulary_is_found(run_dir):
    encoder = Translator.load(str(run_dir)).encoders["inputs"]
    for text in ("the red house.", "Grün\u2028und \U0001f600 neu", " \u2003 \u00a0zwei  drei\x1fvier\u3000", "▁ a ▁b"):
        ids = encoder.encode(text)
        words = piece_words(encoder.decode(ids), encoder.pieces(ids))
        assert words == sorted(words) and set(words) == set(range(len(text.replace("▁", " ").split())))


def test_other_pieces_are_refused():
    with pytest.raises(UserError, match="Cannot align 'one two': its pieces, 3 4 5 …, are not found in it"):
        piece_words("one two", ["3", "4", "5"])


def test_words_are_aligned_by_the_sums_of_their_pieces():
    """The second target word attends most to one piece of word 0, but more to both pieces of word 1 together."""
    source, target = ["▁Haus", "▁ro", "tes"], ["▁house", "▁r", "ed"]
    attention = np.array(
        [
            [0.3, 0.2, 0.0, 0.5],  # what goes to EOS does not count
            [0.4, 0.3, 0.3, 0.0],
            [0.4, 0.3, 0.3, 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )
    pairs = word_alignment("Haus rotes", source, "house red", target, attention)
    assert pharaoh(pairs) == "0-0 1-1"
    assert word_alignment("", [], "house", ["▁house"], np.ones((2, 1))) == []
    for text, pieces in (("", []), (" ", ["▁"]), ("", ["▁", "."])):  # a stop string is no longer in the text
        assert word_alignment("a", ["▁a"], text, pieces, np.ones((len(pieces) + 1, 2))) == []


@pytest.mark.parametrize(
    "target, rows, text",
    [
        ("▁mit ▁ <unk> .", [0, 1, 1, 2], "mit Bjørn."),
        ("▁mit ▁Bj <unk> rn !", [0, 1, 1, 1, 2], "mit Bjørn!"),  # the whole word, in its own punctuation
        ("▁„ <unk> “ ▁und ▁ <unk> <0xC3> <0xBC>", [1, 1, 1, 0, 0, 0, 0, 0], "„Bjørn“ und with"),
        ("▁mit ▁allem", [0, 1], "mit allem"),
    ],
)
def test_unknown_pieces_become_the_source_word_attended_to_most(target, rows, text):
    pieces = target.split()
    attention = np.eye(4)[[*rows, 3]][:, [0, 1, 1, 2, 3]]  # places: with, Bj, ørn, comma, EOS
    found = replace_unknown("with Bjørn,", ["▁with", "▁Bj", "ørn", ","], pieces, attention)
    assert found == text


def test_attention_is_the_mean_of_the_heads_of_a_layer():
    keras.utils.set_random_seed(0)
    model = Transformer(20, hidden_size=8, filter_size=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=2)
    sources, targets = np.array([[4, 5, 6, 1], [7, 1, 0, 0]]), np.array([[8, 1, 0], [9, 10, 1]])
    expected = keras.ops.mean(model.attention_weights({"inputs": sources, "targets": targets})["memory"][0], 1)
    one, two = memory_attention(model)([[4, 5, 6, 1], [7, 1]], [[8, 1], [9, 10, 1]])
    np.testing.assert_allclose(one, expected[0][:2], atol=1e-5)
    np.testing.assert_allclose(two, expected[1], atol=1e-5)
    assert not two[:, 2:].any()


@pytest.mark.slow
def test_a_translator_gives_attention_on_request(run_dir):
    translator, texts = Translator.load(str(run_dir)), ["the red house.", "", "a tree"]
    options = {"n_best": 2, "extra_length": 3}
    found = translator.translate(texts, return_attention=True, **options)
    for text, t in zip(texts, found, strict=True):
        for h in t.hypotheses if text else ():
            assert h.attention.shape == (len(h.tokens) + h.ended, len(t.source_tokens) + 1)
            np.testing.assert_allclose(h.attention.sum(1), 1, atol=1e-5)
            pairs = word_alignment(text, t.source_tokens, h.text, h.tokens, h.attention)
            assert [word for _, word in sorted(pairs, key=lambda pair: pair[1])] == list(range(len(h.text.split())))
            assert all(0 <= word < len(text.split()) for word, _ in pairs)
    assert found[0].attention is found[0].hypotheses[0].attention and found[1].attention is None
    assert found == translator.translate(texts, **options)
    assert translator.translate(texts, **options)[0].attention is None


def test_a_model_that_does_not_show_its_attention():
    encoders = {"inputs": ByteTextEncoder(), "targets": ByteTextEncoder()}
    translator = Translator(ScriptedModel(vocab_size=258), encoders, HParams())
    with pytest.raises(UserError, match="ScriptedModel does not show its attention"):
        translator.translate(["a"], return_attention=True)
