"""Texts that are translated sentence by sentence, and where the pieces of their translations stand."""
# Nearest tests of: t2t_lite/decoding/translator.py

from types import SimpleNamespace

import numpy as np
import pytest

from t2t_lite.data.problem import Problem, TranslateProblem
from t2t_lite.decoding.alignment import word_alignment
from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.decoding.command.lines import LineTranslator
from t2t_lite.decoding.hypothesis import Hypothesis, Translation
from t2t_lite.decoding.sentence_parts import joined, splits_sentences, unbroken
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.decoding.scripted import ScriptedModel

BYTES = ByteTextEncoder()


@pytest.fixture
def translator(monkeypatch):
    """Translates each text to itself in small letters, rank by rank with one more "!". Notes what was searched."""
    made = Translator(ScriptedModel(vocab_size=258), {"inputs": BYTES, "targets": BYTES}, HParams())
    made.searched = []

    def search(sources, options, prefixes=None, on_progress=None):
        made.searched += [BYTES.decode(ids) for ids in sources]
        if on_progress:
            on_progress(len(sources))
        texts = [BYTES.decode(ids).lower() for ids in sources]
        prefixes = prefixes or [[]] * len(texts)
        return [
            [Hypothesis(score=-1.0, ids=[*prefix, *BYTES.encode(text + "!" * rank)]) for rank in range(options.n_best)]
            for text, prefix in zip(texts, prefixes, strict=True)
        ]

    def diagonal(sources, targets):
        return [np.eye(max(len(s), len(t)), dtype="float32")[: len(t)] for s, t in zip(sources, targets, strict=True)]

    monkeypatch.setattr(made.searcher, "search", search)
    made._scorer = lambda sources, targets, *_: [np.full(len(target), -0.5) for target in targets]
    made._attention = diagonal
    return made


def test_several_sentences_are_translated_one_by_one_and_joined(translator):
    text, told = " The red house.  A tree was new!\tOld", []
    asked = {"return_attention": True, "return_token_scores": True, "n_best": 2}
    blank, found = translator.translate(["", text], on_progress=told.append, **asked)
    assert translator.searched == ["The red house.", "A tree was new!", "Old"]
    assert (blank.parts, found.parts, sum(told)) == (1, 3, 2)
    best, second = found.hypotheses
    assert best.text == "the red house. a tree was new! old" and best.score == -3.0
    assert second.text == "the red house.! a tree was new!! old!"
    assert [text[start:end] for start, end in found.source_spans] == [*"The", "", *"red", "", *"house.", *"A",
        "", *"tree", "", *"was", "", *"new!", *"Old"]  # fmt: skip
    assert [best.text[start:end] for start, end in best.spans] == [*"the red house.", *"a tree was new!", *"old"]
    assert best.attention.shape == (len(best.ids), len(found.source_tokens) + 1)
    np.testing.assert_array_equal(best.attention.argmax(1), np.arange(len(best.ids)))
    assert len(best.token_scores) == len(best.ids) + 3  # each sentence has its end
    pairs = word_alignment(text, found.source_spans, best.text, best.spans, best.attention)
    assert pairs == [(word, word) for word in range(8)]


def test_what_else_is_split_and_what_is_not(translator):
    (found,) = translator.translate(["Ab. Cd."], prefixes=["x"])
    assert (found.text, found.parts) == ("xab. cd.", 2)
    (found,) = translator.translate_by_risk(["Ab. Cd."], num_samples=2)
    assert (found.parts, len(found.hypotheses)) == (2, 2)
    assert translator.translate(["Ab. Cd."], split_sentences="never")[0].parts == 1
    assert translator.translate([translator.read("Ab. Cd.")])[0].parts == 1
    assert translator.searched == ["Ab.", "Cd."] * 2 + ["Ab. Cd."] * 2
    translator.problem = Problem()  # whose texts may be anything
    assert translator.translate(["Ab. Cd."])[0].parts == 1
    assert translator.translate(["Ab. Cd."], split_sentences="always")[0].parts == 2
    with pytest.raises(UserError, match="split_sentences=yes: expected one of auto, always, never"):
        translator.translate(["a"], split_sentences="yes")
    with pytest.raises(UserError, match="1 text, but prefixes: 2"):
        translator.translate(["Ab. Cd."], split_sentences="always", prefixes=["x", "y"])
    with pytest.raises(TypeError, match="`prefixes` must be a list of str, received one str"):
        translator.translate(["Ab. Cd.", "Ef. Gh."], split_sentences="always", prefixes="xy")
    with pytest.raises(UserError, match=r"^sentence 2: the prefix has 60 ids"):  # the number of the text, not the part
        translator.translate(["Ab. Cd.", "x"], split_sentences="always", prefixes=["x", "y" * 60])
    by_text, by_ids = (
        translator.translate(["Ab. Cd."], split_sentences="always", prefixes=[prefix])[0].text
        for prefix in ("xy", np.array(BYTES.encode("xy")))
    )
    assert by_text == by_ids


def test_spaces_around_a_text_are_not_read(translator):
    """As in training; a vocabulary of bytes has ids for them."""
    text = " \tthe red house\n"
    (found,) = translator.translate([text], return_attention=True)
    best = found.hypotheses[0]
    assert (translator.searched, best.text, found.parts) == (["the red house"], "the red house", 1)
    assert [text[start:end] for start, end in found.source_spans] == [*"the", "", *"red", "", *"house"]
    assert best.attention.shape == (len(best.all_ids), len(found.source_tokens) + 1)
    assert translator.pair_ids(" a ", "b\t") == translator.pair_ids("a", "b")
    translator.problem = Problem()  # whose texts may be anything
    translator.translate([" a "])
    assert translator.searched[-1] == " a " and translator.pair_ids(" a ", "b") != translator.pair_ids("a", "b")


def test_an_output_that_ends_early_is_short(translator, monkeypatch):
    def search(sources, *_):
        return [[Hypothesis(ids=[5] * (len(ids) // 4))] for ids in sources]

    monkeypatch.setattr(translator.searcher, "search", search)
    found = translator.translate(["a" * 100, "a" * 20, "a" * 20 + ". " + "B" * 99])
    assert [one.is_short for one in found] == [True, False, True]


def test_samples_of_parts_are_scored_by_the_mean_and_the_best_decides_whether_it_is_short(translator, monkeypatch):
    samples = [Hypothesis(ids=BYTES.encode(text)) for text in ("x", "abc" * 9, "abc" * 9, "abc" * 9 + "d")]
    monkeypatch.setattr(translator.searcher, "search", lambda sources, *_: [list(samples) for _ in sources])
    texts = ["A" * 40 + ".", "A" * 40 + ". " + "B" * 40]
    one, two = found = translator.translate_by_risk(texts, num_samples=4)
    assert one.text.startswith("abc") and two.parts == 2 and not one.is_short and not two.is_short
    assert 0 < one.score < 100 and two.score == pytest.approx(one.score)
    with pytest.raises(UserError, match=r"^num_samples=0: expected a whole number from 1 to 4,096"):
        translator.translate_by_risk(texts, num_samples=0)
    assert translator.answer(translator.reader().read_all(texts), utility="chrf", num_samples=4) == found


class Own(Problem):
    """Has its own texts."""

    def input_text(self, text):
        return text.replace("#", "").upper()

    def output_text(self, inputs, outputs, encoders):
        return f"[{inputs}] {outputs}"


def test_positions_are_those_of_the_texts_that_are_shown(translator):
    """Not of the one that is encoded, nor of that before a stop string, nor of that before `output_text`."""
    translator.problem = Own()
    text = "#the red# house."
    (found,) = translator.translate([text], return_attention=True, stop="ou")
    best = found.hypotheses[0]
    assert best.text == "[THE RED HOUSE.] the red h"
    assert [best.text[start:end] for start, end in best.spans] == [*"the red h", *[""] * 5]
    places = [start for start, _ in found.source_spans]
    assert places == sorted(places) and all(end <= len(text) for _, end in found.source_spans)
    words = word_alignment(text, found.source_spans, best.text, best.spans, best.attention)
    assert [target for _, target in words] == [3, 4, 5] and {source for source, _ in words} <= {0, 1, 2}


def test_an_unknown_piece_becomes_the_word_of_the_text_before_the_problem_writes_it(translator, monkeypatch):
    translator.problem = Own()
    translator.problem.output_text = lambda inputs, outputs, encoders: outputs + " (" + outputs.split()[-1] + ")"
    monkeypatch.setattr(BYTES, "unknown_id", BYTES.encode("?")[0], raising=False)
    (found,) = translator.translate(["ab #é? cd"], replace_unknown=True, stop=" c")
    assert found.text == "ab é (é)"


def test_no_text_has_no_translation(translator):
    asked = {"return_token_scores": True, "return_attention": True, "replace_unknown": True}
    for choice in ("auto", "always", "never"):
        assert translator.translate([], split_sentences=choice, **asked) == []
        assert translator.translate_by_risk([], split_sentences=choice) == []
    assert translator.score([], []) == [] == translator.translate([], prefixes=[])


def test_long_texts_are_split_as_by_the_decoder_or_cut_off_or_refused(translator):
    translator.hparams = HParams(max_length=12)
    texts = ["a" * 5, "ab cd, ef gh, ij kl", "x" * 30, ""]
    lines = LineTranslator(translator, DecodeHParams(), "in").answer(texts)
    found = translator.translate(texts, long_input="split")
    assert [one.text for one in found] == [one.text for one in lines] and not any(one.truncated for one in found)
    assert [one.parts for one in found] == [one.parts for one in lines] == [1, 3, 4, 1]
    assert found == [translator.translate([text], long_input="split")[0] for text in texts]
    (risk,) = translator.translate_by_risk(texts[1:2], num_samples=2, long_input="split")
    assert risk.parts == 3
    assert translator.translate(texts[1:2], long_input="split", max_input_length=8)[0].parts > 2
    for choice in (None, "truncate"):
        (cut,) = translator.translate(texts[1:2], long_input=choice, max_input_length=8)
        assert (cut.truncated, cut.parts, cut.text) == (True, 1, "ab cd, ")
    with pytest.raises(UserError, match=r"^sentence 2: more pieces than 8\. .*long_input=split\.$"):
        translator.translate(texts[:2], long_input="refuse", max_input_length=8)
    with pytest.raises(UserError, match="long_input=cut: expected one of split, truncate, refuse"):
        translator.translate(texts, long_input="cut")


def test_what_a_reader_reads_is_answered_like_its_text(translator):
    texts = ["Ab. Cd.", "", "ef"]
    readings = translator.reader(split_sentences="always").read_all(texts)
    found = translator.translate(texts, split_sentences="always")
    assert [one.text for one in translator.answer(readings)] == [one.text for one in found]
    assert translator.translate(readings) == found and found[0].parts == 2


def part(text, rows, **fields):
    """A Translation of a part of two pieces; `rows` are the attention of its ids, EOS last."""
    names = {name: fields.pop(name) for name in ("score", "ended", "stopped", "lost", "token_scores") if name in fields}
    spans = [(at, at + 1) for at in range(len(text))]
    ids = [ord(letter) for letter in text]
    attention = np.array(rows, "float32")
    best = Hypothesis(text, tokens=[*text], ids=ids, attention=attention, spans=spans, **names)
    return Translation((best,), source_tokens=["p", "q"], source_spans=[(0, 1), (1, 2)], **fields)


def test_the_fields_of_a_joined_translation_are_those_of_its_parts():
    """Of two letters each; what is only of one part is of the whole, but the end, which is that of all."""
    one = part("x", [[0.5, 0.25, 0.25]], score=-1.5, token_scores=[-0.5, -1.0], lost=["<b>"])
    two = part("yz", [[0.1, 0.2, 0.7], [0, 1, 0], [0, 0, 1]], score=-2.25, truncated=True, ended=False, parts=2)
    three = part("w", [[0, 0.75, 0.25]], score=-4.0, stopped=True, token_scores=[-4.0], lost=["c", "d"], is_short=True)
    found = joined("ab  cd ef", ["ab", "cd", "ef"], [one, two, three])
    (best,) = found.hypotheses
    assert (found.truncated, found.is_short, found.parts, best.ended) == (True, True, 4, False)
    assert (best.text, best.tokens, best.ids) == ("x yz w", [*"xyzw"], [*map(ord, "xyzw")])
    assert (best.score, best.token_scores, best.lost) == (-7.75, [-0.5, -1.0, -4.0], ["<b>", "c", "d"])
    assert found.source_tokens == ["p", "q"] * 3
    assert found.source_spans == [(0, 1), (1, 2), (4, 5), (5, 6), (7, 8), (8, 9)]
    assert best.spans == [(0, 1), (2, 3), (3, 4), (5, 6)]
    expected = [
        [0.5, 0.25, 0, 0, 0, 0, 0.25], [0, 0, 0.1, 0.2, 0, 0, 0.7], [0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0.75, 0.25],
    ]  # fmt: skip
    np.testing.assert_allclose(best.attention, expected)
    whole = joined("ab cd", ["ab", "cd"], [one, three])
    assert (whole.truncated, whole.is_short, whole.hypotheses[0].ended) == (False, True, True)
    assert whole.hypotheses[0].stopped and whole.hypotheses[0].all_ids == [*map(ord, "xw")]
    assert joined("ab", ["ab"], [two]) == two


@pytest.mark.parametrize("share, splits", [(None, True), (0.0, True), (0.099, True), (0.1, False), (0.5, False)])
def test_a_model_of_several_sentences_translates_them_together(share, splits):
    assert splits_sentences(None, TranslateProblem(), {"several_sentences": share}) is splits
    assert splits_sentences("auto", Problem(), {"several_sentences": share}) is False
    assert splits_sentences("always", Problem(), {}) and not splits_sentences("never", TranslateProblem(), {})


def test_parts_are_joined_where_a_passage_is_kept_whole():
    text = "One. <b>Two. Three</b>. Four.  Five."
    source = SimpleNamespace(whole=[(text.index("<b>"), text.index("</b>") + 4)])
    problem = SimpleNamespace(substitution=True, source_text=lambda text: source)
    parts = ["One.", "<b>Two.", "Three</b>.", "Four.", "Five."]
    assert unbroken(parts, text, problem) == ["One.", "<b>Two. Three</b>.", "Four.", "Five."]
    assert unbroken(parts[:3], text, problem) == ["One.", "<b>Two. Three</b>."]
    assert unbroken(parts, text, None) == parts


@pytest.mark.parametrize("length, words", [(9, "9 pieces, more than 8"), (16, "16 pieces"), (17, "more pieces than 8")])
def test_a_text_far_too_long_is_not_counted(translator, length, words):
    """EOS is among its pieces."""
    with pytest.raises(UserError, match=words):
        translator.translate(["a" * (length - 1)], long_input="refuse", max_input_length=8)
    assert translator.translate(["a" * 7], long_input="refuse", max_input_length=8)[0].text == "a" * 7


@pytest.mark.parametrize(
    "pieces, ids, is_short", [(29, 1, False), (30, 9, True), (30, 10, False), (33, 11, False), (34, 11, True)]
)
def test_less_than_a_third_of_thirty_pieces_is_short(translator, monkeypatch, pieces, ids, is_short):
    monkeypatch.setattr(translator.searcher, "search", lambda *_: [[Hypothesis(ids=[5] * ids)]])
    assert translator.translate(["a" * pieces])[0].is_short is is_short
