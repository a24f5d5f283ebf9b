"""The phrasebook's words, from the `.tsv` files of this folder, with the columns of a textbook.

An English word (for verbs: with the kind of its object) has exactly one German word, so that an English sentence has
one translation. A row is a named tuple of its columns:

* nouns: `gender` is m, f or n, or p for a noun without a singular. Forms of a number that is not used are empty. Places
  have prepositions: English `at` and `to`, German `wo` (with the dative) and `wohin`.
* verbs: `ing` is empty if there is no progressive. `preposition` is "for" in "look for"; `adverb` is "up" in "pick
  up", which follows a pronoun. `present` has the forms for ich, du, er and wir, without the separable `prefix`. `style`
  is the kind of determiners that the object takes; `motives` are the verbs that can give a reason for doing it.
* adjectives: `stem` is the form to which German endings are added.
* determiners: "any" is used under an English "not".

The columns `objects`, `places` and `nouns` name nouns or kinds of nouns.
"""

import collections

from t2t_lite.problems.published_files import read_table, words

NOUNS = {noun.en: noun for noun in read_table(__package__, "nouns", kinds=words)}
_NAMED = collections.defaultdict(list)
for _noun in NOUNS.values():
    for _name in {_noun.en, *_noun.kinds}:
        _NAMED[_name].append(_noun)
_NAMED = dict(_NAMED)


def nouns(names):
    """Returns the nouns in a string of nouns and kinds of nouns. Raises `KeyError` for any other word."""
    return tuple(dict.fromkeys(noun for name in names.split() for noun in _NAMED[name]))


VERBS = read_table(__package__, "verbs", present=words, objects=nouns, places=nouns, motives=words)
ADJECTIVES = read_table(__package__, "adjectives", nouns=nouns)
TIMES = read_table(__package__, "times", kinds=words)
DETERMINERS = {row.name: row for row in read_table(__package__, "determiners")}
MODALS = {verb.en: verb for verb in VERBS if verb.group == "modal"}
