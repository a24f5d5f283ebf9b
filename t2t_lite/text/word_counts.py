"""Counts the words of a text in bounded memory; subwords are learned from these counts."""

import collections
import itertools
import logging
import zlib

import numpy as np

_LOGGER = logging.getLogger("t2t_lite")

_BLOCK = 2**14  # lines counted at once
MOST_COUNTED = 40_000_000  # characters of distinct words while counting; at most about 600 MB
# The same limit at the end. SentencePiece needs about 65 bytes per character, and up to 120 without spaces.
MOST_KEPT = 10_000_000
_LONGEST_LINE = 4192  # bytes; SentencePiece's own limit (max_sentence_length)
_RESERVED = "\u2585"  # SentencePiece skips lines with its symbol for unknown characters
_MOST_STOOD_FOR = 16


def count_words(lines, separators, *, most_counted=MOST_COUNTED, most_kept=MOST_KEPT):
    """Returns {word: count} of a text, without the lines that SentencePiece would skip.

    If the distinct words do not fit in memory, the rarest are dropped, also while counting (lossy counting: a count can
    be too low by the count that its word had when it was last dropped). If only some of the words with the same count
    fit, a uniform sample of them is kept, selected by checksum. Each word of the sample also counts for those that were
    left out, up to 16 times. The result depends only on the lines.

    Args:
        lines: iterable of strings.
        separators: {code point: " "} for the characters other than the space that separate words.
        most_counted: number of characters of distinct words, each with the space before it, above which the rarest
            are dropped while counting.
        most_kept: the same limit at the end.
    """
    counts, limits = collections.Counter(), {}
    size = left_out = too_long = 0
    lines = iter(lines)
    while block := list(itertools.islice(lines, _BLOCK)):
        kept = [line.rstrip("\r\n") for line in block if _RESERVED not in line]
        fits = [line for line in kept if len(line) <= _LONGEST_LINE // 4 or len(line.encode()) <= _LONGEST_LINE]
        too_long += len(kept) - len(fits)
        text = " ".join(line if line.isprintable() else line.translate(separators) for line in fits)
        counts.update(text.split(" "))
        counts.pop("", None)
        size += len(text) + 1  # an upper bound; the exact size is computed only above the limit
        if size > most_counted and (size := _size(counts)) > most_counted:
            counts, dropped, _ = _most_frequent(counts, most_counted // 2, limits)
            size, left_out = _size(counts), left_out + dropped
    if too_long:
        _LOGGER.info(f"vocabulary: {too_long:,} lines of more than {_LONGEST_LINE:,} bytes are left out")
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


def _size(counts):
    return len(counts) + sum(map(len, counts))


def _most_frequent(counts, room, limits):
    """Returns the words that fit in `room`, the characters of the dropped occurrences, and the lowest count kept.

    `limits` maps a count to the checksum below which its words are kept; it is updated across calls.
    """
    seen = np.fromiter(counts.values(), np.int64, len(counts))
    sizes = np.fromiter(map(len, counts), np.int64, len(counts)) + 1
    if sizes.sum() <= room:
        return counts, 0, 0
    levels, level_of = np.unique(-seen, return_inverse=True)  # from the most frequent on
    together = np.cumsum(np.bincount(level_of, sizes))
    first = np.searchsorted(together, room, side="right")  # the first level that does not fit as a whole
    least = -int(levels[first])
    is_tie = seen == least
    checksums = np.fromiter(map(_checksum, itertools.compress(counts, is_tie)), np.int64)
    order = np.argsort(checksums, kind="stable")
    room -= together[first - 1] if first else 0
    first_too_much = np.searchsorted(np.cumsum(sizes[is_tie][order]), room, side="right")
    # Never above an earlier limit: beyond it, the sample would contain only words from a later part of the text.
    limits[least] = min(limits.get(least, 2**32), int(checksums[order[first_too_much]]))
    stays = seen > least
    stays[is_tie] = checksums < limits[least]
    kept = collections.Counter(dict(itertools.compress(counts.items(), stays)))
    return kept, int((seen * sizes)[~stays].sum()), least


def _checksum(word):
    return zlib.crc32(word.encode())


def _stand_for(counts, least, left_out):
    """Raises the counts of the words seen `least` times to account for the words that were left out."""
    sample = [word for word, count in counts.items() if count == least]
    share = left_out / max(1, least * (len(sample) + sum(map(len, sample))))
    for word in sample:
        counts[word] = round(least * min(_MOST_STOOD_FOR, 1 + share))
