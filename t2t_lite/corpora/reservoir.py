"""Draws a random sample from a stream of texts or pairs of texts, and keeps the sample on disk."""

import array
import hashlib
import itertools
import struct
import tempfile

import numpy as np

_BLOCK = 2**13  # number of pairs for which random numbers are drawn in one call


class Reservoir:
    """Samples uniformly from a stream of unknown length (Vitter 1985, algorithm R); holds no text in memory.

    Sampled pairs are appended to a temporary file in the system's folder (`TMPDIR`); only their offsets are kept in
    memory, 8 bytes per pair. Pairs that are replaced later remain in the file, so about k (1 + ln(n / k)) pairs are
    written in order to sample k of n pairs.

    Args:
        most: number of pairs to sample. None or 0 means all pairs.
        seed: any int or str; the same stream and seed give the same sample.

    Attributes:
        seen: number of pairs read from the stream so far.

    Example:
        >>> with Reservoir(2, seed=1) as sample:
        ...     sample.fill((str(number), "") for number in range(100))
        ...     print(len(sample), sample.seen)
        2 100
    """

    def __init__(self, most, seed):
        self._most = most or None
        self._draw = np.random.default_rng(int.from_bytes(hashlib.sha256(str(seed).encode()).digest()))
        self._offsets = array.array("q")
        self.seen = 0

    def __enter__(self):
        self._file = tempfile.TemporaryFile(prefix="t2t_lite-", buffering=1 << 20)
        return self

    def __exit__(self, *_):
        self._file.close()

    def __len__(self):
        return len(self._offsets)

    def fill(self, pairs):
        """Samples from an iterable of tuples of str, all of the same size. Raises `OSError` if the disk is full."""
        end, pairs = self._file.seek(0, 2), iter(pairs)
        while block := list(itertools.islice(pairs, _BLOCK)):
            for pair, place in zip(block, self._places(len(block)), strict=True):
                if place is None:
                    continue
                if place < len(self._offsets):
                    self._offsets[place] = end
                else:
                    self._offsets.append(end)
                texts = [text.encode() for text in pair]
                self._lengths = struct.Struct(f"<{len(texts)}I")  # packs the byte lengths of the texts
                end += self._append(b"".join([self._lengths.pack(*map(len, texts)), *texts]))

    def _append(self, data):
        try:
            return self._file.write(data)
        except OSError as error:  # the disk with the temporary file is full
            error.filename = tempfile.gettempdir()
            raise

    def _places(self, count):
        """Returns, for each of the next `count` pairs, its index in the sample, or None if the pair is not sampled."""
        numbers = np.arange(self.seen, self.seen + count)
        self.seen += count
        if self._most is None:
            return numbers.tolist()
        # Pair number i is sampled with probability most / (i + 1).
        places = np.where(numbers < self._most, numbers, self._draw.integers(0, numbers + 1))
        return [place if place < self._most else None for place in places.tolist()]

    def __iter__(self):
        """Yields the sampled pairs in the order of the stream."""
        at = -1
        for offset in np.sort(np.array(self._offsets, np.int64)).tolist():
            if offset != at:
                self._file.seek(offset)
            lengths = self._lengths.unpack(self._file.read(self._lengths.size))
            yield tuple(self._file.read(length).decode() for length in lengths)
            at = offset + self._lengths.size + sum(lengths)
