"""Counts the words of a text in bounded memory: all that subwords are learned from."""

import collections
import itertools
import logging
import zlib

import numpy as np

_LOGGER = logging.getLogger("t2t_lite")

_BLOCK = 2**14  # lines counted at once
MOST_COUNTED = 40_000_000  # characters of different words while counting; at most some 600 MB
# Likewise in the end. SentencePiece takes some 65 bytes for each, and up to 120 where sentences have no blanks.
MOST_KEPT = 10_000_000
_LONGEST_LINE = 4192  # bytes; SentencePiece's own limit (max_sentence_length)
_RESERVED = "\u2585"  # SentencePiece leaves out lines with its character for the unknown
_MOST_STOOD_FOR = 16


def count_words(lines, separators, *, most_counted=MOST_COUNTED, most_kept=MOST_KEPT):
    """Returns {word: how often it occurs} of a text, without the lines that SentencePiece would leave out.

    A text of so many different words that they do not fit in memory loses its rarest ones. That is done while counting
    too (lossy counting: a count can be too low by what its word had when it was last dropped). Of the words that are
    seen equally often, and fit only in part, an even sample is kept: which ones, their checksums decide. Each of the
    sample counts for those that were left out as well, up to 16 times. So the result depends on the lines alone.

    Args:
        lines: iterable of strings.
        separators: {code point: " "} of what separates words beside the blank.
        most_counted: characters of different words, each with the blank before it, above which the rarest are dropped
            while counting.
        most_kept: likewise in the end.
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
        size += len(text) + 1  # no more than that: it is counted when it may matter
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
            f"{different:,} different words; the rarer ones do not fit in memory"
        )
        _stand_for(counts, least or min(counts.values()), left_out)
    return counts


def _size(counts):
    return len(counts) + sum(map(len, counts))


def _most_frequent(counts, room, limits):
    """Returns the words that fit in `room`, the characters of the occurrences dropped, and the least count kept.

    `limits` maps a count to the checksum below which its words are sampled, from earlier calls too.
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
    # Never above the limit of before: beyond it, only the words of a later part of the text would be in the sample.
    limits[least] = min(limits.get(least, 2**32), int(checksums[order[first_too_much]]))
    stays = seen > least
    stays[is_tie] = checksums < limits[least]
    kept = collections.Counter(dict(itertools.compress(counts.items(), stays)))
    return kept, int((seen * sizes)[~stays].sum()), least


def _checksum(word):
    return zlib.crc32(word.encode())


def _stand_for(counts, least, left_out):
    """Raises the counts of the words seen `least` times by what was left out."""
    sample = [word for word, count in counts.items() if count == least]
    share = left_out / max(1, least * (len(sample) + sum(map(len, sample))))
    for word in sample:
        counts[word] = round(least * min(_MOST_STOOD_FOR, 1 + share))
