"""The inflection of German determiners, adjectives and nouns, and the pronouns of both languages."""

import functools
from typing import NamedTuple

from t2t_lite.extras.phrasebook.lexicon import DETERMINERS

# Endings by case for masculine, feminine, neuter, plural. An adjective is strong if no determiner before it has an
# ending, and weak otherwise: after ein-words this gives the mixed declension.
_ARTICLE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den", "gen": "des der des der"}
_DETERMINER = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en", "gen": "es er es er"}
_STRONG = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en", "gen": "en er en er"}
_WEAK = {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en", "gen": "en en en en"}


class Pronoun(NamedTuple):
    """A personal or question pronoun, used like a `NounPhrase`. Persons: 0 ich, 1 du, 2 er, 3 plural."""

    en: str
    en_object: str
    nom: str
    acc: str
    dat: str
    person: int
    possessive: str = ""

    def english(self, case="nom"):
        """Returns the English form."""
        return self.en if case == "nom" else self.en_object

    def german(self, case):
        """Returns the German form of a case."""
        return getattr(self, case)


I = Pronoun("I", "me", "ich", "mich", "mir", 0, "my")  # noqa: E741
YOU = Pronoun("you", "you", "du", "dich", "dir", 1, "your")  # always one person, addressed as du
HE = Pronoun("he", "him", "er", "ihn", "ihm", 2, "his")
SHE = Pronoun("she", "her", "sie", "sie", "ihr", 2, "her")
WE = Pronoun("we", "us", "wir", "uns", "uns", 3, "our")
THEY = Pronoun("they", "them", "sie", "sie", "ihnen", 3, "their")
PRONOUNS = (I, YOU, HE, SHE, WE, THEY)
WHO = Pronoun("who", "who", "wer", "wen", "wem", 2)
WHAT = Pronoun("what", "what", "was", "was", "", 2)
IT = {  # by the gender of the German noun that it stands for
    "m": Pronoun("it", "it", "er", "ihn", "ihm", 2),
    "f": Pronoun("it", "it", "sie", "sie", "ihr", 2),
    "n": Pronoun("it", "it", "es", "es", "ihm", 2),
    "p": THEY,
}


def _ending(table, gender, case):
    return table[case].split()["mfnp".index(gender)]


@functools.cache
def determiner_form(name, gender, case):
    """Returns (form of a German determiner or "", whether it has an ending). `gender` is p for any plural."""
    stem, inflection = DETERMINERS[name].stem, DETERMINERS[name].inflection
    if not inflection or (inflection == "ein" and gender + case in ("mnom", "nnom", "nacc")):
        return stem, False
    return stem + _ending(_ARTICLE if inflection == "article" else _DETERMINER, gender, case), True


@functools.cache
def adjective_form(stem, is_weak, gender, case):
    """Returns an adjective with its ending: weak after a determiner that has an ending, otherwise strong."""
    return stem + _ending(_WEAK if is_weak else _STRONG, gender, case)


def noun_form(noun, is_plural, case):
    """Returns a noun with its ending: den Kindern, des Hundes, den Studenten."""
    if is_plural:
        return noun.de_plural + "n" * (case == "dat" and noun.de_plural[-1] not in "ns")
    is_weak = bool(noun.genitive) and noun.genitive[-1] != "s"
    return noun.genitive if case == "gen" or (is_weak and case != "nom") else noun.de
