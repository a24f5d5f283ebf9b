import itertools

import pytest

from t2t_lite.extras.parsing.trees import ALONE, OTHER_TAG, align, cost, learn_tags

KNOWN = {"": ["N", "J"], "the": ["D"], "saw": ["V", "N"], "and": ["C"]}


def every_alignment(tags, words):
    if not tags and not words:
        yield []
    if tags and words:
        yield from ([(tags[0], words[0]), *rest] for rest in every_alignment(tags[1:], words[1:]))
    if tags:
        yield from ([(tags[0], None), *rest] for rest in every_alignment(tags[1:], words))
    if words:
        yield from ([(None, words[0]), *rest] for rest in every_alignment(tags, words[1:]))


def test_what_is_learned():
    pairs = [
        ("saw", "N"),
        ("saw", "V"),
        ("saw", "V"),
        ("the", "D"),
        ("the", "D"),
        ("dog", "N"),
        ("new", "J"),
        ("x", "N"),
    ]
    assert learn_tags(pairs) == {
        "": ["N", "J"],
        "dog": ["N"],
        "new": ["J"],
        "saw": ["V", "N"],
        "the": ["D"],
        "x": ["N"],
    }


@pytest.mark.parametrize("known", [KNOWN, {}])
@pytest.mark.parametrize("tags", [t for n in range(4) for t in itertools.product("DNV", repeat=n)][::3])
@pytest.mark.parametrize("words", ["", "the", "the dog", "dog saw the", "saw and saw the"])
def test_no_other_alignment_costs_less(tags, words, known):
    words = words.split()
    found = align(list(tags), words, known)
    assert [tag for tag, _ in found if tag is not None] == list(tags)
    assert [word for _, word in found if word is not None] == words
    assert cost(found, known) == min(cost(pairs, known) for pairs in every_alignment(list(tags), words))


def test_the_cost_of_pairs():
    pairs = [("D", "the"), ("N", "dog"), ("J", "saw"), (None, "and"), ("V", None)]
    assert cost(pairs[:2], KNOWN) == 0  # dog is a word that training does not have: N or J
    assert cost(pairs, KNOWN) == OTHER_TAG + 2 * ALONE
    assert cost(pairs, {}) == 3 * OTHER_TAG + 2 * ALONE


def test_a_tag_left_out_early_does_not_move_the_others():
    # the (D) is left out; V and C could also be had at the price of two other tags.
    assert align(["N", "V", "C"], ["the", "dog", "saw", "and"], KNOWN) == [
        (None, "the"),
        ("N", "dog"),
        ("V", "saw"),
        ("C", "and"),
    ]


def test_where_nothing_is_known_the_first_ones_pair():
    assert align(["A", "B"], ["x", "y", "z"], {}) == [("A", "x"), ("B", "y"), (None, "z")]
    assert align(["A", "B"], ["x"], {}) == [("A", "x"), ("B", None)]
