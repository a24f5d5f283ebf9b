"""Filters of sentence pairs: what a corpus holds that is no translation, or not of these languages.

All count characters, not words: Chinese, Japanese and Thai put no blanks between words.
"""

import itertools
import math

import numpy as np

from t2t_lite.corpora import scripts
from t2t_lite.errors import UserError, nearest
from t2t_lite.files.hashes import SeenHashes, hash64

_LARGEST = 10**9
_DEFAULTS = {"too_long": 1000, "length_ratio": 3.0}
ORDER = ("empty", "too_long", "length_ratio", "copied", "wrong_script", "duplicate")  # cheap ones first
# Short sentences differ in length for no fault: "Hi." is "Grüß Gott!". Of 156,611 English-German pairs of Tatoeba 19
# are beyond 3 to 1, nearly all of them translations; 17 are no more than this many characters beyond.
_ALLOWANCE = 10
_BLOCK = 2**14  # pairs whose hashes are looked up together


def parse_filters(words):
    """Returns {name: its number, or True}, in their order, of words such as "length_ratio=3", "duplicate" and "all".

    Raises:
        UserError: an unknown name, a number that is none or out of range, or a filter that comes twice.
    """
    flag, found = f"--filters={','.join(words)}", {}
    for word in words:
        name, equals, number = word.strip().partition("=")
        if name not in (*ORDER, "all"):
            raise UserError(
                f"{flag}: {name!r} is no filter. {nearest(name, ORDER)} Expected some of {', '.join(ORDER)}, or all."
            )
        if equals and name not in _DEFAULTS:
            raise UserError(f"{flag}: {name} takes no number. Expected --filters={name}.")
        if name in found:
            raise UserError(f"{flag}: {name} comes twice. Leave one out.")
        found[name] = _number(flag, name, number) if equals else _DEFAULTS.get(name, True)
    if found.pop("all", False):
        found = {**dict.fromkeys(ORDER, True), **_DEFAULTS, **found}
    return {name: found[name] for name in ORDER if name in found and name != "empty"}  # that one is always on


def _number(flag, name, text):
    try:
        number = int(text) if name == "too_long" else float(text)
    except ValueError:
        number = math.nan
    if not 1 <= number <= _LARGEST:
        kind = ("a whole number of characters" if name == "too_long" else "a number") + f" from 1 to {_LARGEST:,}"
        raise UserError(f"{flag}: {name}={text}: expected {kind}, such as {name}={_DEFAULTS[name]:g}.")
    return number


class PairFilter:
    """Leaves pairs out, and counts them under the first filter that does, in the order of `ORDER`.

    * empty: a side is blank. Always on.
    * too_long: either side has more characters than its number (1000).
    * length_ratio: the longer side has more characters than its number (3) times those of the shorter one, plus 10.
    * copied: both sides are equal, ignoring case and blanks at their ends.
    * wrong_script: of either side's letters fewer than half are of a script of its language.
    * duplicate: the same pair has passed this object before. Of 40 million different pairs, one is taken for another
      with a probability of 1 in 20,000: 64-bit hashes are compared, and 8 bytes a pair kept.

    Args:
        wanted: as `parse_filters` returns it.
        languages: codes of (inputs, targets); for wrong_script alone.
        removed: Counter that what is left out is added to.

    Raises:
        UserError: the scripts of a language are not known.
    """

    def __init__(self, wanted, languages, removed):
        self._tests = [(name, test) for name, test in _tests(wanted, languages) if test]
        removed.update(dict.fromkeys(wanted, 0))  # what has removed nothing is reported, too
        self._seen = SeenHashes() if wanted.get("duplicate") else None
        self._removed = removed

    def __call__(self, pairs):
        """Yields those of the {"inputs": str, "targets": str} that stay, in their order."""
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
    """Returns `hash64` of both sides."""
    return hash64(f"{pair['inputs']}\n{pair['targets']}", purpose)


def _tests(wanted, languages):
    """Yields (name, function of (inputs, targets) that says whether to leave them out; None: not wanted)."""
    longest, ratio = wanted.get("too_long"), wanted.get("length_ratio")
    yield "empty", lambda inputs, targets: not inputs or not targets or inputs.isspace() or targets.isspace()
    yield "too_long", longest and (lambda inputs, targets: len(inputs) > longest or len(targets) > longest)
    yield "length_ratio", ratio and (lambda inputs, targets: _is_unequal(len(inputs), len(targets), ratio))
    yield "copied", wanted.get("copied") and _is_copied
    if wanted.get("wrong_script"):
        of_inputs, of_targets = map(_WrongScript, languages)
        yield "wrong_script", lambda inputs, targets: of_inputs(inputs) or of_targets(targets)


def _is_unequal(one, other, ratio):
    return one > ratio * other + _ALLOWANCE or other > ratio * one + _ALLOWANCE


def _is_copied(inputs, targets):
    return inputs.casefold().strip() == targets.casefold().strip()


class _WrongScript:
    """Says whether fewer than half of a text's letters are of a script of the language."""

    def __init__(self, language):
        self._votes = _Votes(scripts.scripts_of(language))

    def __call__(self, text):
        votes = self._votes
        if votes.harmless.issuperset(text):  # nearly always, and ten times quicker than to add up
            return False
        return sum(map(votes.__getitem__, text)) < 0


class _Votes(dict):
    """Character -> 1: a letter of one of the scripts; -1: of another; 0: no letter. `harmless` are those without -1."""

    def __init__(self, own):
        super().__init__()
        self._own = own
        self.harmless = set()

    def __missing__(self, character):
        script = scripts.script_of(character)
        vote = self[character] = 0 if not script else 1 if script in self._own else -1
        if vote >= 0:
            self.harmless.add(character)
        return vote
