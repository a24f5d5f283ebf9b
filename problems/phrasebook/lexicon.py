"""The phrasebook's words, from the `.tsv` files of this folder, whose rows give what a school-book gives.

An English word (for verbs: with the kind of its object) has exactly one German word, so that an English sentence has
one translation. A row is a named tuple of its columns:

* nouns: `gender` is m, f or n, and p where there is no singular; forms of a number that is not used are empty. Places
  have prepositions: English `at` and `to`, German `wo` (with the dative) and `wohin`.
* verbs: no `ing` where there is no progressive; `present` for ich, du, er and wir, without the separable `prefix`;
  `style` of the object's determiners; `motives` are verbs that give a reason. `preposition` and `adverb`: look for, but
  pick up, which also stands behind a pronoun.
* adjectives: `stem` is what German endings are added to.
* determiners: "any" is what stands under an English "not".

Columns `objects`, `places` and `nouns` hold nouns and kinds of nouns; see `nouns`.
"""

import collections

from t2t_lite.problems.tables import read_table, words

NOUNS = {noun.en: noun for noun in read_table(__package__, "nouns", kinds=words)}
_NAMED = collections.defaultdict(list)
for _noun in NOUNS.values():
    for _name in {_noun.en, *_noun.kinds}:
        _NAMED[_name].append(_noun)
_NAMED = dict(_NAMED)


def nouns(names):
    """Returns the nouns of a string of nouns and kinds of nouns. Raises `KeyError` for what is neither."""
    return tuple(dict.fromkeys(noun for name in names.split() for noun in _NAMED[name]))


VERBS = read_table(__package__, "verbs", present=words, objects=nouns, places=nouns, motives=words)
ADJECTIVES = read_table(__package__, "adjectives", nouns=nouns)
TIMES = read_table(__package__, "times", kinds=words)
DETERMINERS = {row.name: row for row in read_table(__package__, "determiners")}
MODALS = {verb.en: verb for verb in VERBS if verb.group == "modal"}
