"""Forms words, phrases and clauses; a `Clause` is a meaning that can be expressed in English and in German."""

import collections
import functools
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from t2t_lite.problems.published_files import read_table, words

NOUNS = {noun.en: noun for noun in read_table(__package__, "nouns", kinds=words)}
_NAMED = collections.defaultdict(list)
for _noun in NOUNS.values():
    for _name in {_noun.en, *_noun.kinds}:
        _NAMED[_name].append(_noun)
_NAMED = dict(_NAMED)
TIMES = read_table(__package__, "times", kinds=words)
DETERMINERS = {row.name: row for row in read_table(__package__, "determiners")}
# For each case, the endings for masculine, feminine, neuter and plural. An adjective is declined weakly if the
# determiner before it has an ending, and strongly otherwise. After ein-words, the result is the mixed declension.
_ARTICLE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den", "gen": "des der des der"}
_DETERMINER = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en", "gen": "es er es er"}
_STRONG = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en", "gen": "en er en er"}
_WEAK = {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en", "gen": "en en en en"}
_CONTRACTIONS = {"in dem": "im", "in das": "ins", "an dem": "am", "zu dem": "zum", "zu der": "zur"}
_AUXILIARIES = {"haben": "habe hast hat haben", "sein": "bin bist ist sind"}
_BE, _THIRD_PERSON = ("am", "are", "is", "are"), {"have": "has", "do": "does", "want": "wants"}
# Slots of the German middle field, in order. Definite objects precede nicht and oft; other objects follow them.
PRONOUN, TIME, DATIVE, DEFINITE, ADVERB, INDEFINITE, PLACE = range(7)


def nouns(names):
    """Returns the nouns that a string lists, by name or by noun class. Raises `KeyError` for any other word."""
    return tuple(dict.fromkeys(noun for name in names.split() for noun in _NAMED[name]))


VERBS = read_table(__package__, "verbs", present=words, objects=nouns, places=nouns, motives=words)
ADJECTIVES = read_table(__package__, "adjectives", nouns=nouns)
MODALS = {verb.en: verb for verb in VERBS if verb.group == "modal"}


class Pronoun(NamedTuple):
    """A personal or interrogative pronoun, used like a `NounPhrase`. `person`: 0 for ich, 1 du, 2 er, 3 the plural."""

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
YOU = Pronoun("you", "you", "du", "dich", "dir", 1, "your")  # one person, addressed as du
HE = Pronoun("he", "him", "er", "ihn", "ihm", 2, "his")
SHE = Pronoun("she", "her", "sie", "sie", "ihr", 2, "her")
WE = Pronoun("we", "us", "wir", "uns", "uns", 3, "our")
THEY = Pronoun("they", "them", "sie", "sie", "ihnen", 3, "their")
PRONOUNS = (I, YOU, HE, SHE, WE, THEY)
WHO = Pronoun("who", "who", "wer", "wen", "wem", 2)
WHAT = Pronoun("what", "what", "was", "was", "", 2)
IT = {  # by gender of the German noun that the pronoun replaces
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
    """Returns an adjective with its ending, which is weak after a determiner that has an ending, otherwise strong."""
    return stem + _ending(_WEAK if is_weak else _STRONG, gender, case)


def noun_form(noun, is_plural, case):
    """Inflects a German noun, as in den Kindern, des Hundes, den Studenten."""
    if is_plural:
        return noun.de_plural + "n" * (case == "dat" and noun.de_plural[-1] not in "ns")
    is_weak = bool(noun.genitive) and noun.genitive[-1] != "s"
    return noun.genitive if case == "gen" or (is_weak and case != "nom") else noun.de


class NounPhrase(NamedTuple):
    """A determiner, adjective and noun; with an owner ("the teacher's book"), the determiner is "the"."""

    noun: tuple
    determiner: str = "-"
    is_plural: bool = False
    adjective: tuple | None = None
    owner: "NounPhrase | None" = None

    @property
    def person(self):
        """The person of a verb whose subject is this phrase."""
        return 3 if self.is_plural else 2

    @property
    def gender(self):
        """The noun's gender (m, f or n), or p in the plural."""
        return "p" if self.is_plural else self.noun.gender

    @property
    def is_definite(self):
        """Whether this phrase, as a German object, precedes nicht, nie and oft."""
        return DETERMINERS[self.determiner].inflection != "" and self.determiner not in ("a", "any", "every")

    def english(self, case="nom"):
        """Returns the English words, which are the same in every case."""
        noun = self.noun.en_plural if self.is_plural else self.noun.en
        described = f"{self.adjective.en} {noun}" if self.adjective else noun
        if self.owner:
            owner = self.owner.english()
            return f"{owner}'{'' if self.owner.is_plural and owner.endswith('s') else 's'} {described}"
        row = DETERMINERS[self.determiner]
        determiner = row.plural if self.is_plural else row.singular
        if determiner == "a" and not self.noun.en_plural:
            determiner = "any"
        elif determiner == "a" and described[0] in "aeiou" and not described.startswith("uni"):
            determiner = "an"
        return f"{determiner} {described}".strip()

    def german(self, case):
        """Returns the German words in a case."""
        determiner, has_ending = determiner_form(self.determiner, self.gender, case)
        words = [determiner, noun_form(self.noun, self.is_plural, case)]
        if self.adjective:
            words.insert(1, adjective_form(self.adjective.stem, has_ending, self.gender, case))
        if self.owner:
            words.append(self.owner.german("gen"))
        return " ".join(filter(None, words))

    def german_after(self, preposition, case):
        """Returns the preposition and the phrase, with the contractions that German requires: im, ins, am, zum, zur."""
        words = f"{preposition} {self.german(case)}"
        return re.sub(r"^\w+ \w+", lambda start: _CONTRACTIONS.get(start[0], start[0]), words)


class Phrase(NamedTuple):
    """A part of a clause, in both languages: an object, a place, a time or a predicate.

    `role` is the name by which a question asks for this part. `filler` is the word whose combination with the verb may
    be held out.
    """

    en: str
    de: str
    slot: int
    role: str = ""
    filler: str = ""
    noun_phrase: NounPhrase | None = None


@dataclass
class Clause:
    """A clause's meaning, which both languages can express.

    Attributes:
        subject: a `NounPhrase` or `Pronoun`.
        verb: a row of the lexicon.
        tense: "present", "perfect" or a modal of `MODALS`.
        aspect: the English aspect: "" (simple form or present perfect), "progressive" or "past".
        phrases: objects, places and predicates in English order.
        time: a `Phrase`. If `is_fronted`, it begins the clause; otherwise it ends the English clause.
        adverb: (English, German) such as ("often", "oft").
        is_negated: whether the clause is negated; German uses nicht, or kein if an object has the determiner "any".
    """

    subject: NounPhrase | Pronoun
    verb: tuple
    tense: str = "present"
    aspect: str = ""
    phrases: list = field(default_factory=list)
    time: Phrase | None = None
    is_fronted: bool = False
    adverb: tuple = ()
    is_negated: bool = False


def object_phrase(thing, case="acc"):
    """Returns the `Phrase` of an object (`NounPhrase` or `Pronoun`) in the accusative or, for "dat", the dative."""
    if not isinstance(thing, NounPhrase):
        return Phrase(thing.english(case), thing.german(case), PRONOUN)
    if case == "dat":
        slot, role = DATIVE, "recipient"
    else:
        slot, role = DEFINITE if thing.is_definite else INDEFINITE, "object"
    return Phrase(thing.english(), thing.german(case), slot, role, thing.noun.en, thing)


def place_phrase(place, is_goal=False):
    """Returns the `Phrase` of a place where something happens or, if `is_goal`, of a place to which somebody goes."""
    noun = place.noun
    if not is_goal:
        return Phrase(f"{noun.at} {place.english()}", place.german_after(noun.wo, "dat"), PLACE, "place", noun.en)
    case = "acc" if noun.wohin in ("in", "auf") else "dat"
    en = f"{noun.to} {place.english()}".strip()
    return Phrase(en, place.german_after(noun.wohin, case), PLACE, "goal", noun.en)


def _english_verbs(clause, needs_operator):
    """Returns (finite verb, the other verbs, whether the finite verb is an operator, which can precede "not")."""
    verb, person = clause.verb, clause.subject.person
    chain, is_operator = [verb.en], verb.en == "be"
    if clause.tense in MODALS:
        chain = [*clause.tense.split(), verb.en]
        is_operator = chain[0] not in ("have", "want")
    elif clause.aspect == "progressive":
        chain, is_operator = ["be", verb.ing], True
    elif clause.tense == "perfect" and clause.aspect != "past":
        chain, is_operator = ["have", verb.participle], True
    if needs_operator and not is_operator:
        chain, is_operator = ["do", *chain], True
    finite, *rest = chain
    if clause.aspect == "past":
        finite = "did" if finite == "do" else verb.past
    elif finite == "be":
        finite = _BE[person]
    elif person == 2 and finite == verb.en:
        finite = verb.third
    elif person == 2:
        finite = _THIRD_PERSON.get(finite, finite)
    return finite, rest, is_operator


def english(clause, question_word=None):
    """Expresses a clause in English, without an initial capital or a full stop.

    Args:
        clause: the `Clause` to express.
        question_word: None for a statement or a question about the subject, "" for a yes/no question, otherwise the
            first words of the question.
    """
    is_question = question_word is not None
    finite, verbs, is_operator = _english_verbs(clause, clause.is_negated or is_question)
    subject = clause.subject.english()
    middle = ["not"] * clause.is_negated + list(clause.adverb[:1])
    if is_question:
        start = [question_word, finite, subject, *middle, *verbs]
    elif is_operator:
        start = [subject, finite, *middle, *verbs]
    else:
        start = [subject, *middle, finite, *verbs]
    phrases = [clause.verb.preposition, *(phrase.en for phrase in clause.phrases)]
    is_behind = clause.phrases and clause.phrases[0].slot == PRONOUN  # "pick up the man", but "pick him up"
    phrases.insert(2 if is_behind else 1, clause.verb.adverb)
    time = [clause.time.en] if clause.time else []
    words = [*time, *start, *phrases] if clause.is_fronted else [*start, *phrases, *time]
    return " ".join(filter(None, words)).replace("can not", "cannot")


def _german_verbs(clause):
    """Returns (finite verb, the words at the end of the clause)."""
    verb, person = clause.verb, clause.subject.person
    if clause.tense in MODALS:
        return MODALS[clause.tense].present[person], verb.de
    if clause.tense == "perfect":
        return _AUXILIARIES[verb.auxiliary].split()[person], verb.perfect
    return verb.present[person], verb.prefix


def german(clause, order="second", first=""):
    """Expresses a clause in German, without an initial capital or a full stop.

    Args:
        clause: the `Clause` to express.
        order: position of the finite verb: "second", "first" (in a yes/no question, or after a subordinate clause) or
            "last" (in a subordinate clause).
        first: words before the finite verb or, for "last", before the subject. A fronted time replaces them.
    """
    finite, end = _german_verbs(clause)
    middle = [(phrase.slot, phrase.de) for phrase in clause.phrases]
    if clause.time and clause.is_fronted:
        first = clause.time.de
    elif clause.time:
        middle.append((TIME, clause.time.de))
    if clause.adverb:
        middle.append((ADVERB, clause.adverb[1]))
    has_kein = any(phrase.noun_phrase and phrase.noun_phrase.determiner == "any" for phrase in clause.phrases)
    if clause.is_negated and not has_kein:
        middle.append((ADVERB, "nicht"))
    middle = [words for _, words in sorted(middle, key=lambda part: part[0])]
    subject = clause.subject.german("nom")
    if order == "last":
        end = end + finite if end and end == clause.verb.prefix else f"{end} {finite}"
        words = [first, subject, *middle, end.strip()]
    elif order == "second" and not first:
        words = [subject, finite, *middle, end]
    else:
        words = [first, finite, subject, *middle, end]
    return " ".join(filter(None, words))
