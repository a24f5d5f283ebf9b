import dataclasses
import random

import pytest
import sacrebleu

from t2t_lite.decoding.hypothesis import Hypothesis, Translation
from t2t_lite.decoding.minimum_bayes_risk import expected_utilities, ranked

SCORES = {"chrf": sacrebleu.sentence_chrf, "bleu": sacrebleu.sentence_bleu}
EDGES = ["", "a", "a", "Ja.", "Ja!", "  ja  ", "die die die", "die", "Grün\u2028und \U0001f600", "a-b, c (d) 1,000.5"]


def samples(count=20, seed=0):
    draw = random.Random(seed)
    return [
        " ".join(draw.choices(["der", "die", "Haus", "rote", "ist,", "."], k=draw.randint(1, 7))) for _ in range(count)
    ]


def by_definition(texts, utility):
    """The mean over all samples of each one's sentence score."""
    score = SCORES[utility]
    means = [sum(score(text, [other]).score for other in texts) / len(texts) for text in texts]
    first = [place for place in range(len(texts)) if texts[place] not in texts[:place]]
    return sorted(((place, means[place]) for place in first), key=lambda pair: (-pair[1], pair[0]))


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
@pytest.mark.parametrize("texts", [samples(), samples(4) * 3 + samples(9, 1), EDGES, ["one"], [""]])
def test_equals_sacrebleu_pair_by_pair(texts, utility):
    found, expected = expected_utilities(texts, utility), by_definition(texts, utility)
    assert dict(found) == pytest.approx(dict(expected), abs=1e-9)
    assert [value for _, value in found] == sorted((value for _, value in found), reverse=True)


def test_the_tokenization_is_that_of_the_language():
    texts, tokenize = ["我们去学校。", "我们去了学校。", "他买书。"], "zh"
    score = [sum(sacrebleu.sentence_bleu(text, [one], tokenize=tokenize).score for one in texts) / 3 for text in texts]
    assert dict(expected_utilities(texts, "bleu", tokenize)) == pytest.approx(dict(enumerate(score)), abs=1e-9)
    assert {*score} != {100 / 3}  # which it is with 13a: each text is one word


def test_of_equals_the_first_comes_first():
    assert [place for place, _ in expected_utilities(["x", "y", "x", "z", "y"], "bleu")] == [0, 1, 3]


def test_what_occurs_often_counts_often():
    """Alone, the second would win: it has something of both of the others."""
    texts = ["rote Haus", "rote Haus und Baum", "und Baum"]
    assert expected_utilities(texts)[0][0] == 1
    assert expected_utilities(texts + texts[:1] * 5)[0][0] == 0


def test_samples_are_ranked_though_the_first_is_empty():
    texts = ["", "ja", "ja", "ja."]
    drawn = Translation(tuple(Hypothesis(text, ids=[place]) for place, text in enumerate(texts)))
    assert ranked(drawn) is drawn  # of a blank sentence
    found = ranked(dataclasses.replace(drawn, source_tokens=["yes"]), "chrf").hypotheses
    assert [(one.ids[0], pytest.approx(one.score)) for one in found] == by_definition(texts, "chrf")
    assert [one.text for one in found] == ["ja.", "ja", ""]
