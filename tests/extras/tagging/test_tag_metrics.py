"""Entities of tags, by every scheme, and metrics of tags against values worked out by hand."""

import pytest

from t2t_lite.errors import UserError
from t2t_lite.evaluation import answer_scores
from t2t_lite.extras.tagging.tag_metrics import TAG_METRICS, are_of_entities, entities, odd_tags
from tests.extras.own_problems import check_names

TAGS = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC"]], [["B-PER", "I-PER", "O", "B-ORG"], ["B-LOC", "B-LOC"]]


@pytest.mark.parametrize(
    "name, predicted, expected, score",
    [
        ("token_accuracy", *TAGS, 4 / 6),
        ("entity_precision", *TAGS, 2 / 3),
        ("entity_recall", *TAGS, 2 / 4),
        ("entity_f1", *TAGS, 2 * 2 / (3 + 4)),
        ("entity_f1", [["O", "O"]], [["O", "O"]], 0.0),
    ],
)
def test_scores(name, predicted, expected, score):
    assert TAG_METRICS[name](predicted, expected) == pytest.approx(score, abs=1e-12)


def test_tags_of_no_entities():
    with pytest.raises(UserError, match=r"entities: .*'NOUN, VERB'.* O, B-"):
        TAG_METRICS["entity_f1"]([["NOUN", "VERB"]], [["NOUN", "VERB"]])


def test_what_an_input_is_called_and_what_an_evaluation_shows():
    check_names("tag_own", "sentence", "token_accuracy")


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        ([["O", "B-x"]], ["token_accuracy", "entity_f1", "entity_precision", "entity_recall"]),
        ([["NN", "VB"]], ["token_accuracy"]),
    ],
)
def test_the_metrics_that_the_answers_allow(expected, names):
    assert answer_scores.metric_names("tagging", expected) == names


@pytest.mark.parametrize(
    "tags, expected",
    [
        ("O O", []),
        ("B-PER I-PER O B-LOC", [("PER", 0, 1), ("LOC", 3, 3)]),
        ("I-PER I-PER O", [("PER", 0, 1)]),  # IOB1
        ("I-PER B-PER I-PER", [("PER", 0, 0), ("PER", 1, 2)]),
        ("B-PER I-LOC", [("PER", 0, 0), ("LOC", 1, 1)]),  # goes on with another type
        ("B-PER E-PER S-LOC E-LOC", [("PER", 0, 1), ("LOC", 2, 2), ("LOC", 3, 3)]),  # IOBES
        ("B-PER L-PER U-LOC L-LOC O", [("PER", 0, 1), ("LOC", 2, 2), ("LOC", 3, 3)]),  # BILOU
        ("B-PER I-PER L-PER U-LOC U-LOC", [("PER", 0, 2), ("LOC", 3, 3), ("LOC", 4, 4)]),
        ("U-PER I-PER O", [("PER", 0, 0), ("PER", 1, 1)]),
        ("B-PER M-PER E-PER S-LOC B-LOC O", [("PER", 0, 2), ("LOC", 3, 3), ("LOC", 4, 4)]),  # BMES
        ("B-PER M-LOC E-LOC W-PER", [("PER", 0, 0), ("LOC", 1, 2), ("PER", 3, 3)]),  # BMEWO
        ("B M E S B E", [("", 0, 2), ("", 3, 3), ("", 4, 5)]),  # words of Chinese
        ("B I O B", [("", 0, 1), ("", 3, 3)]),
        ("I-PER E-PER E-PER I-LOC", [("PER", 0, 1), ("PER", 2, 2), ("LOC", 3, 3)]),
        ("M-PER M-PER L-PER W-LOC M-LOC", [("PER", 0, 2), ("LOC", 3, 3), ("LOC", 4, 4)]),
        ("B-a-b I-a-b", [("a-b", 0, 1)]),
    ],
)
def test_entities_of_tags(tags, expected):
    assert entities(tags.split()) == set(expected)


def test_tags_of_entities_are_known_from_others():
    for tags in ("O B-PER I-PER E S-x", "O B-PER I-PER L-PER U-PER", "B-x M-x E-x W-x", "O B-x M-x E-x S-x", "O"):
        assert are_of_entities(tags.split()), tags
    for tags in ("O NOUN", "B-PER b-per", "B-PER L-PER E-PER", "U-PER S-PER", "M-x I-x", "W-x S-x", "O OO", "B_x"):
        assert not are_of_entities(tags.split()), tags


@pytest.mark.parametrize(
    "tags, odd",
    [
        ("O B-PER I-PER", []),
        ("O B-PER I-PER L-PER U-PER", []),
        ("NOUN VERB ADJ B-PER", []),  # parts of speech
        ("O B_PER I_PER", ["B_PER", "I_PER"]),
        ("O PER-B PER-I", ["PER-B", "PER-I"]),
        ("B-PER I-PER b-per", ["b-per"]),
        ("O B-PER I-PER L-PER E-PER", ["L-PER"]),
        ("O PERSON PLACE", ["PERSON", "PLACE"]),
        ("B-x I-x NN VB", []),  # half of them
        ("B-x I-x E-x NN VB", ["NN", "VB"]),
    ],
)
def test_tags_that_only_resemble_those_of_entities(tags, odd):
    assert odd_tags({*tags.split()}) == odd
