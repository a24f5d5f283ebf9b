import itertools
import time

import keras
import numpy as np
import pytest

from t2t_lite.decoding.alignment import memory_attention, pharaoh, piece_words, replace_unknown, word_alignment
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.models import Transformer, TransformerLM
from tests.decoding.scripted import ScriptedModel


@pytest.mark.parametrize(
    "text, spans, words",
    [
        ("das Haus, ja", [(0, 3), (4, 6), (6, 8), (8, 9), (10, 12)], [0, 1, 1, 1, 2]),
        (" das Haus ", [(0, 4), (4, 5), (5, 7), (7, 9), (9, 10)], [0, 1, 1, 1, None]),  # a space is the next word's
        ("a\u2003b x", [(0, 1), (1, 1), (1, 2), (2, 3), (4, 5)], [0, 1, 1, 1, 2]),  # a space for split(), in two bytes
        ("ab", [(0, 2), (2, 2), (2, 2)], [0, None, None]),  # a stop string, behind the text
        ("", [(0, 0)], [None]),
        ("", [], []),
    ],
)
def test_pieces_belong_to_the_words_where_they_stand(text, spans, words):
    assert piece_words(text, spans) == words


def placed(text):
    """A text and the spans of its pieces, which | divides."""
    borders = [0, *itertools.accumulate(map(len, text.split("|")))]
    return text.replace("|", ""), list(itertools.pairwise(borders))


def test_words_are_aligned_by_the_sums_of_their_pieces():
    """The second target word attends most to one piece of word 0, but more to both pieces of word 1 together."""
    attention = np.array(
        [
            [0.3, 0.2, 0.0, 0.5],  # what goes to EOS does not count
            [0.4, 0.3, 0.3, 0.0],
            [0.4, 0.3, 0.3, 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )
    pairs = word_alignment(*placed("Haus| ro|tes"), *placed("house| r|ed"), attention)
    assert pharaoh(pairs) == "0-0 1-1"
    assert word_alignment("", [], *placed("house"), np.ones((2, 1))) == []
    for text, spans in (("", []), (" ", [(0, 1)]), ("", [(0, 0), (0, 0)])):  # a stop string is not in the text
        assert word_alignment(*placed("a"), text, spans, np.ones((len(spans) + 1, 2))) == []


def test_what_a_stop_string_cuts_does_not_count_for_the_last_word():
    attention = np.array([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.1, 0.8, 0.1]])
    assert word_alignment(*placed("ein| Haus"), "one", [(0, 3), (3, 3), (3, 3)], attention) == [(0, 0)]


UNKNOWN = " \u2047 "  # as SentencePiece writes an unknown piece


@pytest.mark.parametrize(
    "target, rows, text, spans",
    [
        (f"mit| |{UNKNOWN}|.", [0, 1, 1, 2], "mit Bjørn.", None),
        (f"mit| Bj|{UNKNOWN}|rn|!", [0, 1, 1, 1, 2], "mit Bjørn!", None),  # the whole word, in its own punctuation
        (f"„|{UNKNOWN}|“| und| |{UNKNOWN}|ü", [1, 1, 1, 0, 0, 0, 0], "„Bjørn“ und with", None),
        ("mit|  allem", [0, 1], "mit  allem", ["mit", "  allem"]),
    ],
)
def test_unknown_pieces_become_the_source_word_attended_to_most(target, rows, text, spans):
    attention = np.eye(4)[[*rows, 3]][:, [0, 1, 1, 2, 3]]  # places: with, Bj, ørn, comma, EOS
    given, pieces = placed(target)
    unknown = {at: UNKNOWN for at, (start, end) in enumerate(pieces) if given[start:end] == UNKNOWN}
    found, places = replace_unknown(*placed("with| Bj|ørn|,"), given, pieces, unknown, attention)
    assert found == text and len(places) == len(pieces)
    assert spans is None or [found[start:end] for start, end in places] == spans
    words = [word for word in piece_words(found, places) if word is not None]
    assert words == sorted(words) and {*words} == {*range(len(found.split()))}


def test_an_unknown_word_of_a_vocabulary_of_words_keeps_the_space_before_it():
    attention = np.eye(3)
    found = replace_unknown(*placed("a| Bjørn"), *placed("ein| UNK"), {1: "UNK"}, attention)
    assert found == ("ein Bjørn", [(0, 3), (3, 9)])


@pytest.mark.slow
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
def test_a_translator_gives_attention_on_request(eager, run_dir):
    translator, texts = Translator.load(str(run_dir)), ["the red house.", "", "a tree"]
    options = {"n_best": 2, "extra_length": 3}
    found = translator.translate(texts, return_attention=True, **options)
    for text, t in zip(texts, found, strict=True):
        for h in t.hypotheses if text else ():
            assert h.attention.shape == (len(h.tokens) + h.ended, len(t.source_tokens) + 1)
            np.testing.assert_allclose(h.attention.sum(1), 1, atol=1e-5)
            assert "".join(h.text[start:end] for start, end in h.spans) == h.text
            pairs = word_alignment(text, t.source_spans, h.text, h.spans, h.attention)
            assert [word for _, word in sorted(pairs, key=lambda pair: pair[1])] == list(range(len(h.text.split())))
            assert all(0 <= word < len(text.split()) for word, _ in pairs)
    assert found[0].attention is found[0].hypotheses[0].attention and found[1].attention is None
    assert found == translator.translate(texts, **options)
    assert translator.translate(texts, **options)[0].attention is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ScriptedModel(vocab_size=20), "ScriptedModel .*attention_weights"),
        # A language model reads a text and its translation as one sequence.
        (lambda: TransformerLM(20, hidden_size=8, filter_size=16, num_heads=2, num_layers=1),
         "^The model TransformerLM does not expose its attention to inputs"),
    ],
    ids=["without attention", "without attention to inputs"],
)  # fmt: skip
def test_a_model_that_does_not_show_its_attention(make, words):
    with pytest.raises(UserError, match=words):
        memory_attention(make())([[4, 1]], [[5, 1]])


@pytest.mark.parametrize("word", ["!" * 10**6 + "a" + "?" * 10, "!" * 10**6])
def test_a_hostile_word_is_copied_in_linear_time(word):
    start = time.process_time()
    (text, _) = replace_unknown(word, [(0, len(word))], UNKNOWN, [(0, 3)], {0: UNKNOWN}, np.eye(2))
    assert text == (word if word.endswith("!") else "a") and time.process_time() - start < 2
