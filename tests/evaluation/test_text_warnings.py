"""Texts whose scores are wrong without an error, and texts like them whose scores are right."""

import logging
import unicodedata

import pytest

from t2t_lite.evaluation.scores import corpus_bleu, corpus_scores

CHINESE = ["我们今天去学校。", "他昨天买了一本书。"]
JAPANESE = ["私は昨日、新しい本を買いました。"]
THAI = ["ฉันรักประเทศไทย และอาหารไทย", "วันนี้อากาศดีมาก"]
KOREAN = ["나는 어제 새 책을 샀습니다.", "오늘 날씨가 아주 좋습니다."]
FRENCH = ["Le café était fermé à Noël.", "Il a été élégant."]


@pytest.fixture
def warnings_of(caplog):
    def call(hypotheses, references=None, metrics=("bleu",), **options):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "t2t_lite"):
            scores = corpus_scores(hypotheses, references or hypotheses, metrics, **options)
        return "\n".join(caplog.messages), scores

    return call


@pytest.mark.parametrize(
    "text, tokenize, suggested",
    [(CHINESE, "13a", "zh"), (CHINESE, "none", "zh"), (THAI, "intl", "char"), (THAI, "zh", "char")],
)
def test_a_text_without_spaces_needs_another_tokenization(warnings_of, text, tokenize, suggested):
    said, scores = warnings_of(text, tokenize=tokenize, where="hyp")
    assert scores["bleu"].score == 0.0  # of a perfect translation
    assert said.startswith("hyp: BLEU") and f"--tokenization={suggested};" in said
    said, scores = warnings_of(text, tokenize=suggested)
    assert (said, scores["bleu"].score) == ("", pytest.approx(100.0))
    assert warnings_of(text, tokenize=tokenize, where=None)[0] == ""


@pytest.mark.parametrize(
    "text", [KOREAN, FRENCH, ["Haus", "Donaudampfschifffahrt", "Straßenbahn"], ["Peking (北京) is a city."], [""]]
)
def test_text_with_spaces_and_lists_of_words_are_as_they_should_be(warnings_of, text):
    assert warnings_of(text, metrics=("bleu", "chrf", "ter"))[0] == ""


def test_words_that_something_else_separates(warnings_of):
    assert "BLEU with the tokenization 13a" in warnings_of(["▁the▁old▁house▁and▁the▁new▁one▁are▁in▁one▁street"])[0]


def test_ter_counts_characters_where_it_can(warnings_of):
    said, _ = warnings_of(CHINESE, metrics=("ter",))
    assert "TER needs spaces" in said and "--ter_normalized --ter_asian_support" in said
    of_japanese = warnings_of(JAPANESE, ["私は今日、新しい本を買いました。"], ("ter",),
                              ter={"normalized": True, "asian_support": True})  # fmt: skip
    assert of_japanese[0] == "" and 0 < of_japanese[1]["ter"].score < 50
    said, _ = warnings_of(THAI, metrics=("ter",), ter={"normalized": True, "asian_support": True})
    assert "no option for this script" in said


def test_forms_of_unicode_that_never_match(warnings_of):
    decomposed = [unicodedata.normalize("NFD", line) for line in FRENCH]
    for pair in ((decomposed, FRENCH), (FRENCH, decomposed), (FRENCH, [FRENCH, decomposed])):
        assert warnings_of(*pair)[0].startswith("2 lines, such as line 1: text and reference are in different")
    assert warnings_of([FRENCH[0], decomposed[1]], FRENCH)[0].startswith("1 line, such as line 2")
    for pair in (
        (FRENCH, FRENCH),
        (decomposed, decomposed),
        (["Il est alle.", "oui"], decomposed),
        (decomposed, ["a", "b"]),
    ):
        assert warnings_of(*pair)[0] == ""


def test_blank_lines_in_one_of_several_references(warnings_of):
    full = ["the old house is red", "the small tree is very old now"]
    said, scores = warnings_of(["the old house is red", "the small tree"], [full, ["an old house is red", " "]])
    assert said.startswith("reference 2 of 2: 1 blank line, such as line 2.") and scores["bleu"].score == 100.0
    assert warnings_of(full, [["", full[1]], full])[0].startswith("reference 1 of 2: 1 blank line, such as line 1.")
    assert warnings_of(["", full[1]], [["", full[1]], ["", full[1]]])[0] == ""  # of a blank source
    assert warnings_of(full, [full, ["", full[1]]], ("chrf",))[0] == ""  # which takes the best reference


def test_bleu_alone_warns_as_well(caplog):
    corpus_bleu(CHINESE, CHINESE)
    assert "--tokenization=zh" in caplog.text
