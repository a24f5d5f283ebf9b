"""Attention as lines between words, as heat maps and as a grid, against the weights of models."""
# Nearest tests of: t2t_lite/visualization/sentence_attention.py

import dataclasses
import types

import numpy as np
import pytest

from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.models import TransformerEncoder
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import ByteTextEncoder
from t2t_lite.visualization.attention_pictures import SMALLEST, SMALLEST_IN_GRID, attend, draw_attention
from t2t_lite.visualization.sentence_attention import SentenceAttention, Tokens
from tests.decoding.scripted import ScriptedModel
from tests.visualization.attention_cases import (
    SIZES,
    drawn_matrices,
    drawn_weights,
    expected_weights,
    make_translator,
    read_svg,
)

TEXT, TARGET = "ab cd e", "xy z"
MODELS = {
    "plain": {},
    "relative": {"self_attention": {"type": "dot_product_relative", "max_relative_position": 3}},
    "restricted": {"self_attention": {"type": "restricted", "neighborhood": 3}},
    "half precision": {"dtype": "mixed_bfloat16"},
}


@pytest.fixture(scope="module")
def translator():
    return make_translator()


@pytest.fixture(scope="module")
def found(translator):
    return attend(translator, TEXT, TARGET)


def shown(weights, smallest=SMALLEST):
    return np.where(weights >= smallest, weights, 0)


@pytest.mark.slow
@pytest.mark.few("plain", "restricted")
@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
def test_lines_are_the_models_weights(options):
    translator = make_translator(**options)
    source, target = ([f"<0x{ord(c):02X}>" for c in text] for text in (TEXT, TARGET))
    for kind, attention in attend(translator, TEXT, TARGET).items():
        expected = expected_weights(translator, TEXT, TARGET, kind)
        for layer in range(1, len(expected) + 1):
            queries, keys, weights = drawn_weights(draw_attention(attention, layer, heads=[1, 3]))
            assert sorted(weights) == [1, 3]
            for head in weights:
                np.testing.assert_allclose(weights[head], shown(expected[layer - 1, head - 1]), atol=6e-5)
        if "restricted" in str(options) and kind != "memory":
            assert (weights[1] > 0).sum(1).max() <= 3
        assert queries == [*(source if kind == "encoder" else target), "<EOS>"]
        assert keys == (["<begin>", *target] if kind == "decoder" else [*source, "<EOS>"])


def test_layers_and_heads_count_from_1_and_the_last_layer_but_one_is_drawn(translator, found):
    first = drawn_weights(draw_attention(found["encoder"], heads=[2]))[2]
    assert [*first] == [2]
    weights = expected_weights(translator, TEXT, TARGET, "encoder")
    np.testing.assert_allclose(first[2], shown(weights[SIZES["num_encoder_layers"] - 2, 1]), atol=6e-5)


@pytest.mark.slow
def test_the_decoder_is_one_step_behind_what_it_predicts(translator, found):
    """Row t depends on the targets before t alone, which are what its columns say."""
    decoder = found["decoder"]
    assert decoder.keys == ["<begin>", *decoder.queries[:-1]] and decoder.queries[-1] == "<EOS>"
    for at in range(len(TARGET)):
        other = attend(translator, TEXT, TARGET[:at] + "Q" + TARGET[at + 1 :])
        for kind in ("decoder", "memory"):
            equal = [
                np.allclose(a[:, row], b[:, row], atol=1e-6)
                for row in range(len(TARGET) + 1)
                for a, b in zip(found[kind].weights[:1], other[kind].weights[:1], strict=True)
            ]
            assert equal[: at + 1] == [True] * (at + 1) and not equal[at + 1]
    texts = {text["text"] for text in read_svg(draw_attention(decoder))[2]}
    assert {"step that predicts", "target read so far", "<begin>"} <= texts
    assert any(text.startswith("Shifted by one") for text in texts)


@pytest.mark.parametrize("heads", [[1], [2, 4], None], ids=str)
def test_heat_maps_are_the_models_weights(translator, found, heads):
    expected = expected_weights(translator, TEXT, TARGET, "memory")[0]
    memory = found["memory"]
    drawing = draw_attention(memory, layer=1, heads=heads, view="heat_map")
    maps = drawn_matrices(drawing, len(memory.queries), len(memory.keys))
    heads = heads or [1, 2, 3, 4]
    assert len(maps) == len(heads)
    for head, drawn in zip(heads, maps, strict=True):
        np.testing.assert_allclose(drawn["weights"], shown(expected[head - 1]), atol=6e-5)
        assert (drawn["rows"], drawn["columns"]) == (memory.queries, memory.keys)
        assert f"head {head}" in {text["text"] for text in read_svg(drawing)[2]}


def test_a_grid_has_every_head_of_every_layer(translator, found):
    expected = expected_weights(translator, TEXT, TARGET, "encoder")
    encoder = found["encoder"]
    maps = drawn_matrices(draw_attention(encoder, view="grid"), len(encoder.queries), len(encoder.keys))
    drawn = np.array([drawn["weights"] for drawn in maps]).reshape(expected.shape)
    np.testing.assert_allclose(drawn, shown(expected, SMALLEST_IN_GRID), atol=6e-5)


# By hand: one head of one layer; the word "goes" is of two pieces, and so is "geht".
PIECES = SentenceAttention(
    "memory",
    ["▁sie", "▁ge", "ht", "<EOS>"],
    ["▁she", "▁go", "es", "<EOS>"],
    [np.array([[[0.7, 0.1, 0.1, 0.1], [0.2, 0.5, 0.2, 0.1], [0.0, 0.1, 0.7, 0.2], [0.0, 0.0, 0.0, 1.0]]], np.float32)],
    Tokens("sie geht", ("▁sie", "▁ge", "ht"), ((0, 3), (4, 6), (6, 8))),
    Tokens("she goes", ("▁she", "▁go", "es"), ((0, 3), (4, 6), (6, 8))),
)


def test_pieces_of_a_word_are_put_together():
    """What goes to a word is the sum over its pieces; what comes from one is the mean."""
    queries, keys, weights = drawn_weights(draw_attention(PIECES, whole_words=True))
    assert (queries, keys) == (["sie", "geht", "<EOS>"], ["she", "goes", "<EOS>"])
    np.testing.assert_allclose(weights[1], [[0.7, 0.2, 0.1], [0.1, 0.75, 0.15], [0, 0, 1]], atol=6e-5)


@pytest.mark.parametrize("view", ["lines", "heat_map"])
def test_a_sum_that_is_rounded_to_more_than_1_is_drawn(view):
    """As sums of bfloat16 weights often are."""
    (weights,) = PIECES.weights
    attention = dataclasses.replace(PIECES, weights=[weights * np.float32(1.004)])
    picture = draw_attention(attention, view=view, whole_words=True, word="<EOS>")
    assert len(picture.content("png")) > 1000


@pytest.mark.parametrize(
    ("word", "whole_words", "rows"),
    [("geht", False, [1, 2]), ("Geht!", True, [1]), ("ht", False, [2]), ("▁ge", False, [1]), ("<EOS>", False, [3])],
)
def test_only_a_words_lines_are_drawn(word, whole_words, rows):
    drawing = draw_attention(PIECES, word=word, whole_words=whole_words)
    every = drawn_weights(draw_attention(PIECES, whole_words=whole_words))[2][1]
    drawn = drawn_weights(drawing)[2][1]
    np.testing.assert_array_equal(drawn[rows], every[rows])
    assert not np.delete(drawn, rows, 0).any()
    boxes = [box for box in read_svg(drawing)[0] if box["height"] == 20]
    tokens = [box for box in boxes if box["fill"] == "#bbbbbb"]
    strips = {box["y"]: box["fill-opacity"] for box in boxes if box not in tokens}
    assert len(tokens) == len(rows)  # the word itself, and the keys shaded by what they get
    np.testing.assert_allclose(list(strips.values()), [w for w in every[rows].mean(0) if w >= SMALLEST], atol=6e-5)


def test_right_to_left_text_is_drawn_from_right_to_left():
    sides = Tokens("שלום לכם", ("▁שלום", "▁לכם"), ((0, 4), (5, 8)))
    weights = [np.array([[[0.9, 0.1, 0.0], [0.3, 0.6, 0.1], [0.0, 0.2, 0.8]]], np.float32)]
    attention = SentenceAttention("encoder", sides.labels, sides.labels, weights, sides, sides)
    (drawn,) = drawn_matrices(draw_attention(attention, view="heat_map"), 3, 3)
    assert drawn["columns"] == attention.keys[::-1] and drawn["rows"] == attention.queries
    np.testing.assert_allclose(drawn["weights"], weights[0][0][:, ::-1], atol=6e-5)
    (word, *_) = [text for text in read_svg(draw_attention(attention))[2] if text["text"] == "▁שלום"]
    assert (word["direction"], word["text-anchor"]) == ("rtl", "start")  # starts at its right end, beside the lines


@pytest.mark.slow
def test_the_models_own_translation_is_drawn_without_a_target(run_dir):
    translator = Translator.load(str(run_dir))
    best = translator.translate(["the red house"], extra_length=3)[0].hypotheses[0]
    found = attend(translator, "the red house", extra_length=3)
    assert found["memory"].queries == [*best.tokens, *["<EOS>"] * best.ended]
    assert found["decoder"].keys == ["<begin>", *found["memory"].queries[:-1]]
    whole = found["memory"].whole_words()
    assert whole.keys == ["the", "red", "house", "<EOS>"]
    np.testing.assert_allclose(whole.weights[0].sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layer": 0}, "layer=0: the model has 3 layers"),
        ({"layer": 4}, "layer=4: the model has 3 layers"),
        ({"heads": [1, 5]}, "head=5: the model has 4 heads"),
        ({"heads": []}, "heads is empty"),
        ({"word": "zebra"}, "word='zebra' .*Expected one of: ab cd e <EOS>"),
        ({"view": "line"}, "view='line': Nearest: lines. Expected one of lines, heat_map, grid."),
        ({"view": "grid", "layer": 1}, "a grid shows all layers"),
    ],
)
def test_what_the_model_does_not_have(found, options, words):
    with pytest.raises(UserError, match=words):
        draw_attention(found["encoder"], **options)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["", "a"], "^text is blank"),
        ([" \t ", "a"], "^text is blank"),
        (["a", ""], "^target is blank"),
        (["a" * 100_000, "a"], "^text: 100,001 tokens.* 200"),
        (["a", "a" * 200], "^target: 201 tokens"),
        (["a", [5] * 400], "^target: 400 tokens"),
    ],
)
def test_texts_that_cannot_be_drawn(translator, texts, words):
    with pytest.raises(UserError, match=words):
        attend(translator, *texts)


@pytest.mark.slow
def test_texts_that_the_model_cannot_read():
    translator = make_translator(position="learned", max_position=9)
    assert attend(translator, "a" * 8, [5] * 9)["memory"].weights[0].shape[1:] == (9, 9)
    for texts, words in ((["a" * 9, "a"], "^text: 10 tokens.* at most 9"), (["a", [5] * 10], "^target: 10 tokens")):
        with pytest.raises(UserError, match=words):
            attend(translator, *texts)


def test_a_model_of_another_task_shows_the_attention_over_its_text(translator, found):
    """A classifier's target is what is asked for: it is 0, and only the kinds over the text are there."""
    features = {"inputs": 2, "targets": 2, "weight": 1}
    problem = types.SimpleNamespace(task="classification", features=features, encoded_text=str)
    classifier = types.SimpleNamespace(model=translator.model, encoders=translator.encoders, problem=problem)
    (kind, own), *others = attend(classifier, TEXT).items()
    assert (kind, others) == ("encoder", [])
    np.testing.assert_allclose(own.weights, found["encoder"].weights, atol=1e-6)
    with pytest.raises(UserError, match="task classification"):
        attend(classifier, TEXT, TARGET)


def test_an_encoder_has_a_position_before_the_text():
    model = TransformerEncoder(258, 3, head="class", hidden_size=16, filter_size=16, num_heads=4, num_layers=1)
    problem = types.SimpleNamespace(task="classification", features={"inputs": 2, "targets": 1}, encoded_text=str)
    encoders = {"inputs": ByteTextEncoder()}
    found = attend(types.SimpleNamespace(model=model, encoders=encoders, problem=problem), "ab c")["encoder"]
    assert (
        found.queries == found.keys == ["[CLS]", *encoders["inputs"].pieces(encoders["inputs"].encode("ab c")), "<EOS>"]
    )
    words = found.whole_words()
    assert words.queries == words.keys == ["[CLS]", "ab", "c", "<EOS>"] and words.weights[0].shape == (4, 4, 4)
    np.testing.assert_allclose(words.weights[0][:, 0, 0], found.weights[0][:, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(words.weights[0][:, 3, 3], found.weights[0][:, 5, 5], rtol=1e-6)


def test_a_model_that_does_not_show_its_attention():
    encoders = {"inputs": ByteTextEncoder(), "targets": ByteTextEncoder()}
    with pytest.raises(UserError, match=r"ScriptedModel .*attention_weights"):
        attend(Translator(ScriptedModel(vocab_size=258), encoders, HParams()), "a", "b")
