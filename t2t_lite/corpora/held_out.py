"""Selects the pairs that are held out from training for evaluation.

A pair is held out if the hash of its inputs is below a bound. So all translations of a sentence stay together, and
neither repeated pairs nor the order of the files matter.
"""

import heapq
import re

from t2t_lite.corpora.filters import pair_hash
from t2t_lite.files.hashes import hash64

_IGNORED = re.compile(r"[\W_]+")
_ALL = 2**64


def is_held_out(pair, bound, seed):
    """Returns whether a pair {"inputs", "targets"} is held out."""
    return _group(pair, seed) < bound


def find_bound(pairs, count, seed):
    """Returns (bound, number of distinct pairs below it), for about `count` pairs and at most a tenth of them.

    The pairs of one sentence stay together, so the number is as close to `count` as whole sentences allow. At least
    one sentence is held out. The memory needed is proportional to `count`.

    Args:
        pairs: iterable of {"inputs", "targets"}.
        count: int, 1 or more.
        seed: int that determines the selection.
    """
    groups, largest, size, bound = {}, [], 0, _ALL  # hash of a sentence -> hashes of its pairs
    for pair in pairs:
        group = _group(pair, seed)
        if group >= bound:
            continue
        if group not in groups:
            groups[group] = set()
            heapq.heappush(largest, -group)
        size -= len(groups[group])
        groups[group].add(pair_hash(pair))
        size += len(groups[group])
        while size - len(groups[-largest[0]]) >= 10 * count:  # enough to know whether `count` is a tenth
            bound = -heapq.heappop(largest)
            size -= len(groups.pop(bound))
    target, size = min(count, size // 10), 0
    for group in sorted(groups):
        if size and size + len(groups[group]) - target > target - size:
            return group, size
        size += len(groups[group])
    return bound, size


def _group(pair, seed):
    """Returns the hash of a pair's inputs, ignoring case, punctuation and spaces unless nothing else is left."""
    inputs = pair["inputs"]
    return hash64(_IGNORED.sub("", inputs.casefold()) or inputs, f"held out {seed}")
