"""English and German grammar of the phrasebook: noun phrases and clauses in both languages.

A `Clause` is one meaning, free of word order and inflection. `english` and `german` say it; the German side comes as
tagged words, so that agreement and word order can be checked by rule:

    det m acc, adj m acc, noun m acc    a noun phrase: gender (p: plural) and case
    pron 2 nom                          a pronoun: person (0 ich, 1 du, 2 er/sie/es, 3 plural) and case
    fin 2 kaufen                        the finite verb: person and infinitive
    inf kaufen, part kaufen, prefix     the end of the clause: infinitive, participle, separated prefix
    prep, adv, neg, conj, wh, comma     the rest
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from t2t_lite.problems.phrasebook_words import (
    CONTRACTIONS,
    DETERMINERS,
    ENGLISH_PRESENT,
    IRREGULAR_PRESENT,
    MODALS,
    Adjective,
    Noun,
    Pronoun,
    Verb,
    Word,
    adjective_form,
    determiner_form,
    english_ing,
    english_s,
)


class NounPhrase(NamedTuple):
    """Determiner, adjective, noun; with an owner ("the teacher's book") the determiner is "the"."""

    noun: Noun
    determiner: str = "-"
    is_plural: bool = False
    adjective: Adjective | None = None
    owner: "NounPhrase | None" = None

    @property
    def person(self):
        """The person of verbs with this subject."""
        return 3 if self.is_plural else 2

    @property
    def gender(self):
        """Gender in the singular, otherwise p."""
        return "p" if self.is_plural else self.noun.gender

    @property
    def is_definite(self):
        """Whether the German object stands before nicht, nie and oft."""
        return DETERMINERS[self.determiner][3] != "" and self.determiner not in ("a", "any", "no", "every")

    def english(self, case="nom"):
        """Returns the English words; they are the same in every case."""
        noun = self.noun.en_plural if self.is_plural else self.noun.en
        described = f"{self.adjective.en} {noun}" if self.adjective else noun
        if self.owner:
            owner = self.owner.english()
            return f"{owner}'{'' if self.owner.is_plural and owner.endswith('s') else 's'} {described}"
        determiner = DETERMINERS[self.determiner][self.is_plural]
        if determiner == "a":
            if self.noun.is_mass:
                determiner = "any"
            elif described[0] in "aeiou" and not described.startswith("uni"):
                determiner = "an"
        return f"{determiner} {described}" if determiner else described

    def german(self, case):
        """Returns the German words in a case."""
        gender = self.gender
        tag = f"{gender} {case}"
        determiner, has_ending = determiner_form(self.determiner, gender, case)
        words = [Word(determiner, "det " + tag)] if determiner else []
        if self.adjective:
            words.append(Word(adjective_form(self.adjective.stem, has_ending, gender, case), "adj " + tag))
        words.append(Word(self.noun.german(case, self.is_plural), "noun " + tag))
        return words + (self.owner.german("gen") if self.owner else [])

    def german_after(self, preposition, case):
        """Returns preposition and words, contracted where German must: im, ins, am, zum, zur."""
        first, *rest = self.german(case)
        contraction = CONTRACTIONS.get(f"{preposition} {first.text}")
        if contraction:
            return [Word(contraction, "prep+" + first.tag), *rest]
        return [Word(preposition, "prep"), first, *rest]


# Places in the German middle field, in order. Definite objects stand before nicht and oft, others behind.
PRONOUN, TIME, DATIVE, DEFINITE, ADVERB, INDEFINITE, COMPANION, PLACE = range(8)


class Phrase(NamedTuple):
    """A part of a clause in both languages: an object, a place, a time, a predicate.

    `role` says what a question may ask for; `filler` is the word that, joined to the verb, may be held out of training.
    """

    en: str
    de: list
    slot: int
    role: str = ""
    filler: str = ""
    noun_phrase: NounPhrase | None = None


@dataclass
class Clause:
    """One meaning.

    Attributes:
        subject: a `NounPhrase` or `Pronoun`.
        tense: "present", "perfect" or a modal of `MODALS`.
        aspect: what English makes of it: "" for the simple form and the present perfect, "progressive", "past".
        phrases: objects, places and predicates in English order.
        time: a `Phrase`; it comes first when `is_fronted`, otherwise last in English.
        adverb: (English, German) such as ("often", "oft").
        is_negated: said by nicht, or by kein where an object has the determiner "any".
    """

    subject: NounPhrase | Pronoun
    verb: Verb
    tense: str = "present"
    aspect: str = ""
    phrases: list = field(default_factory=list)
    time: Phrase | None = None
    is_fronted: bool = False
    adverb: tuple = ()
    is_negated: bool = False


def _english_verbs(clause, needs_operator):
    """Returns the finite verb, the other verbs, and whether the finite one is an operator."""
    verb = clause.verb
    chain, is_operator = [verb.en], verb.en == "be"
    if clause.tense in MODALS:
        chain = [*clause.tense.split(), verb.en]
        is_operator = chain[0] not in ("have", "want")
    elif clause.aspect == "progressive":
        chain, is_operator = ["be", english_ing(verb.en)], True
    elif clause.tense == "perfect" and clause.aspect != "past":
        chain, is_operator = ["have", verb.en_participle], True
    if needs_operator and not is_operator:
        chain, is_operator = ["do", *chain], True
    finite, *rest = chain
    if clause.aspect == "past":
        finite = "did" if finite == "do" else verb.en_past
    elif finite in ENGLISH_PRESENT:
        finite = ENGLISH_PRESENT[finite].split()[clause.subject.person]
    elif clause.subject.person == 2 and not is_operator:
        finite = english_s(finite)
    return finite, rest, is_operator


def english(clause, question_word=None):
    """Returns an English clause without capital and full stop.

    Args:
        clause: what to say.
        question_word: None for a statement or a question about the subject, "" for a yes/no question, otherwise the
            words that the question begins with.
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
    phrases = [phrase.en for phrase in clause.phrases]
    particle_at = 1 if clause.verb.is_phrasal and phrases and clause.phrases[0].slot == PRONOUN else 0
    phrases.insert(particle_at, clause.verb.particle)
    if clause.time:
        phrases.insert(0 if clause.is_fronted else len(phrases), clause.time.en)
    words = [phrases.pop(0), *start, *phrases] if clause.time and clause.is_fronted else [*start, *phrases]
    return " ".join(filter(None, words)).replace("can not", "cannot")


def _german_verbs(clause):
    """Returns the finite verb and what stands at the clause's end."""
    verb, person = clause.verb, clause.subject.person
    if clause.tense in MODALS:
        infinitive, *forms = MODALS[clause.tense].split()
        return Word(forms[person], f"fin {person} {infinitive}"), [Word(verb.de, f"inf {verb.de}")]
    if clause.tense == "perfect":
        auxiliary = {"hat": "haben", "ist": "sein"}[verb.auxiliary]
        form = IRREGULAR_PRESENT[auxiliary].split()[person]
        return Word(form, f"fin {person} {auxiliary}"), [Word(verb.participle, f"part {verb.de}")]
    prefix = [Word(verb.prefix, "prefix")] if verb.prefix else []
    return Word(verb.present(person), f"fin {person} {verb.de}"), prefix


def german(clause, order="second", first=()):
    """Returns the words of a German clause.

    Args:
        clause: what to say.
        order: where the finite verb stands: "second", "first" (yes/no question, or behind a subordinate clause) or
            "last" (subordinate clause).
        first: words before the finite verb, or before the subject for "last"; by default a fronted time.
    """
    finite, end = _german_verbs(clause)
    middle = [(phrase.slot, phrase.de) for phrase in clause.phrases]
    if clause.time and clause.is_fronted:
        first = clause.time.de
    elif clause.time:
        middle.append((TIME, clause.time.de))
    if clause.adverb:
        middle.append((ADVERB, [Word(clause.adverb[1], "adv")]))
    has_kein = any(phrase.noun_phrase and phrase.noun_phrase.determiner == "any" for phrase in clause.phrases)
    if clause.is_negated and not has_kein:
        middle.append((ADVERB, [Word("nicht", "neg")]))
    middle.sort(key=lambda part: part[0])
    middle = [word for _, words in middle for word in words]
    subject = clause.subject.german("nom")
    if order == "last":
        if end and end[0].tag == "prefix":
            end, finite = [], Word(end[0].text + finite.text, finite.tag)
        return [*first, *subject, *middle, *end, finite]
    if order == "second" and not first:
        return [*subject, finite, *middle, *end]
    return [*first, finite, *subject, *middle, *end]


def german_text(words):
    """Returns the words as text, without capital and full stop."""
    return " ".join(word.text for word in words).replace(" ,", ",")
