"""Where in a text the pieces of its encoding stand."""

import functools
import itertools
import re

from t2t_lite.text.published.bert_normalization import normalization
from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder
from t2t_lite.text.published.wordpiece import WordPieceEncoder
from t2t_lite.text.vocabulary import ByteTextEncoder, SentencePieceEncoder
from t2t_lite.text.words import word_pieces


def encode_with_offsets(encoder, text):
    """Encodes a text, and says which of its characters each piece stands for.

    Args:
        encoder: TextEncoder. Of SentencePiece, byte-level BPE, WordPiece and bytes the ids are those of `encode`. With
            another one the words are encoded one by one, and all pieces of a word stand for the whole of it.
        text: str.

    Returns:
        (ids, [(start, end), …]), an end being that of a slice. White space around a piece is not counted, so that a
        piece of white space alone stands for nothing. A character of several pieces is in the span of each of them, and
        a word that a WordPiece vocabulary cannot spell is one span.
    """
    ids, found = _with_added_tokens(encoder, text) if getattr(encoder, "added", None) else _encoded(encoder, text)
    return ids, [_without_space(text, start, end) for start, end in found]


def _with_added_tokens(encoder, text):
    ids, spans, start = [], [], 0
    for part, added in encoder.added.split(text):
        part_ids, found = _encoded(encoder, part) if added is None else ([added], [(0, len(part))])
        ids += part_ids
        spans += [(start + first, start + last) for first, last in found]
        start += len(part)
    return ids, spans


def _without_space(text, start, end):
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


@functools.singledispatch
def _encoded(encoder, text):
    """Returns what `encode_with_offsets` does, with the white space."""
    words = list(re.finditer(r"\S+", text))
    pieces = word_pieces(encoder, [word.group() for word in words])
    spans = [word.span() for word, ids in zip(words, pieces, strict=True) for _ in ids]
    return list(itertools.chain.from_iterable(pieces)), spans


@_encoded.register
def _(encoder: ByteTextEncoder, text):
    ids = encoder.encode(text)
    return ids, _spans([1] * len(ids), text, range(len(text) + 1))


@_encoded.register
def _(encoder: ByteLevelBPEEncoder, text):
    ids = encoder.encode_part(text)
    return ids, _spans([len(encoder.piece_bytes[i]) for i in ids], text, range(len(text) + 1))


@_encoded.register
def _(encoder: SentencePieceEncoder, text):
    ids, sizes, normalized, origins = encoder.encode_with_sizes(text)
    return ids, _spans(sizes, normalized, origins)


@_encoded.register
def _(encoder: WordPieceEncoder, text):
    table, ids, spans = normalization(encoder.lower), [], []
    word, starts, ends = [], [], []
    for at, character in enumerate([*text, " "]):
        becomes = character.translate(table)
        if not becomes and ends:  # an accent, say, belongs to what stands before it
            ends[-1] = at + 1
        for part in becomes:
            if part != " ":
                word.append(part)
                starts.append(at)
                ends.append(at + 1)
            elif word:
                pieces = encoder.encode_part("".join(word))
                sizes = [len(piece.removeprefix("##")) for piece in encoder.pieces(pieces)]
                sizes = [len(word)] if pieces == [encoder.unknown_id] else sizes
                borders = [0, *itertools.accumulate(sizes)]
                ids += pieces
                spans += [(starts[a], ends[b - 1]) for a, b in itertools.pairwise(borders)]
                word, starts, ends = [], [], []
    return ids, spans


def _spans(sizes, shown, origins):
    """Returns the (start, end) of pieces that follow one another.

    Args:
        sizes: list of int, the bytes of each piece.
        shown: str, the text that the pieces spell.
        origins: [1 + len(shown)] of int, where in the original text each character, and the end, comes from.
    """
    characters = [at for at, character in enumerate(shown) for _ in character.encode("utf-8")]  # of each byte
    ends = list(origins[1:])
    for at in range(len(ends) - 2, -1, -1):  # characters that were one in the original have its end
        if ends[at] == origins[at]:
            ends[at] = ends[at + 1]
    borders = itertools.pairwise([0, *itertools.accumulate(sizes)])
    return [(origins[characters[a]], ends[characters[b - 1]]) for a, b in borders]
