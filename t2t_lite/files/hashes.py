"""Computes hashes of files and texts, and defines a compact set of hashes."""

import functools
import hashlib
import itertools

import numpy as np

from t2t_lite import files

_PARTS = 64
_BLOCK = 2**20


@functools.lru_cache
def file_sha256(path, length, *times):
    """Returns the SHA-256 (hex) of a file, which is read again only if its `length` or `times` have changed."""
    digest = hashlib.sha256()
    with files.open_stream(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def hash64(text, purpose=""):
    """Returns a number from 0 to 2**64 - 1 that depends only on the arguments and is the same on every machine.

    Args:
        text: str.
        purpose: str; the numbers for different purposes are independent.
    """
    return int.from_bytes(hashlib.blake2b(f"{purpose}\n{text}".encode(), digest_size=8).digest())


class SeenHashes:
    """A set of hashes that needs 8 bytes per hash, and up to 1/64 more while arrays are merged.

    Hashes are split by value into 64 parts. A part consists of sorted arrays. A new array is merged with the arrays
    that are not much larger, so that the number of arrays is about the logarithm of the part's size (O'Neil et al.
    1996, "The log-structured merge-tree").
    """

    def __init__(self):
        self._parts = [[] for _ in range(_PARTS)]
        self._begins = np.arange(1, _PARTS, dtype=np.uint64) << np.uint64(64 - _PARTS.bit_length() + 1)

    def __len__(self):
        return sum(map(len, itertools.chain.from_iterable(self._parts)))

    def add(self, hashes):
        """Adds uint64 [n]; returns bool [n], True for hashes added before or occurring earlier in `hashes`."""
        values, places = np.unique(hashes, return_index=True)  # index of each value's first occurrence
        is_new = np.ones(len(values), bool)
        bounds = [0, *np.searchsorted(values, self._begins), len(values)]
        for arrays, (begin, end) in zip(self._parts, itertools.pairwise(bounds), strict=True):
            for array in arrays:
                at = np.searchsorted(array, values[begin:end])
                is_new[begin:end] &= array[np.minimum(at, len(array) - 1)] != values[begin:end]
            _merge_in(arrays, values[begin:end][is_new[begin:end]])
        was_met = np.ones(len(hashes), bool)
        was_met[places[is_new]] = False
        return was_met


def _merge_in(arrays, values):
    """Adds sorted values to a list of sorted arrays, each of which stays at least twice as long as the next."""
    while arrays and len(arrays[-1]) < 2 * len(values):
        values = np.concatenate([arrays.pop(), values])
        values.sort(kind="stable")  # timsort, unlike radix sort, merges two sorted runs in linear time
    if len(values):
        arrays.append(values)
