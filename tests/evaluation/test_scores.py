"""BLEU against figures worked out by hand."""

import math

import pytest

from t2t_lite.errors import UserError
from t2t_lite.evaluation.scores import TOKENIZATIONS, corpus_bleu


def test_clipped_precisions_and_brevity_penalty():
    # 4 of 5 words, 3 of 4 pairs, 2 of 3 triples, 1 of 2 quadruples; then 4 words where the reference has 5.
    assert corpus_bleu(["a b c d e"], ["a b c d f"]).score == pytest.approx(
        100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    )
    assert corpus_bleu(["a b c d"], ["a b c d e"]).score == pytest.approx(100 * math.exp(1 - 5 / 4))


def test_counts_are_summed_over_the_corpus():
    one_by_one = [corpus_bleu([text], ["a b c d"]).score for text in ("a b c d", "a b x y")]
    # 6 of 8 words, 4 of 6 pairs, 2 of 4 triples, 1 of 2 quadruples.
    together = corpus_bleu(["a b c d", "a b x y"], ["a b c d"] * 2).score
    assert together == pytest.approx(100 * (6 / 8 * 4 / 6 * 2 / 4 * 1 / 2) ** 0.25)
    assert together != pytest.approx(sum(one_by_one) / 2)


def test_equal_texts_score_exactly_100():
    assert corpus_bleu(["The red house is old ."] * 3, ["The red house is old ."] * 3).score == 100.0


def test_case_and_tokenisation_are_in_the_signature():
    cased = corpus_bleu(["The red house is OLD."], ["the red house is old."])
    uncased = corpus_bleu(["The red house is OLD."], ["the red house is old."], lowercase=True, tokenize="intl")
    assert cased.score < 100.0 == uncased.score
    assert "case:mixed" in cased.signature
    assert "tok:13a" in cased.signature
    assert "case:lc" in uncased.signature
    assert "tok:intl" in uncased.signature
    assert "version:" in uncased.signature
    assert str(uncased) == f"100.00 ({uncased.signature})"


@pytest.mark.parametrize("tokenize", TOKENIZATIONS)
def test_every_tokenisation_works_as_installed(tokenize):
    assert corpus_bleu(["Das Haus ist alt."], ["Das Haus ist alt."], tokenize=tokenize).score == 100.0


@pytest.mark.parametrize(
    ("hypotheses", "references", "options", "words"),
    [
        (["a"], ["a", "b"], {}, "1 translations but 2 references"),
        ([], [], {}, "no sentences"),
        (["a"], ["a"], {"tokenize": "13b"}, "13a, intl"),
    ],
)
def test_mistakes(hypotheses, references, options, words):
    with pytest.raises(UserError, match=words):
        corpus_bleu(hypotheses, references, **options)
