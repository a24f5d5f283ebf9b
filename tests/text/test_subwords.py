"""Learning from counted words: the same pieces as from the lines; what does not fit in memory is left out."""
# Nearest tests of: t2t_lite/text/sentencepiece_model.py

import logging
import random
import string

import pytest
from sentencepiece import sentencepiece_model_pb2

from t2t_lite.errors import UserError
from t2t_lite.text import subwords, vocabulary
from t2t_lite.text.published import byte_level_bpe
from t2t_lite.text.sentencepiece_model import count_words
from t2t_lite.text.vocabulary_files import open_encoder
from tests.data import corpus
from tests.text.kinds import trained

_SEPARATORS = {code: " " for code in subwords.BLANKS}


def odd_lines(count=1500):
    """Returns lines with whatever a corpus can hold, and a document on one line."""
    draw = random.Random(1)
    characters = [*"abcde" * 6, *" " * 10, *"\x00\r\n\x85\u2028\u00a0\u3000\u2581\u0301\u0308語😀ﬁÄ㌀\u200b\ufeff½"]
    characters += ["<2de>", "<pad>", "</s>", "<0x41>", "  "]
    return ["".join(draw.choices(characters, k=draw.randint(0, 40))) for _ in range(count)] + ["eb ad語 " * 2000]


def learned_from_lines(lines, folder, size, normalization, symbols, coverage):
    """Returns the ModelProto that SentencePiece itself makes of the lines."""
    options = {"model_type": "bpe", "byte_fallback": True, "max_sentence_length": 2**30, "vocab_size": size}
    options |= {"character_coverage": coverage, "user_defined_symbols": list(symbols)}
    model = trained(lines, **options, **subwords.normalization_options(normalization, str(folder)))
    return sentencepiece_model_pb2.ModelProto.FromString(model)


@pytest.mark.parametrize("lines", [odd_lines(), [side for pair in corpus.sentence_pairs(300) for side in pair]])
@pytest.mark.parametrize(
    ("normalization", "size", "symbols", "coverage"),
    [
        ("identity", 330, (), 1.0),
        ("identity", 340, ("<2de>", "ab"), 0.9999),
        ("identity", 345, (), 0.99),
        ("nfkc", 335, ("<2de>",), 0.9999),
        ("nmt_nfkc", 340, (), 1.0),
        ("nmt_nfkc_cf", 325, ("ab",), 0.995),
    ],
)
def test_words_and_counts_give_what_the_lines_give(tmp_path, lines, normalization, size, symbols, coverage):
    expected = learned_from_lines(lines, tmp_path, size, normalization, symbols, coverage)
    subwords.train_sentencepiece(
        lines,
        str(tmp_path / "v"),
        size,
        character_coverage=coverage,
        normalization=normalization,
        user_defined_symbols=symbols,
    )
    found = sentencepiece_model_pb2.ModelProto.FromString((tmp_path / "v.model").read_bytes())
    assert found.pieces == expected.pieces  # strings, scores and types, in their order
    assert len(found.pieces) == size
    assert found.normalizer_spec.precompiled_charsmap == expected.normalizer_spec.precompiled_charsmap


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        (["of the"], r"'of the' contains a space .* Expected symbols without spaces"),
        (["a\u2028b"], "contains a space"),
        (["a▁b"], "contains a space"),
        ([""], "is empty"),
        (["<2de>", "<2de>"], "'<2de>' is given twice"),
        (["</s>"], "'</s>' is reserved"),
        (["<0x41>"], "is reserved"),
    ],
)
def test_symbols_that_cannot_be(tmp_path, symbols, message):
    with pytest.raises(UserError, match=message):
        subwords.train_sentencepiece(["some text"], str(tmp_path / "v"), 300, user_defined_symbols=symbols)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["ab abc", "abc abd", "ba"])
@pytest.mark.parametrize("learn", ["SentencePiece", "byte-level BPE"])
def test_the_sizes_that_a_text_can_fill(tmp_path, learn, words):
    """3 reserved ids, 256 bytes and each part of a word: all of them are learned, and not one more.

    SentencePiece has a space before every word, and characters beside the bytes, which it needs at least.
    """
    if learn == "SentencePiece":
        path, written, function = tmp_path / "v", tmp_path / "v.model", subwords.train_sentencepiece
        spelled, shortest = "▁" + words.replace(" ", " ▁"), 1
    else:
        path = written = tmp_path / "v-vocab.json"
        function, spelled, shortest = byte_level_bpe.learn_byte_level_bpe, words.replace(" ", " Ġ"), 2
    cuts = [(word, start, end) for word in spelled.split() for end in range(len(word) + 1) for start in range(end)]
    parts = {word[start:end] for word, start, end in cuts if end - start >= shortest}
    least, most = 259 + sum(len(part) == 1 for part in parts), 259 + len(parts)
    for size in (least, most):
        function([words] * 3, str(path), size)
        assert open_encoder(str(written)).vocab_size == size
    for size, message in (
        (most + 1, f"{most + 1} pieces are too many .*\\. With {most}, every word .* Set vocab_size=[0-9]"),
        (1000, f"1000 pieces are too many .*\\. With {most}, every word"),
        (least - 1, f"{least - 1} pieces are too few.* alone need {least}[.] .* above {least}[.]"),
    ):
        with pytest.raises(UserError, match=message):
            function([words] * 3, str(path), size)


@pytest.mark.parametrize("added", [0, 7])
def test_the_advice_counts_the_ids_that_a_vocabulary_adds(added):
    """The recommended size is what is sensible, or else the largest that is possible."""
    for sensible, advised in ((20, 20), (100 + added, 100 + added), (500, 100 + added)):
        with (
            pytest.raises(subwords.ImpossibleSize, match=rf"With {100 + added}, .*={advised}, or") as caught,
            subwords.trainer_errors(600, "v", sensible, added),
        ):
            raise RuntimeError("Vocabulary size too high (600). Please set it to a value <= 100.")
        assert caught.value.possible == advised


def test_words_are_counted_as_sentencepiece_separates_them():
    lines = ["a b  a\tb\u2028c", "", " a\u00a0b ", "a\r\n", "ü" * 3000, "c\u2585b"]  # U+2585 can be in no piece
    assert count_words(lines, _SEPARATORS) == {"a": 3, "b": 3, "c": 2, "a\u00a0b": 1, "ü" * 3000: 1}
    assert count_words(["a\x85b"], {}) == {"a\x85b": 1}


def test_words_of_any_length_are_counted_in_parts():
    """A document in a script without spaces is one word. None is longer than what SentencePiece can number."""
    counts = count_words(["文" * 100_000 + " b"], _SEPARATORS, most_counted=10**9, most_kept=10**9)
    assert counts.pop("b") == 1
    assert sum(len(word) * count for word, count in counts.items()) == 100_000
    assert max(map(len, counts)) * 18 <= 2**16


@pytest.mark.parametrize("learn", ["SentencePiece", "byte-level BPE"])
def test_a_document_on_one_line_has_pieces_of_its_own(tmp_path, learn):
    """Neither a line of more than 4,192 bytes, SentencePiece's own limit, nor such a word without a space is lost."""
    draw = random.Random(4)
    document = "".join(draw.choice(["天地", "玄黄", "宇宙", "洪荒", "日月"]) for _ in range(1500))
    line = " ".join(draw.choice(["небо", "земля", "солнце"]) for _ in range(1500))
    path = str(tmp_path / "v-vocab.json")
    if learn == "byte-level BPE":
        byte_level_bpe.learn_byte_level_bpe([document, line], path, 340)
        encoder = open_encoder(path)
    else:
        subwords.train_sentencepiece([document, line], str(tmp_path / "v"), 310)
        encoder = open_encoder(str(tmp_path / "v.model"))
    assert len(encoder.encode("天地玄黄")) <= 4
    assert len(encoder.encode("солнце земля")) <= 4


@pytest.mark.parametrize("text", ["", "\u2581", "\x01", "\x01 \u2581\t\u2028", "\u0085\u2581\u2581"])
def test_what_is_blank_has_no_pieces_but_spaces(tmp_path, text):
    subwords.train_sentencepiece(["some text"], str(tmp_path / "v"), 275)
    encoder = vocabulary.SentencePieceEncoder(str(tmp_path / "v.model"))
    assert subwords.is_blank(text) and set(encoder.pieces(encoder.encode(text))) <= {"\u2581"}
    assert not any(map(subwords.is_blank, ("a", "\u2581a", "\x00", "\u200b", "\ufeff")))


def test_the_most_frequent_words_fit(caplog):
    lines = ["the " * 9, "of " * 5, "a " * 7, "rare words"]
    with caplog.at_level(logging.INFO, "t2t_lite"):
        kept = count_words(lines, {}, most_kept=len("the of a ") + 1)
    assert kept == {"the": 9, "a": 7, "of": 5}
    assert "learned from the 3 most frequent of 5 distinct words" in caplog.text


def test_what_is_seen_equally_often_is_sampled_evenly_and_counts_for_the_rest():
    draw = random.Random(2)
    rare = ["".join(draw.choices(string.ascii_lowercase, k=9)) for _ in range(40_000)]
    lines = [f"often {word}" for word in rare]
    for limits in ({"most_kept": 100_000}, {"most_kept": 100_000, "most_counted": 230_000}):
        kept = count_words(lines, {}, **limits)
        assert kept.pop("often") == 40_000
        assert 8_500 <= len(kept) <= 10_000  # 10 characters each, with the blank
        assert set(kept.values()) <= {4, 5}, "each stands for as many as there are to one that was kept"
        assert 0.4 < sum(word in kept for word in rare[:20_000]) / len(kept) < 0.6


@pytest.mark.slow
def test_words_that_are_dropped_while_counting_are_the_rare_ones():
    draw = random.Random(3)
    frequent = [f"word{number}" for number in range(100)]
    lines = [" ".join([*frequent, *(str(draw.random()) for _ in range(20))]) for _ in range(500)]
    kept = count_words(lines * 40, {}, most_counted=50_000, most_kept=30_000)
    assert all(kept[word] == 20_000 for word in frequent)
    assert sum(len(word) + 1 for word in kept) <= 31_000


def test_the_pieces_of_a_text_that_does_not_fit(tmp_path, monkeypatch):
    """The frequent half of the words gives nearly the same pieces as all words."""
    lines = [side for pair in corpus.sentence_pairs(3000) for side in pair]
    lines += [f"rare{number} words{number}" for number in range(1000)]
    subwords.train_sentencepiece(lines, str(tmp_path / "all"), 340)
    monkeypatch.setattr(subwords, "count_words", lambda *arguments: count_words(*arguments, most_kept=10_000))
    subwords.train_sentencepiece(lines, str(tmp_path / "part"), 340)
    whole, part = (vocabulary.SentencePieceEncoder(str(tmp_path / f"{name}.model")) for name in ("all", "part"))
    pieces = [set(encoder.pieces(range(encoder.vocab_size))) for encoder in (whole, part)]
    assert len(pieces[0] & pieces[1]) >= 330
    assert part.decode(part.encode("rare1 words2 the house")) == "rare1 words2 the house"
