"""Inflection for the phrasebook: how English and German nouns, verbs, adjectives, articles and pronouns change."""

import functools
import re
from typing import NamedTuple

# Endings by case for masculine, feminine, neuter, plural. An adjective is strong where no article before it has an
# ending, and weak otherwise: after ein-words that makes the mixed declension.
_ARTICLE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den", "gen": "des der des der"}
_DETERMINER = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en", "gen": "es er es er"}
_STRONG = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en", "gen": "en er en er"}
_WEAK = {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en", "gen": "en en en en"}
CONTRACTIONS = {"in dem": "im", "in das": "ins", "an dem": "am", "zu dem": "zum", "zu der": "zur"}

# name: English singular, English plural, German stem, how it is inflected
DETERMINERS = {
    "the": ("the", "the", "", "article"),
    "this": ("this", "these", "dies", "determiner"),
    "which": ("which", "which", "welch", "determiner"),
    "every": ("every", "", "jed", "determiner"),
    "a": ("a", "", "ein", "ein"),
    "any": ("a", "any", "kein", "ein"),  # under an English "not"
    "no": ("no", "no", "kein", "ein"),
    "my": ("my", "my", "mein", "ein"),
    "your": ("your", "your", "dein", "ein"),
    "his": ("his", "his", "sein", "ein"),
    "her": ("her", "her", "ihr", "ein"),
    "our": ("our", "our", "unser", "ein"),
    "their": ("their", "their", "ihr", "ein"),
    "two": ("", "two", "zwei", ""),
    "three": ("", "three", "drei", ""),
    "five": ("", "five", "fünf", ""),
    "many": ("", "many", "viele", ""),  # nominative and accusative only
    "-": ("", "", "", ""),
}

# English modal as it stands before the infinitive: German infinitive, present for ich, du, er, plural
MODALS = {
    "can": "können kann kannst kann können",
    "have to": "müssen muss musst muss müssen",
    "want to": "wollen will willst will wollen",
    "be allowed to": "dürfen darf darfst darf dürfen",
    "should": "sollen sollte solltest sollte sollten",
    "would like to": "mögen möchte möchtest möchte möchten",
    "will": "werden werde wirst wird werden",
}
IRREGULAR_PRESENT = {
    "sein": "bin bist ist sind",
    "haben": "habe hast hat haben",
    "mögen": "mag magst mag mögen",
    "wissen": "weiß weißt weiß wissen",
}
ENGLISH_PRESENT = {"be": "am are is are", "have": "have have has have", "do": "do do does do"}


class Noun(NamedTuple):
    """A noun. `gender` is m, f or n, and p where there is no singular; the forms of a number not used are ""."""

    kind: str
    en: str
    en_plural: str
    gender: str
    de: str
    de_plural: str
    is_weak: bool

    @property
    def is_mass(self):
        """Said of nouns that need no article in the singular: bread, money."""
        return not self.en_plural and self.kind != "kin"

    def german(self, case, is_plural):
        """Returns the form of a case."""
        if is_plural:
            return self.de_plural + "n" * (case == "dat" and self.de_plural[-1] not in "ns")
        if self.is_weak and case != "nom":
            return self.de_plural
        if case == "gen" and self.gender in "mn":
            return self.de + ("es" if len(re.findall("[aeiouyäöü]+", self.de.lower())) == 1 else "s")
        return self.de


class Verb(NamedTuple):
    """A verb: English forms, German principal parts (`third` and `prefix`: ruft an), the nouns and places it takes."""

    group: str
    en: str
    en_past: str
    en_participle: str
    particle: str
    is_phrasal: bool
    has_progressive: bool
    de: str
    third: str
    prefix: str
    auxiliary: str
    participle: str
    nouns: tuple
    places: tuple

    def present(self, person):
        """Returns the German present, without a separable prefix. Persons: 0 ich, 1 du, 2 er, 3 plural."""
        infinitive = self.de.removeprefix(self.prefix)
        if infinitive in IRREGULAR_PRESENT:
            return IRREGULAR_PRESENT[infinitive].split()[person]
        stem = self.third[:-1]  # liest, du liest; arbeitet, du arbeitest; fährt, du fährst
        second = stem + ("t" if stem[-1] in "szß" else "st")
        return (infinitive[:-1], second, self.third, infinitive)[person]


class Adjective(NamedTuple):
    """An adjective; `stem` is what German endings are added to."""

    en: str
    de: str
    stem: str


class Word(NamedTuple):
    """A German word and what it is in its sentence; `phrasebook_grammar.py` lists the tags."""

    text: str
    tag: str


class Pronoun(NamedTuple):
    """A personal or question pronoun, used like a `NounPhrase`."""

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
        """Returns the German form in a case."""
        return [Word(getattr(self, case), f"pron {self.person} {case}")]


I = Pronoun("I", "me", "ich", "mich", "mir", 0, "my")  # noqa: E741
YOU = Pronoun("you", "you", "du", "dich", "dir", 1, "your")  # always one person, addressed as du
HE = Pronoun("he", "him", "er", "ihn", "ihm", 2, "his")
SHE = Pronoun("she", "her", "sie", "sie", "ihr", 2, "her")
WE = Pronoun("we", "us", "wir", "uns", "uns", 3, "our")
THEY = Pronoun("they", "them", "sie", "sie", "ihnen", 3, "their")
PRONOUNS = (I, YOU, HE, SHE, WE, THEY)
WHO = Pronoun("who", "who", "wer", "wen", "wem", 2)
WHAT = Pronoun("what", "what", "was", "was", "", 2)
IT = {
    "m": Pronoun("it", "it", "er", "ihn", "ihm", 2),
    "f": Pronoun("it", "it", "sie", "sie", "ihr", 2),
    "n": Pronoun("it", "it", "es", "es", "ihm", 2),
    "p": THEY,
}


@functools.cache
def english_s(word):
    """Returns a noun's plural or a verb's third person: city -> cities, wash -> washes, go -> goes."""
    if re.search("[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if re.search("(s|x|z|ch|sh|o)$", word) and word not in ("photo", "radio") else "s")


@functools.cache
def english_ing(verb):
    """Returns the -ing form: write -> writing, put -> putting, lie -> lying."""
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    return (verb[:-1] if re.search("[^e]e$", verb) else _doubled(verb)) + "ing"


def english_ed(verb):
    """Returns the regular past and past participle."""
    if re.search("[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    return verb + "d" if verb.endswith("e") else _doubled(verb) + "ed"


def _doubled(verb):
    return verb + verb[-1] if re.fullmatch("[^aeiou]+[aeiou][bdgmnpt]", verb) else verb


def _ending(table, gender, case):
    return table[case].split()["mfnp".index(gender)]


@functools.cache
def determiner_form(name, gender, case):
    """Returns a German determiner's form, "" for none, and whether it has an ending."""
    _, _, stem, inflection = DETERMINERS[name]
    if not inflection or (inflection == "ein" and gender + case in ("mnom", "nnom", "nacc")):
        return stem, False
    return stem + _ending(_ARTICLE if inflection == "article" else _DETERMINER, gender, case), True


@functools.cache
def adjective_form(stem, is_weak, gender, case):
    """Returns an adjective with its ending: weak behind a determiner that has an ending, otherwise strong."""
    return stem + _ending(_WEAK if is_weak else _STRONG, gender, case)
