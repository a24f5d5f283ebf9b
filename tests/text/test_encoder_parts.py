"""The cache of words is exact, bounded, and small when it is pickled."""

import pickle

from t2t_lite.text.encoder_parts import WordCache


def test_words_are_computed_once_and_their_number_is_bounded():
    asked = []
    cache = WordCache(lambda word: asked.append(word) or [len(word)], most=3)
    assert [cache[word] for word in ("a", "bb", "a", "bb", "c" * 1000, "c" * 1000)] == [
        [1],
        [2],
        [1],
        [2],
        [1000],
        [1000],
    ]
    assert asked == ["a", "bb", "c" * 1000, "c" * 1000], "a huge word is not kept"
    for number in range(10):
        assert cache[f"{number:05}"] == [5] and len(cache) <= 3


def test_words_are_not_pickled():
    cache = WordCache(str.split)
    assert cache["a"] == ["a"]
    other = pickle.loads(pickle.dumps(cache))
    assert len(other) == 0 and other["b"] == ["b"]
