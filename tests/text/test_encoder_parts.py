"""What encoders share: lines of their files, a cache of words, longest pieces, and masks."""

import pickle
import types

import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.text import subwords, vocabulary
from t2t_lite.text.encoder_parts import (
    WordCache,
    blank_before_mask,
    lines_of,
    longest_pieces,
    mask_in,
    mask_of,
    read_content,
    split_words,
)


def test_words_are_computed_once_and_their_number_is_bounded():
    asked = []
    cache = WordCache(lambda word: asked.append(word) or [len(word)], most=3)
    words = ["a", "bb", "a", "bb", "c" * 64, "c" * 64, "d" * 65, "d" * 65]
    assert [cache[word] for word in words] == [[len(word)] for word in words]
    assert asked == ["a", "bb", "c" * 64, "d" * 65, "d" * 65], "a huge word is not kept"
    for number in range(10):
        assert cache[f"{number:05}"] == [5] and len(cache) <= 3


def test_words_are_not_pickled():
    cache = WordCache(str.split)
    assert cache["a"] == ["a"]
    other = pickle.loads(pickle.dumps(cache))
    assert len(other) == 0 and other["b"] == ["b"]


def test_lines_of_a_file(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n\nfour\n")
    content = read_content(str(tmp_path / "a"))
    assert lines_of(content, "a", "words") == ["one", "two\rthree", "", "four"]
    assert lines_of(b"\xef\xbb\xbfone", "a", "words") == ["one"]
    assert lines_of(b"one\n\n\n", "a", "words") == ["one", "", ""], "each line has an id"
    with pytest.raises(UserError, match=r"^x: not UTF-8: byte 1,005\. Expected words\."):
        lines_of(b"x\n\xc3\xbc\n" + b"y" * 1000 + b"\xfc", "x", "words")
    with pytest.raises(UserError, match="no such file"):
        read_content(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("word", "longest", "expected"),
    [
        ("unaffable", 4, [3, 4, 5]),
        ("unable", 4, [3, 5]),
        ("unable", 3, None),  # the piece of four characters counts as not there
        ("un", 4, [3]),
        ("u", 9, [6]),
        ("ununs", 4, None),  # no piece continues a word
        ("", 4, []),
    ],
)
def test_the_longest_pieces_from_the_left(word, longest, expected):
    ids = {"un": 3, "##aff": 4, "##able": 5, "u": 6, "##a": 7}
    assert longest_pieces(word, ids, longest, "##") == expected
    assert longest_pieces("abab", {"a": 0, "ab": 2, "b": 3}, 2) == [2, 2]


def test_words_in_a_graph_are_those_of_python():
    texts = ["a\u00a0b\u3000 c\x0b\x1c\x85d", " ", "", "e\u200bf "]
    assert [[word.decode() for word in words] for words in split_words(tf.constant(texts)).to_list()] == [
        text.split() for text in texts
    ]


def test_the_mask_of_a_vocabulary():
    assert mask_in(["a", "<mask>", "b"]) == (1, "<mask>") and mask_in(["<mask>", "a", "[MASK]"]) == (2, "[MASK]")
    with pytest.raises(UserError, match=r"neither \[MASK\] nor <mask>"):
        mask_of(vocabulary.ByteTextEncoder())


def test_a_space_before_a_mask_is_a_piece_of_its_own(tmp_path):
    subwords.train_sentencepiece(["a b c"] * 9, str(tmp_path / "v"), 267, user_defined_symbols=["<x>", "[MASK]"])
    encoder = vocabulary.SentencePieceEncoder(str(tmp_path / "v.model"))
    space = encoder.pieces(range(267)).index("\u2581")
    assert mask_of(encoder) == (4, "[MASK]") and blank_before_mask(encoder) == space
    assert encoder.encode("a [MASK]")[-2:] == [space, 4]

    def published(*pieces, knows=True):
        encode = lambda text: [pieces.index(text)] if knows else [0]  # noqa: E731
        return types.SimpleNamespace(vocab_size=len(pieces), pieces=lambda ids: [pieces[i] for i in ids], encode=encode)

    assert blank_before_mask(published("a", "\u2581", "<mask>")) == 1
    for others in (["[CLS]", "\u2581", "[MASK]"], ["<cls>", "\u2581", "<mask>"], ["a", "<mask>"]):
        assert blank_before_mask(published(*others)) is None
    assert blank_before_mask(published("a", "\u2581", "<mask>", knows=False)) is None
