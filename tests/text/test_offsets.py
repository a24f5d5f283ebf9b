"""Words and spans of texts in the pieces of every kind of vocabulary."""

import random

from t2t_lite.text import vocabulary
from t2t_lite.text.offsets import decode_with_offsets, encode_with_offsets, moved_spans, piece_spans, word_pieces
from t2t_lite.text.published.wordpiece import WordPieceEncoder
from tests.text.kinds import SENTENCES
from tests.text.published_samples import texts, write_pieces


def test_ids_are_those_of_the_vocabulary_and_spans_are_in_order(encoder):
    for text in [*texts(600), *SENTENCES, "", " \n ", "ﬁne ＡＢＣ e\u0301e\u0301 ½", "the" * 3000]:
        ids, spans = encode_with_offsets(encoder, text)
        assert ids == list(encoder.encode(text)) and len(spans) == len(ids)
        assert all(0 <= start <= end <= len(text) for start, end in spans)
        assert spans == sorted(spans)
        assert all(text[start:end] == text[start:end].strip() for start, end in spans)


def test_words_are_those_of_the_text_and_not_of_the_normalized_one(encoder):
    """´ becomes a space and an accent where a vocabulary normalizes, which makes two words of one."""
    text = "I don´t see the old ½ woman."
    spans = piece_spans(encoder, encoder.encode(text), text)
    for word in ("see", "the", "old", "woman."):
        start = text.index(word)
        pieces = [text[a:b] for a, b in spans if start <= a < start + len(word) and a < b]
        assert pieces and all(piece in word for piece in pieces)


def test_decoded_ids_have_offsets(encoder):
    for text in [*texts(40), *SENTENCES, ""]:
        ids = encoder.encode(text)
        decoded, spans = decode_with_offsets(encoder, ids)
        assert decoded == encoder.decode(ids) and len(spans) == len(ids)
        assert "".join(decoded[start:end] for start, end in spans) == decoded
        assert moved_spans(spans, decoded, decoded) == spans


def test_spans_move_with_their_characters():
    new = "-LRB- ab -RRB- cd ."
    spans = moved_spans([(0, 1), (1, 3), (3, 4), (5, 7), (7, 8)], "(ab) cd.", new)
    assert [new[start:end].strip() for start, end in spans] == new.split()
    assert moved_spans([(0, 2), (3, 5)], "ab cd", "AB: ab cd!") == [(4, 6), (7, 9)]
    long = "ab " * 2000
    assert moved_spans([(0, 2), (5998, 5999)], long, f"x{long[::-1]}")[1][1] <= len(long) + 1  # without comparing all


def test_answers_come_back_from_the_pieces_that_overlap_them(encoder):
    """Thousands of spans of words: what is between the first and the last piece is the answer and nothing else."""
    rng = random.Random(1)
    words = [*" ".join(SENTENCES).split(), "naïve", "I'll", "(the", "東京", "😀", "e\u0301te\u0301", "12%"]
    for _ in range(4000):
        chosen = rng.choices(words, k=rng.randrange(1, 12))
        blanks = rng.choices([" ", "  ", "\t", "\u3000", " \n"], k=len(chosen))
        first = rng.randrange(len(chosen))
        last = rng.randrange(first, len(chosen))
        before = "".join(word + blank for word, blank in zip(chosen[:first], blanks, strict=False))
        answer = "".join(map("".join, zip(chosen[first:last], blanks[first:], strict=False))) + chosen[last]
        text = before + answer + "".join(blank + word for word, blank in zip(chosen[last + 1 :], blanks, strict=False))
        _, spans = encode_with_offsets(encoder, text)
        overlapping = [span for span in spans if span[0] < len(before) + len(answer) and span[1] > len(before)]
        assert text[overlapping[0][0] : overlapping[-1][1]] == answer


def test_what_becomes_of_one_character_stands_for_it(encoder):
    """Of "ﬃ" NFKC makes three letters, and its bytes are three pieces."""
    _, spans = encode_with_offsets(encoder, "ﬃ")
    assert [span for span in spans if span != (0, 1)] in ([], [(0, 0)])  # a space of SentencePiece's before it
    assert (0, 1) in spans


def test_words_one_by_one_are_the_sentence(encoder):
    for text in SENTENCES:
        words = text.split()
        pieces = word_pieces(encoder, words)
        assert len(pieces) == len(words) and all(pieces)
        assert [i for ids in pieces for i in ids] == list(encoder.encode(text))


def test_a_word_without_a_piece_is_unknown(tmp_path):
    encoder = WordPieceEncoder(write_pieces(tmp_path))
    assert word_pieces(encoder, ["the", "\u200b", "the"]) == [encoder.encode("the"), [2], encoder.encode("the")]


def test_other_vocabularies_tell_words(tmp_path):
    (tmp_path / "v").write_text("<pad>\n<EOS>\n<UNK>\nhello\nworld\n")
    encoder = vocabulary.TokenTextEncoder(str(tmp_path / "v"), replace_oov="<UNK>")
    assert encode_with_offsets(encoder, " hello,  world") == ([2, 4], [(1, 7), (9, 14)])
