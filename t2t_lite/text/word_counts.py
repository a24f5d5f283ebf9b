"""Counts the words of a text in bounded memory; subwords are learned from these counts."""

import collections
import itertools
import logging
import re
import zlib

import numpy as np

_LOGGER = logging.getLogger("t2t_lite")

_BLOCK = 2**14  # lines counted at once, or as many as have
_BLOCK_CHARACTERS = 2**24
MOST_COUNTED = 40_000_000  # characters of distinct words while counting; at most about 600 MB
# The same limit at the end. SentencePiece needs about 65 bytes per character, and up to 120 without spaces.
MOST_KEPT = 10_000_000
# SentencePiece numbers the characters of a word with 16 bits, and NFKC turns one character into up to 18.
_LONGEST_WORD = 2**16 // 18
_LONG_WORD = re.compile(rf"[^ ]{{{_LONGEST_WORD}}}")
_RESERVED = "\u2585"  # SentencePiece's own symbol for unknown characters, which no piece can contain
_MOST_STOOD_FOR = 16


def count_words(lines, separators, *, most_counted=MOST_COUNTED, most_kept=MOST_KEPT):
    """Returns {word: count} of a text.

    Every line counts, however long it is. A word of more than 3,640 characters, as a document in a script without
    spaces can be, is counted in parts of that length.

    If the distinct words do not fit in memory, the rarest are dropped, also while counting (lossy counting: a count can
    be too low by the count that its word had when it was last dropped). If only some of the words with the same count
    fit, a uniform sample of them is kept, selected by checksum. Each word of the sample also counts for those that were
    dropped, up to 16 times. The result depends only on the lines.

    Args:
        lines: iterable of strings.
        separators: {code point: " "} for the characters other than the space that separate words. SentencePiece's
            symbol for unknown characters (U+2585) always does.
        most_counted: number of characters of distinct words, each with the space before it, above which the rarest
            are dropped while counting.
        most_kept: the same limit at the end.
    """
    counts, limits = collections.Counter(), {}
    size = left_out = 0
    for text in _blocks(lines, separators):
        counts.update(text.split(" "))
        counts.pop("", None)
        size += len(text) + 1  # an upper bound; the exact size is computed only above the limit
        if size > most_counted and (size := _size(counts)) > most_counted:
            counts, dropped, _ = _most_frequent(counts, most_counted // 2, limits)
            size, left_out = _size(counts), left_out + dropped
    different = len(counts)
    counts, dropped, least = _most_frequent(counts, most_kept, limits)
    left_out += dropped
    if left_out:
        _LOGGER.info(
            f"vocabulary: learned from the {len(counts):,} most frequent of {'over ' * (left_out > dropped)}"
            f"{different:,} distinct words; the rarer ones do not fit in memory"
        )
        _stand_for(counts, least or min(counts.values()), left_out)
    return counts


def _blocks(lines, separators):
    """Yields many lines at once, with spaces between all words."""
    block, characters = [], 0
    for line in lines:
        block.append(_separated(line.rstrip("\r\n"), separators))
        characters += len(line)
        if len(block) == _BLOCK or characters >= _BLOCK_CHARACTERS:
            yield " ".join(block)
            block, characters = [], 0
    if block:
        yield " ".join(block)


def _separated(line, separators):
    """Returns a line with spaces between its words."""
    if not line.isprintable():
        line = line.translate(separators)
    if _RESERVED in line:
        line = line.replace(_RESERVED, " ")
    return line if len(line) <= _LONGEST_WORD else _LONG_WORD.sub(r"\g<0> ", line)


def _size(counts):
    return len(counts) + sum(map(len, counts))


def _most_frequent(counts, room, limits):
    """Returns the words that fit in `room`, the characters of the dropped occurrences, and the lowest count kept."""
    # `limits` maps a count to the checksum below which its words are kept; it is updated across calls.
    occurrences = np.fromiter(counts.values(), np.int64, len(counts))
    sizes = np.fromiter(map(len, counts), np.int64, len(counts)) + 1
    if sizes.sum() <= room:
        return counts, 0, 0
    levels, level_of = np.unique(-occurrences, return_inverse=True)  # from the most frequent on
    total_sizes = np.cumsum(np.bincount(level_of, sizes))
    first = np.searchsorted(total_sizes, room, side="right")  # the first level that does not fit as a whole
    least = -int(levels[first])
    is_tie = occurrences == least
    checksums = np.fromiter(map(_checksum, itertools.compress(counts, is_tie)), np.int64)
    order = np.argsort(checksums, kind="stable")
    room -= total_sizes[first - 1] if first else 0
    first_too_much = np.searchsorted(np.cumsum(sizes[is_tie][order]), room, side="right")
    # Never above an earlier limit: beyond it, the sample would contain only words from a later part of the text.
    limits[least] = min(limits.get(least, 2**32), int(checksums[order[first_too_much]]))
    stays = occurrences > least
    stays[is_tie] = checksums < limits[least]
    words = collections.Counter(dict(itertools.compress(counts.items(), stays)))
    return words, int((occurrences * sizes)[~stays].sum()), least


def _checksum(word):
    return zlib.crc32(word.encode())


def _stand_for(counts, least, left_out):
    """Raises the counts of the words that occur `least` times to account for the dropped ones."""
    sample = [word for word, count in counts.items() if count == least]
    share = left_out / max(1, least * (len(sample) + sum(map(len, sample))))
    for word in sample:
        counts[word] = round(least * min(_MOST_STOOD_FOR, 1 + share))


_BYTES = 256
_SPECIAL = 3  # padding, end, unknown
_WORDS_PER_MERGE = 4


def sensible_size(num_words, num_others=0):
    """Returns the size of a vocabulary whose pieces are still parts of words.

    It has one merge for every four distinct words, so that at most a quarter of them are one piece each. The number of
    distinct words grows about as the square root of the text (Heaps' law), and so does the vocabulary: 3,700 pieces
    for 5,000 captions in two languages, 10,200 for 29,000.

    Args:
        num_words: number of distinct words.
        num_others: number of characters and symbols that are pieces in addition to bytes and merges.
    """
    return _BYTES + _SPECIAL + num_others + num_words // _WORDS_PER_MERGE


def choose_size(largest, num_words, num_others=0):
    """Returns `sensible_size`, at most `largest`, and logs it."""
    size = min(largest, sensible_size(num_words, num_others))
    _LOGGER.info(
        f"chose a vocabulary of {size:,} pieces for {num_words:,} distinct words (--vocab_size sets another size)"
    )
    return size
