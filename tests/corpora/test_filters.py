"""Filters of sentence pairs, and pairs that are held out."""
# Nearest tests of: t2t_lite/files/hashes.py, t2t_lite/corpora/scripts.py

import collections
import random
import time

import numpy as np
import pytest

from t2t_lite.corpora.filters import ORDER, PairFilter, find_bound, is_held_out, parse_filters
from t2t_lite.errors import UserError
from t2t_lite.files.hashes import SeenHashes, hash64


def filtered(pairs, *words, languages=("en", "de")):
    """Returns the pairs that stay, and what was removed."""
    removed = collections.Counter()
    samples = [{"inputs": inputs, "targets": targets} for inputs, targets in pairs]
    kept = PairFilter(parse_filters(words), languages, removed)(samples)
    return [(pair["inputs"], pair["targets"]) for pair in kept], dict(removed)


def test_each_filter_alone():
    good = ("a house", "ein Haus")
    cases = {
        "too_long": [("x" * 1001, "y" * 1000), ("x", "y" * 1001)],
        "length_ratio": [("no", "x" * 17), ("x" * 17, "no"), ("x" * 311, "y" * 100)],
        "copied": [("A House", "a house"), ("STRASSE", "straße"), (" same ", "same")],
        "wrong_script": [("дом", "ein Haus"), ("a house", "дом"), ("a дом", "Haus")],
        "mojibake": [("größe".encode().decode("latin1"), "x" * 9), ("x" * 9, "größe".encode().decode("cp1252"))],
        "duplicate": [good],
        "empty": [("", "Haus"), ("house", " \u00a0"), ("", "")],
    }
    for name, bad in cases.items():
        kept, removed = filtered([good, *bad], name)
        assert kept == [good], name
        assert removed == {name: len(bad)}


def test_what_is_just_within_the_limits_stays():
    pairs = [
        ("x" * 1000, "y" * 1000),
        ("no", "x" * 16),  # 3 * 2 + 10
        ("x" * 310, "y" * 100),
        ("12:30, 100 %", "12.30, 100 %"),
        ("я a", "Haus"),  # half of the letters
        ("a house", "ein Haus"),
        ("a house", "ein haus"),
    ]
    assert filtered(pairs, "all")[0] == pairs
    assert filtered([("5 €", "7 €")], "all") == ([("5 €", "7 €")], dict.fromkeys(ORDER[1:], 0))


def test_numbers_of_ones_own():
    pairs = [("aaaa", "b" * 30), ("a" * 30, "b" * 30), ("a" * 31, "b" * 31)]
    assert filtered(pairs, "length_ratio=5", "too_long=30")[0] == pairs[:2]
    assert filtered(pairs, "all", "length_ratio=4.9")[1]["length_ratio"] == 1
    assert filtered(pairs)[0] == pairs


def test_a_pair_counts_under_the_first_filter_alone():
    """What an earlier filter has removed is no reason to remove another pair as a duplicate."""
    pairs = [("дом " * 300, ""), ("дом " * 300, "x"), ("дом " * 10, "x"), ("дом", "Дом"), ("дом", "x"), ("дом", "x")]
    kept, removed = filtered(pairs, "all")
    assert not kept
    assert removed == {
        "empty": 1, "too_long": 1, "length_ratio": 1, "copied": 1, "wrong_script": 2, "mojibake": 0, "duplicate": 0,
    }  # fmt: skip


def test_duplicates_are_found_far_apart_and_across_calls():
    pairs = [(f"sentence {i % 30_000}", f"Satz {i % 30_000}") for i in range(70_000)]
    kept, removed = filtered(pairs, "duplicate")
    assert kept == pairs[:30_000]
    assert removed == {"duplicate": 40_000}
    assert filtered([("a b", "c"), ("a", "b c")], "duplicate")[1] == {"duplicate": 0}
    removed = collections.Counter()
    pair_filter = PairFilter({"duplicate": True}, None, removed)
    pair = {"inputs": "a", "targets": "b"}
    assert [len(list(pair_filter([pair]))) for _ in range(2)] == [1, 0]


def test_seen_hashes_is_a_set():
    generator = np.random.default_rng(0)
    seen, expected = SeenHashes(), set()
    extremes = np.array([0, 2**64 - 1, 2**63, 2**58, 2**58 - 1], np.uint64)
    for _ in range(40):
        few = generator.integers(0, 300, generator.integers(0, 50)).astype(np.uint64) << np.uint64(55)
        many = generator.integers(0, 2**64, 200, dtype=np.uint64)
        for hashes in (np.concatenate([few, many]), extremes):
            was_met = []
            for value in hashes.tolist():
                was_met.append(value in expected)
                expected.add(value)
            assert seen.add(hashes).tolist() == was_met
    assert len(seen) == len(expected)


@pytest.mark.slow
def test_seen_hashes_take_little_more_than_8_bytes_each():
    import tracemalloc

    generator, seen, count = np.random.default_rng(0), SeenHashes(), 2**20
    tracemalloc.start()
    for _ in range(count // 2**14):
        seen.add(generator.integers(0, 2**64, 2**14, dtype=np.uint64))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * count * 1.05 + 2**21  # the block's own arrays


def test_hashes_are_spread_and_apart_by_purpose():
    numbers = [hash64(str(i)) for i in range(4000)]
    assert abs(sum(number < 2**63 for number in numbers) - 2000) < 5 * 4000**0.5 / 2
    assert hash64("a") == hash64("a") != hash64("a", "weight")


@pytest.mark.slow
def test_a_pair_takes_few_microseconds():
    pairs = [{"inputs": f"This is sentence {i}, of some 50 letters or so.", "targets": f"Das ist der Satz {i} mit "
              "etwa 50 Zeichen, ungefähr."} for i in range(20_000)]  # fmt: skip
    best = min(_seconds(pairs) for _ in range(3))
    assert best / len(pairs) < 30e-6  # 5 to 9 were measured; the bound is 15 where nothing else runs


def _seconds(pairs):
    start = time.process_time()
    assert sum(1 for _ in PairFilter(parse_filters(["all"]), ("en", "de"), collections.Counter())(pairs)) == len(pairs)
    return time.process_time() - start


@pytest.mark.parametrize(
    ("language", "text", "foreign"),
    [
        ("ja", "カタカナとひらがなと漢字", "english"),
        ("zh-TW", "繁體字", "ひらがな"),
        ("ko", "한국어", "русский"),
        ("sr", "ћирилица latinica", "ελληνικά"),
        ("sr-Latn", "latinica", "ћирилица"),
        ("zzz_Cyrl", "буквы", "latin"),
        ("hi", "हिन्दी में", "latin"),
        ("ar", "اللغة العربية", "עברית"),
        ("th", "ภาษาไทย", "latin"),
    ],
)
def test_scripts_of_languages(language, text, foreign):
    pairs = [("x", text), ("x", foreign)]
    assert filtered(pairs, "wrong_script", languages=("en", language)) == (pairs[:1], {"wrong_script": 1})


def test_parse_filters():
    assert parse_filters([]) == {}
    assert parse_filters(["too_long=1000000000", "length_ratio=1"]) == {"too_long": 10**9, "length_ratio": 1.0}
    assert parse_filters(["duplicate", "too_long", "empty"]) == {"too_long": 1000, "duplicate": True}
    everything = parse_filters(["all"])
    assert list(everything) == list(ORDER[1:])
    assert parse_filters(["length_ratio=2.5", "all"]) == {**everything, "length_ratio": 2.5}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["duplicates"],
            "--filters=duplicates: 'duplicates' is not a filter. Nearest: duplicate. Expected any of empty",
        ),
        (["length_ratio=three"], "length_ratio=three: expected a number from 1 to 1,000,000,000."),
        (["length_ratio=0.5"], "length_ratio=0.5: expected a number from 1 to"),
        (["length_ratio=nan"], "length_ratio=nan: expected a number"),
        (["length_ratio=inf"], "length_ratio=inf: expected a number"),
        (["length_ratio="], "length_ratio=: expected a number"),
        (["too_long=2.5"], "too_long=2.5: expected a whole number"),
        (["too_long=0"], "too_long=0: expected a whole number"),
        (["too_long=1000000001"], "too_long=1000000001: expected a whole number from 1 to 1,000,000,000"),
        (["copied=3"], "copied takes no number"),
        (["all=3"], "all takes no number"),
        (["copied", "copied"], "copied is given twice"),
        ([""], "'' is not a filter"),
    ],
)
def test_mistakes_in_filters(words, message):
    with pytest.raises(UserError) as caught:
        parse_filters(words)
    assert message in str(caught.value)


def test_a_language_without_scripts():
    with pytest.raises(UserError, match=r"the language 'qq' .*--languages .* qq-Latn"):
        filtered([("a", "b")], "wrong_script", languages=("en", "qq"))
    assert filtered([("a", "b")], "copied", languages=("en", "qq"))[0]


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
