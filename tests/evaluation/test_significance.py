"""Paired bootstrap: what is chance and what is not."""

import pytest

from t2t_lite.errors import UserError
from t2t_lite.evaluation.score_report import compare

REFERENCE = [f"the {'red' if i % 2 else 'green'} house number {i} is {'old' if i % 3 else 'new'}" for i in range(60)]
ONE_WORSE = ["the house" if i == 7 else line for i, line in enumerate(REFERENCE)]
HALF_WORSE = [line.replace("house", "tree") if i % 2 else line for i, line in enumerate(REFERENCE)]


def test_a_clear_difference_is_significant_and_one_sentence_is_not():
    (clear,) = compare(HALF_WORSE, REFERENCE, REFERENCE, ["bleu"]).values()
    assert clear.translation == pytest.approx(100.0)
    assert clear.difference == pytest.approx(100.0 - clear.baseline)
    assert clear.p_value < 0.01
    assert clear.baseline_interval > clear.translation_interval == pytest.approx(0.0, abs=1e-4)
    (chance,) = compare(ONE_WORSE, REFERENCE, REFERENCE, ["bleu"]).values()
    assert 0 < chance.difference < 5
    assert chance.p_value > 0.05


def test_a_translation_is_not_better_than_itself():
    (same,) = compare(HALF_WORSE, HALF_WORSE, REFERENCE, ["bleu"]).values()
    assert (same.difference, same.baseline_interval) == (0.0, same.translation_interval)
    assert same.p_value == 1.0


def test_seed_and_resamples_are_in_the_signature(monkeypatch):
    first, again = (compare(ONE_WORSE, HALF_WORSE, REFERENCE, ["chrf", "ter"]) for _ in range(2))
    assert first == again
    assert list(first) == ["chrf", "ter"]
    assert "|bs:1000|seed:12345|" in first["chrf"].signature
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    other = compare(ONE_WORSE, HALF_WORSE, REFERENCE, ["chrf"])["chrf"]
    assert "seed:7|" in other.signature
    assert other.translation_interval != first["chrf"].translation_interval
    monkeypatch.setenv("SACREBLEU_SEED", "seven")
    with pytest.raises(UserError, match="SACREBLEU_SEED=seven: expected a whole number"):
        compare(ONE_WORSE, HALF_WORSE, REFERENCE, ["chrf"])


def test_unequal_numbers_of_sentences():
    with pytest.raises(UserError, match="2 translations but 60 references"):
        compare(["a", "b"], REFERENCE, REFERENCE)
