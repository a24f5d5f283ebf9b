"""Draws the pairs that are kept from training to evaluate on, sentence by sentence.

A pair is held out if the hash of its inputs is below a bound. So all translations of a sentence are on one side, and
neither copies of pairs nor the order of the files matter.
"""

import heapq
import re

from t2t_lite.corpora.filters import pair_hash
from t2t_lite.files.hashes import hash64

_IGNORED = re.compile(r"[\W_]+")
_ALL = 2**64


def is_held_out(pair, bound, seed):
    """Says whether a {"inputs", "targets"} is held out."""
    return _group(pair, seed) < bound


def find_bound(pairs, count, seed):
    """Returns (bound, number of different pairs below it), for about `count` pairs and at most a tenth of all.

    The pairs of one sentence stay together, so the number is the nearest to that which whole sentences give; at least
    one sentence is held out. Memory is needed for `count` pairs.

    Args:
        pairs: iterable of {"inputs", "targets"}.
        count: int, 1 or more.
        seed: int; another one draws others.
    """
    groups, largest, held, total, bound = {}, [], 0, 0, _ALL  # hash of a sentence -> hashes of its pairs
    for pair in pairs:
        total += 1
        group = _group(pair, seed)
        if group >= bound:
            continue
        if group not in groups:
            groups[group] = set()
            heapq.heappush(largest, -group)
        held -= len(groups[group])
        groups[group].add(pair_hash(pair))
        held += len(groups[group])
        while held - len(groups[-largest[0]]) >= count:
            bound = -heapq.heappop(largest)
            held -= len(groups.pop(bound))
    wanted, held = min(count, total // 10), 0
    for group in sorted(groups):
        if held and held + len(groups[group]) - wanted > wanted - held:
            return group, held
        held += len(groups[group])
    return bound, held


def _group(pair, seed):
    """The hash of a pair's inputs, ignoring case, punctuation and blanks; of the inputs themselves if that is all."""
    inputs = pair["inputs"]
    return hash64(_IGNORED.sub("", inputs.casefold()) or inputs, f"held out {seed}")
