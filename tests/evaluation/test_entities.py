"""Entities of tags, by every scheme."""

import pytest

from t2t_lite.evaluation.entities import are_of_entities, entities


@pytest.mark.parametrize(
    "tags, expected",
    [
        ("O O", []),
        ("B-PER I-PER O B-LOC", [("PER", 0, 1), ("LOC", 3, 3)]),
        ("I-PER I-PER O", [("PER", 0, 1)]),  # IOB1
        ("I-PER B-PER I-PER", [("PER", 0, 0), ("PER", 1, 2)]),
        ("B-PER I-LOC", [("PER", 0, 0), ("LOC", 1, 1)]),  # goes on with another type
        ("B-PER E-PER S-LOC E-LOC", [("PER", 0, 1), ("LOC", 2, 2), ("LOC", 3, 3)]),  # IOBES
        ("B I O B", [("", 0, 1), ("", 3, 3)]),
        ("B-a-b I-a-b", [("a-b", 0, 1)]),
    ],
)
def test_entities_of_tags(tags, expected):
    assert entities(tags.split()) == set(expected)


def test_tags_of_entities_are_known_from_others():
    assert are_of_entities(["O", "B-PER", "I-PER", "E", "S-x"])
    assert not are_of_entities(["O", "NOUN"]) and not are_of_entities(["B-PER", "b-per"])
