"""Removes sentence pairs that are not translations or not in the expected languages; selects pairs to hold out.

Lengths are counted in characters, because Chinese, Japanese and Thai do not separate words by spaces.
"""

import heapq
import itertools
import re

import numpy as np

from t2t_lite.corpora import scripts
from t2t_lite.corpora.encodings import is_mojibake
from t2t_lite.errors import UserError, nearest
from t2t_lite.files.hashes import SeenHashes, hash64
from t2t_lite.settings.ranges import Range, typed_value

_DEFAULTS = {"too_long": 1000, "length_ratio": 3.0}  # thresholds; the type of a default is that of its threshold
_THRESHOLD = Range(1, 10**9)
ORDER = ("empty", "too_long", "length_ratio", "copied", "wrong_script", "mojibake", "duplicate")  # cheapest first
# Number of characters by which a pair may exceed the length ratio, because correct translations of short sentences can
# differ in length: "Hi." is "Grüß Gott!". Among the 156,611 English-German pairs of Tatoeba, 19 exceed a ratio of 3,
# and nearly all of these are correct. With this allowance, 17 of the 19 pairs pass.
_ALLOWANCE = 10
_IGNORED, _ALL_HASHES = re.compile(r"[\W_]+"), 2**64
_BLOCK = 2**14  # number of pairs whose hashes are looked up in one call


def parse_filters(words):
    """Parses filters such as "length_ratio=3" or "all"; returns {name: threshold or True} in the order of `ORDER`.

    Raises:
        UserError: a name is unknown or repeated, or a threshold is invalid or out of range.
    """
    flag, thresholds = f"--filters={','.join(words)}", {}
    for word in words:
        name, equals, number = word.strip().partition("=")
        if name not in (*ORDER, "all"):
            raise UserError(
                f"{flag}: {name!r} is not a filter. {nearest(name, ORDER, end=' ')}Expected any of "
                f"{', '.join(ORDER)}, or all."
            )
        if equals and name not in _DEFAULTS:
            raise UserError(f"{flag}: {name} takes no number. Expected --filters={name}.")
        if name in thresholds:
            raise UserError(f"{flag}: {name} is given twice. Give it once.")
        default = _DEFAULTS.get(name, True)
        thresholds[name] = typed_value(f"{flag}: {name}", number, type(default), _THRESHOLD) if equals else default
    if thresholds.pop("all", False):
        for name in ORDER:
            thresholds.setdefault(name, _DEFAULTS.get(name, True))
    # "empty" is omitted, because this filter is always on
    return {name: thresholds[name] for name in ORDER if name in thresholds and name != "empty"}


class PairFilter:
    """Removes sentence pairs, and counts each of them under the first filter in `ORDER` that rejects it.

    * empty: a side is empty or contains only spaces. Always on.
    * too_long: either side has more characters than the threshold (default 1000).
    * length_ratio: the longer side has more than t · n + 10 characters, where t is the threshold (default 3) and n is
      the length of the shorter side.
    * copied: both sides are equal, ignoring case and surrounding spaces.
    * wrong_script: on either side, fewer than half of the letters belong to a script of its language.
    * mojibake: either side is UTF-8 that was read in another encoding (`encodings.is_mojibake`).
    * duplicate: the same pair has already passed all filters. Only 64-bit hashes are compared, so a pair takes 8 bytes
      of memory. Among 40 million different pairs, the probability of any mistake is 1 in 20,000.

    Args:
        thresholds: the result of `parse_filters`.
        languages: the language codes of (inputs, targets), which only wrong_script uses.
        removed: Counter in which the removed pairs are counted by filter.

    Raises:
        UserError: the scripts of a language are unknown.
    """

    def __init__(self, thresholds, languages, removed):
        self._tests = [(name, test) for name, test in _tests(thresholds, languages) if test]
        removed.update(dict.fromkeys(thresholds, 0))  # filters that remove nothing are also reported
        self._seen = SeenHashes() if thresholds.get("duplicate") else None
        self._removed = removed

    def __call__(self, pairs):
        """Yields the pairs {"inputs": str, "targets": str} that pass all filters, in order."""
        passed = self._passing(pairs)
        return passed if self._seen is None else self._new(passed)

    def _passing(self, pairs):
        tests, removed = self._tests, self._removed
        for pair in pairs:
            inputs, targets = pair["inputs"], pair["targets"]
            for name, test in tests:
                if test(inputs, targets):
                    removed[name] += 1
                    break
            else:
                yield pair

    def _new(self, pairs):
        pairs = iter(pairs)
        while block := list(itertools.islice(pairs, _BLOCK)):
            hashes = np.fromiter((pair_hash(pair) for pair in block), np.uint64, len(block))
            was_met = self._seen.add(hashes)
            self._removed["duplicate"] += int(was_met.sum())
            yield from itertools.compress(block, (~was_met).tolist())


def pair_hash(pair, purpose=""):
    """Returns one 64-bit hash of both sides of a sentence pair."""
    return hash64(f"{pair['inputs']}\n{pair['targets']}", purpose)


def _tests(thresholds, languages):
    """Yields (name of a filter, function) for every filter; the function is None if the filter is off.

    The function takes (inputs, targets) and returns whether to remove the pair.
    """
    longest, ratio = thresholds.get("too_long"), thresholds.get("length_ratio")
    yield "empty", lambda inputs, targets: not inputs or not targets or inputs.isspace() or targets.isspace()
    yield "too_long", longest and (lambda inputs, targets: len(inputs) > longest or len(targets) > longest)
    yield "length_ratio", ratio and (lambda inputs, targets: _is_unequal(len(inputs), len(targets), ratio))
    yield "copied", thresholds.get("copied") and (lambda *pair: len({text.casefold().strip() for text in pair}) == 1)
    if thresholds.get("wrong_script"):
        are_wrong_inputs, are_wrong_targets = (_Votes(scripts.scripts_of(language)).are_wrong for language in languages)
        yield "wrong_script", lambda inputs, targets: are_wrong_inputs(inputs) or are_wrong_targets(targets)
    if thresholds.get("mojibake"):
        yield "mojibake", lambda inputs, targets: is_mojibake(inputs) or is_mojibake(targets)


def _is_unequal(length, other_length, ratio):
    return length > ratio * other_length + _ALLOWANCE or other_length > ratio * length + _ALLOWANCE


class _Votes(dict):
    """Maps letters of the given scripts to 1, other letters to -1, and other characters to 0.

    Attributes:
        harmless: set of the characters that have been looked up and are not mapped to -1.
    """

    def __init__(self, names):
        super().__init__()
        self._names = names
        self.harmless = set()

    def __missing__(self, character):
        script = scripts.script_of(character)
        vote = self[character] = 0 if not script else 1 if script in self._names else -1
        if vote >= 0:
            self.harmless.add(character)
        return vote

    def are_wrong(self, text):
        """Returns whether fewer than half of a text's letters belong to the given scripts."""
        # Usually no character has the value -1. Testing for this is ten times as fast as summing the values.
        return not self.harmless.issuperset(text) and sum(map(self.__getitem__, text)) < 0


def is_held_out(pair, bound, seed):
    """Returns whether a pair {"inputs", "targets"} is held out from training.

    It is held out if the hash of its inputs is below a bound. So all translations of a sentence are held out together,
    and neither repeated pairs nor the order of the files affects the selection.
    """
    return _group(pair, seed) < bound


def find_bound(pairs, count, seed):
    """Returns (bound for the hashes, number of distinct pairs below it) to hold out about `count` pairs.

    All translations of a sentence are held out together, so the number of pairs can differ slightly from `count`. At
    most a tenth of all pairs, but at least one sentence, is held out. The required memory is proportional to `count`.

    Args:
        pairs: iterable of {"inputs", "targets"}.
        count: int, 1 or more.
        seed: int that determines the selection.
    """
    groups, largest, size, bound = {}, [], 0, _ALL_HASHES  # hash of a sentence -> hashes of its pairs
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
        # the kept sentences show whether a tenth of all pairs is less than `count`
        while size - len(groups[-largest[0]]) >= 10 * count:
            bound = -heapq.heappop(largest)
            size -= len(groups.pop(bound))
    target, size = min(count, size // 10), 0
    for group in sorted(groups):
        if size and size + len(groups[group]) - target > target - size:
            return group, size
        size += len(groups[group])
    return bound, size


def _group(pair, seed):
    """Returns the hash of a pair's inputs, ignoring case, punctuation and spaces unless that leaves nothing."""
    inputs = pair["inputs"]
    return hash64(_IGNORED.sub("", inputs.casefold()) or inputs, f"held out {seed}")
