"""Scores by length, and the worst sentences, counted by hand."""

import pytest

from t2t_lite.evaluation.score_report import scores_by_length, worst_sentences
from t2t_lite.evaluation.scores import corpus_bleu

LENGTHS = (3, 9, 10, 19, 61)
REFERENCES = [" ".join(f"w{i}" for i in range(length)) for length in LENGTHS]


def test_a_bucket_ends_before_its_limit():
    buckets = scores_by_length(REFERENCES, REFERENCES, ["bleu"])
    assert [(bucket.words, bucket.sentences) for bucket in buckets] == [("0-9", 2), ("10-19", 2), ("60+", 1)]
    assert [bucket.scores["sacreBLEU"] for bucket in buckets] == [100.0] * 3
    assert [bucket.words for bucket in scores_by_length(REFERENCES, REFERENCES, ["bleu"], limits=[10])] == [
        "0-9",
        "10+",
    ]


def test_a_bucket_is_a_corpus_of_its_own():
    short = [REFERENCES[0], "w0 w1 w2 w3 w4"]
    first, *others = scores_by_length([*short, *REFERENCES[2:]], REFERENCES, ["bleu"])
    assert first.scores["sacreBLEU"] == corpus_bleu(short, REFERENCES[:2]).score
    assert first.length_ratio == pytest.approx(8 / 12)
    assert [bucket.scores["sacreBLEU"] for bucket in others] == [100.0] * 2


def test_words_are_those_of_the_tokenization():
    (bucket,) = scores_by_length(["一二三四五六七八九十一二"], ["一二三四五六七八九十一二"], ["bleu"], "zh")
    assert bucket.words == "10-19"


def test_the_worst_come_first_and_equal_ones_in_order():
    references = ["the red house", "a green tree", "an old house", "a new tree"]
    hypotheses = ["the red house", "xyz", "an old mouse", "xyz"]
    found = worst_sentences(hypotheses, references, 3)
    assert [sentence.line for sentence in found] == [2, 4, 3]
    assert found[0].score == 0.0
    assert [sentence.line for sentence in worst_sentences(hypotheses, references, 3, "ter")] == [2, 4, 3]
    assert len(worst_sentences(hypotheses, references, 10, "bleu")) == 4


def test_several_references():
    (worst,) = worst_sentences(["a b", "c d"], [["x y", "c d"], ["a b", "z z"]], 1)
    assert (worst.line, worst.score) == (1, 100.0)
