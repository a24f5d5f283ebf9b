import collections
import random

import pytest

from t2t_lite.corpora.held_out import find_bound, is_held_out


def pairs_of(count, translations=1):
    return [
        {"inputs": f"Sentence {i}.", "targets": f"Satz {i}, {j}"} for i in range(count) for j in range(translations)
    ]


def drawn(pairs, bound, seed):
    return {pair["targets"] for pair in pairs if is_held_out(pair, bound, seed)}


@pytest.mark.parametrize(
    ("pairs", "count", "expected"),
    [
        (pairs_of(5000), 300, 300),
        (pairs_of(5000), 1000, 500),  # a tenth
        (pairs_of(2000, translations=3), 300, 300),
        (pairs_of(2000, translations=7), 300, 301),  # whole sentences: 43 are nearer to 300 than 42
        (pairs_of(4), 1000, 1),
        (pairs_of(5000) * 3, 300, 300),  # copies count once
        (pairs_of(1100) * 10, 1000, 110),  # in the tenth, too
    ],
)
def test_how_many_are_held_out(pairs, count, expected):
    bound, held = find_bound(iter(pairs), count, seed=1)
    assert (held, len(drawn(pairs, bound, 1))) == (expected, expected)


def test_neither_order_nor_copies_matter_but_the_seed_does():
    pairs = pairs_of(3000, translations=2)
    bound, _ = find_bound(pairs, 200, seed=1)
    shuffled = pairs * 2
    random.Random(0).shuffle(shuffled)
    assert find_bound(shuffled, 200, seed=1) == (bound, 200)
    one, other = (drawn(pairs, find_bound(pairs, 200, seed)[0], seed) for seed in (1, 2))
    assert len(one & other) < 50


def test_one_sentence_is_on_one_side():
    bound, _ = find_bound(pairs_of(1000), 100, seed=0)
    parts = collections.Counter(is_held_out(pair, bound, 0) for pair in pairs_of(1000))
    assert parts == {True: 100, False: 900}
    for pair in pairs_of(1000):
        variants = [pair["inputs"].upper(), pair["inputs"].replace(" ", "  "), f"„{pair['inputs'][:-1]}!?“"]
        sides = {is_held_out({"inputs": inputs, "targets": "x"}, bound, 0) for inputs in [pair["inputs"], *variants]}
        assert len(sides) == 1


def test_sentences_without_letters_are_not_all_one():
    sides = [is_held_out({"inputs": "!" * i, "targets": "x"}, 2**63, 0) for i in range(1, 100)]
    assert 20 < sum(sides) < 80
