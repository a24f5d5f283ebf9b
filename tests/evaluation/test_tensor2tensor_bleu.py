"""tensor2tensor's BLEU by numbers that are worked out by hand, where it differs from sacreBLEU's, and where not."""

import math

import pytest

from t2t_lite.evaluation.score_files import tensor2tensor_bleu, tokens
from t2t_lite.evaluation.scores import corpus_bleu


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Um 3.30, 5. oder 3:30 Uhr!", "Um 3.30 , 5 . oder 3:30 Uhr !"),  # as with "intl", like the next one
        ("$5.00 a+b (1978.", "$ 5.00 a + b ( 1978."),
        ("80 m².", "80 m² ."),  # ² is a number, but no digit: with "intl" the full stop stays
        ("Kapitel Ⅳ, Seite ½.", "Kapitel Ⅳ , Seite ½ ."),
        (r"a\b", r"a\b"),
    ],
)
def test_tokens(text, expected):
    assert tokens(text) == expected.split()


@pytest.mark.parametrize(
    "hypothesis, reference, precisions, brevity",
    [
        # Five words, of which the last one is wrong, for six.
        ("Die Wohnung hat 80 m2.", "Die Wohnung hat 80 m².", (4 / 5, 3 / 4, 2 / 3, 1 / 2), math.exp(1 - 6 / 5)),
        ("ein Haus", "ein Haus", (1, 1), 1),  # there are no longer n-grams
        ("ein Haus", "ein Baum steht", (1 / 2, 1 / 2), math.exp(1 - 3 / 2)),  # no pair of one: half as good as one
        ("v w x y z", "a b c d e", (1 / 10, 1 / 16, 1 / 24, 1 / 32), 1),
        ("", "ein Haus", (0,), 1),
        ("", "", (0,), 1),
    ],
)
def test_scores(hypothesis, reference, precisions, brevity):
    found = tensor2tensor_bleu([hypothesis], [[reference]])
    assert found == pytest.approx(100 * brevity * math.prod(precisions) ** (1 / 4))


def test_of_usual_text_it_is_sacrebleus():
    hypotheses = ["Der Zug fährt um 3.30 Uhr.", 'Sie sagt: "Ein rotes Auto!"', ""]
    references = [["Der Zug fuhr um 3.30 Uhr ab.", 'Sie sagt: "Das rote Auto!"', "nichts"], [*hypotheses[:2], "auch"]]
    for several in (references[:1], references):
        for lowercase in (False, True):
            texts = [text.upper() for text in hypotheses] if lowercase else hypotheses
            expected = corpus_bleu(texts, several, lowercase, "intl").score
            assert tensor2tensor_bleu(texts, several, lowercase) == pytest.approx(expected)
