"""Entities of tags, by every scheme."""

import pytest

from t2t_lite.extras.tagging.tag_metrics import are_of_entities, entities, odd_tags


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
        ("B-a-b I-a-b", [("a-b", 0, 1)]),
    ],
)
def test_entities_of_tags(tags, expected):
    assert entities(tags.split()) == set(expected)


def test_tags_of_entities_are_known_from_others():
    assert are_of_entities(["O", "B-PER", "I-PER", "E", "S-x"])
    assert are_of_entities(["O", "B-PER", "I-PER", "L-PER", "U-PER"]) and are_of_entities(["B-x", "M-x", "E-x", "W-x"])
    assert not are_of_entities(["O", "NOUN"]) and not are_of_entities(["B-PER", "b-per"])
    assert not are_of_entities(["B-PER", "L-PER", "E-PER"]) and not are_of_entities(["U-PER", "S-PER"])


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
    ],
)
def test_tags_that_only_resemble_those_of_entities(tags, odd):
    assert odd_tags({*tags.split()}) == odd
