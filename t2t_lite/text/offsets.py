"""Finds the character positions of pieces in an encoded or decoded text, and the pieces of each word."""

import difflib
import functools
import itertools
import re

from t2t_lite.errors import UserError
from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder
from t2t_lite.text.published.pre_tokenization import normalization
from t2t_lite.text.published.wordpiece import WordPieceEncoder
from t2t_lite.text.rows import beginning_of
from t2t_lite.text.vocabulary import UNK_ID, ByteTextEncoder, SentencePieceEncoder

# maximum product of the lengths, in characters, of two texts to compare; such a comparison takes up to a second
_LARGEST_COMPARISON = 4_000_000


def encode_with_offsets(encoder, text):
    """Encodes a text, and returns the span of characters of each piece.

    Args:
        encoder: TextEncoder. With SentencePiece, byte-level BPE, WordPiece and bytes, the ids are those of `encode`.
            With any other encoder, words are encoded one by one, and the span of every piece is its whole word.
        text: str.

    Returns:
        (ids, [(start, end), …]). A piece is `text[start:end]`. Spans exclude white space around a piece, so that a
        piece of only white space has an empty span. A character that is split into several pieces is in the span of
        each piece. A word that a WordPiece vocabulary cannot spell is one span.
    """
    ids, spans = _with_added_tokens(encoder, text) if getattr(encoder, "added", None) else _encoded(encoder, text)
    return ids, [_without_space(text, start, end) for start, end in spans]


def _with_added_tokens(encoder, text):
    ids, spans, start = [], [], 0
    for part, added in encoder.added.split(text):
        part_ids, part_spans = _encoded(encoder, part) if added is None else ([added], [(0, len(part))])
        ids += part_ids
        spans += [(start + first, start + last) for first, last in part_spans]
        start += len(part)
    return ids, spans


def decode_with_offsets(encoder, ids):
    """Decodes ids, and returns the span of characters of each id.

    Args:
        encoder: TextEncoder.
        ids: list of int without EOS.

    Returns:
        (text, [(start, end), …]). An id's text is `text[start:end]`. Spans are adjacent and include the spaces around
        their pieces. If a character is split into several pieces, it is in the span of the last piece, and the spans of
        the other pieces are empty.
    """
    text = encoder.decode(ids)
    ends = (_common_length(text, encoder.decode(ids[:count])) for count in range(1, len(ids)))
    borders = [0, *itertools.accumulate(ends, max), len(text)] if ids else []
    return text, list(itertools.pairwise(borders))


def _common_length(first, second):
    """Returns the length of the common prefix of two texts."""
    shorter = min(first, second, key=len)
    if first.startswith(shorter) and second.startswith(shorter):
        return len(shorter)
    return next(at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)


def piece_spans(encoder, ids, text):
    """Returns the spans of a text's ids, with the conventions of `encode_with_offsets`.

    Args:
        encoder: TextEncoder.
        ids: list of int without EOS, all ids of the text or only the first ids.
        text: str.
    """
    try:
        encoded, spans = encode_with_offsets(encoder, beginning_of(text, len(ids)))
    except UserError:  # the text only represents the input, such as the pixels of an image, and was not encoded
        encoded = None
    if encoded is not None and encoded[: len(ids)] == list(ids):
        return spans[: len(ids)]
    # happens with vocabularies in which the pieces of a word depend on its neighbors
    decoded, spans = decode_with_offsets(encoder, ids)
    return moved_spans(spans, decoded, text)


def moved_spans(spans, old, new):
    """Maps spans of a text to an edited version of the text, using the characters that both versions share.

    Args:
        spans: list of (start, end) in `old`.
        old, new: str, the text and its edited version.
    """
    if old == new:
        return list(spans)
    begin = _common_length(old, new)
    end = _common_length(old[begin:][::-1], new[begin:][::-1])
    inner = old[begin : len(old) - end], new[begin : len(new) - end]
    blocks = [(0, len(inner[0]), 0, len(inner[1]))]
    if len(inner[0]) * len(inner[1]) <= _LARGEST_COMPARISON:
        blocks = [block for _, *block in difflib.SequenceMatcher(None, *inner, autojunk=False).get_opcodes()]
    blocks = [[number + begin for number in block] for block in blocks]
    all_blocks = [(0, begin, 0, begin), *blocks, (len(old) - end, len(old), len(new) - end, len(new))]
    return spans_in_blocks(spans, all_blocks)


def spans_in_blocks(spans, blocks):
    """Maps spans of a text to another text; both consist of corresponding blocks, within which positions are scaled.

    Args:
        spans: list of (start, end).
        blocks: list of (old start, old end, new start, new end) that cover both texts in order.
    """
    places = []
    for old_start, old_end, start, end in blocks:
        old_size, size = old_end - old_start, end - start
        places += [(start + at * size // old_size, start - (-(at + 1) * size // old_size)) for at in range(old_size)]
    places.append((blocks[-1][3],) * 2)
    return [(places[start][0], places[end - 1][1] if end > start else places[start][0]) for start, end in spans]


def _without_space(text, start, end):
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


@functools.singledispatch
def _encoded(encoder, text):
    """Returns (ids, spans) of a text like `encode_with_offsets`, but the spans include white space."""
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
    table, characters = normalization(encoder.lower), []  # [normalized character, start, end]
    for at, character in enumerate(text):
        parts = character.translate(table)
        if not parts and characters:  # for example, the span of a character includes a following accent
            characters[-1][2] = at + 1
        characters += [[part, at, at + 1] for part in parts]
    words = "".join(part for part, _, _ in characters).split()
    places = [(start, end) for part, start, end in characters if part != " "]
    ids, sizes = [], []
    for word in words:
        pieces = encoder.encode_part(word)
        is_unknown = pieces == [encoder.unknown_id]
        ids += pieces
        sizes += [len(word)] if is_unknown else [len(piece.removeprefix("##")) for piece in encoder.pieces(pieces)]
    borders = itertools.pairwise([0, *itertools.accumulate(sizes)])
    return ids, [(places[a][0], places[b - 1][1]) for a, b in borders]


def _spans(sizes, spelling, origins):
    """Returns the spans of pieces of `sizes` bytes that spell a text; `origins` maps its characters to old indices."""
    # for each byte, the index of its character
    characters = [at for at, character in enumerate(spelling) for _ in character.encode("utf-8")]
    ends = list(origins[1:])
    for at in range(len(ends) - 2, -1, -1):  # all parts of an original character end where the character ends
        if ends[at] == origins[at]:
            ends[at] = ends[at + 1]
    borders = itertools.pairwise([0, *itertools.accumulate(sizes)])
    return [(origins[characters[a]], ends[characters[b - 1]]) for a, b in borders]


def word_pieces(encoder, words):
    """Encodes words one by one, as in a sentence with single spaces.

    Args:
        encoder: TextEncoder.
        words: list of str.

    Returns:
        A list of ids for each word. A word that has no pieces in the vocabulary becomes one unknown id.
    """
    space = space_before(encoder)
    return [list(encoder.encode((space if at else "") + word)) or [UNK_ID] for at, word in enumerate(words)]


def space_before(encoder):
    """Returns " " if a word inside a sentence must be encoded with the space before it, otherwise ""."""
    return " " if isinstance(encoder, ByteLevelBPEEncoder | ByteTextEncoder) else ""
