"""Generates random sentences of the phrasebook that make sense (people buy cars, soup is hot)."""

from typing import NamedTuple

from t2t_lite.extras.phrasebook.grammar import (
    ADJECTIVES,
    HE,
    IT,
    MODALS,
    NOUNS,
    PLACE,
    PRONOUNS,
    SHE,
    THEY,
    TIME,
    TIMES,
    VERBS,
    WE,
    WHAT,
    WHO,
    YOU,
    Clause,
    I,
    NounPhrase,
    Phrase,
    english,
    german,
    nouns,
    object_phrase,
    place_phrase,
)


class Sentence(NamedTuple):
    """A sentence pair, and the word combinations in it that may be held out, such as "kaufen + apple"."""

    inputs: str
    targets: str
    combinations: tuple


def _weighted(weights):
    """Repeats each name as often as its weight."""
    return tuple(name for name, weight in weights.items() for _ in range(weight))


# Groups of verbs. Actions allow every tense and time; other verbs lack, or form differently, the perfect or the
# progressive.
_ACTIONS = _weighted({"transitive": 45, "dative": 9, "ditransitive": 10, "activity": 11, "motion": 12, "mishap": 2})
_CLAUSES = _ACTIONS + _weighted({"state": 10, "quality": 10, "feeling": 4})
_FRAMES = _weighted({"statement": 30, "question": 11, "wh_question": 16, "report": 14, "reason": 10, "motive": 6})
_TENSES = _weighted({"present": 9, "perfect": 8} | dict.fromkeys(MODALS, 1))

_GROUPS = {group: tuple(verb for verb in VERBS if verb.group == group) for group in {verb.group for verb in VERBS}}
_SAYING = {verb.en: verb for verb in _GROUPS["saying"]}
[_BE] = _GROUPS["copula"]
_MOTIVATED = tuple(verb for verb in VERBS if verb.motives)
_ADJECTIVES_OF = {
    noun: tuple(adjective for adjective in ADJECTIVES if noun in adjective.nouns) for noun in NOUNS.values()
}
_FEELINGS = tuple(adjective for adjective in ADJECTIVES if adjective.en in ("tired", "ill", "hungry", "thirsty"))
_TIMES = {kind: tuple(time for time in TIMES if kind in time.kinds) for kind in ("now", "future", "past", "habit")}
_ADVERBS = {
    "present": (("often", "oft"), ("always", "immer"), ("never", "nie"), ("sometimes", "manchmal")),
    "perfect": (("already", "schon"), ("never", "nie")),
}

_PEOPLE = nouns("people")
_THINGS = tuple(noun for noun, adjectives in _ADJECTIVES_OF.items() if adjectives and noun not in _PEOPLE)
_POSSESSIVES = tuple(pronoun.possessive for pronoun in PRONOUNS)
# Nouns without possessives: "my woman" would be a wife in German, and "my tourist" and "my bridge" are odd.
_NOBODYS = nouns("man woman boy girl tourist waiter settlement place")
_OWNED = nouns("print clothes thing vehicle device")  # nouns that fit after "the teacher's"

# For each style, the determiners of singular, plural and mass nouns; "own" stands for a possessive, "-" for none.
_STYLES = {
    "subject": ("the the the a own this every", "the the own this two many", "the"),
    "definite": ("the the the own this", "the the own this", "the the own"),
    "object": ("the the a a a own this", "the the - - own this two", "the - - own"),
    "negated": ("the any any own this", "the any any own this", "the any any own"),
    "place": ("the the the the this", "", "-"),
}
_STYLES = {style: tuple(row.split() for row in rows) for style, rows in _STYLES.items()}

_QUESTION_WORDS = {
    "why": ("why", "warum"),
    "when": ("when", "wann"),
    "place": ("where", "wo"),
    "goal": ("where", "wohin"),
}


class Phrasebook:
    """Samples random sentences with `generator`, a `random.Random`.

    Each kind of sentence has a method that returns the clauses, the English text, the German text and the final
    punctuation mark, or None if the sampled clause does not fit.
    """

    def __init__(self, generator):
        self._random = generator.random

    def sentence(self):
        """Samples a `Sentence`."""
        parts = None
        while parts is None:
            frame = self._choose(_FRAMES)
            parts = getattr(self, "_" + frame)()
        clauses, inputs, targets, mark = parts
        combinations = (name for clause in clauses for name in _combinations(frame, clause))
        inputs, targets = (text[0].upper() + text[1:] + mark for text in (inputs, targets))
        return Sentence(inputs, targets, tuple(combinations))

    def _choose(self, options):
        return options[int(self._random() * len(options))]

    def _happens(self, probability):
        return self._random() < probability

    # Frames.

    def _statement(self):
        clause = self._clause(fronted=0.55)
        return [clause], english(clause), german(clause), "."

    def _question(self):
        clause = self._clause(negated=0)
        if _is_odd_question(clause):
            return None
        return [clause], english(clause, ""), german(clause, "first"), "?"

    def _wh_question(self):
        clause = self._clause(negated=0.1)
        question = self._ask(clause)
        if question is None:
            return None
        en, de = question
        return [clause], english(clause, en or None), german(clause, first=de), "?"

    def _report(self):
        """Samples a sentence such as "I know that …", "I do not know whether …" or "Do you know why …?"."""
        is_open = self._happens(0.5)
        is_question = is_open and self._happens(0.4)
        verb = _SAYING["know"] if is_open else self._choose(_GROUPS["saying"])
        main = Clause(YOU if is_question else self._person("definite"), verb, is_negated=is_open and not is_question)
        clause = self._clause(negated=0 if is_open else 0.15)
        question = ("whether", "ob") if is_open else ("that", "dass")
        if is_open and self._happens(0.4):
            question = self._ask(clause)
        if question is None or clause.subject == main.subject:
            return None
        en, de = question
        start = english(main, "" if is_question else None)
        inputs = " ".join(filter(None, (start, en, english(clause))))
        targets = f"{german(main, 'first' if is_question else 'second')}, {german(clause, 'last', de)}"
        return [clause], inputs, targets, "?" if is_question else "."

    def _reason(self):
        """Samples a sentence such as "He does not read because he is tired" or "He reads although he is tired"."""
        conjunction = self._choose((("because", "weil"), ("although", "obwohl")))
        groups = ("transitive", "transitive", "activity", "motion")
        main = self._clause(groups, ("present", "can", "want to"), conjunction[0] == "because", timed=0)
        feeling = self._choose(_FEELINGS)
        cause = Clause(pronoun_of(main.subject), _BE, phrases=[Phrase(feeling.en, feeling.de, PLACE)])
        return self._subordinate(main, conjunction, cause, is_fronted=self._happens(0.4))

    def _motive(self):
        """Samples "She buys a car because she needs it", in which the pronoun has the gender of the German noun."""
        main = self._clause((), ("present", "perfect", "want to"), 0, timed=0, verb=self._choose(_MOTIVATED))
        thing = main.phrases[0].noun_phrase
        motives = [v for v in _GROUPS["state"] if thing and v.en in main.verb.motives and thing.noun in v.objects]
        pronoun = motives and pronoun_of(thing)
        if not pronoun or pronoun is pronoun_of(main.subject):
            return None
        phrase = object_phrase(pronoun)._replace(filler=thing.noun.en)
        cause = Clause(pronoun_of(main.subject), self._choose(motives), phrases=[phrase])
        return self._subordinate(main, ("because", "weil"), cause)

    def _subordinate(self, main, conjunction, clause, is_fronted=False):
        """Joins two clauses with the same subject, which is a pronoun in the second clause."""
        if not clause.subject or not main.verb.ing or main.adverb[:1] == ("never",):  # "see" and "need" have no -ing
            return None
        en, de = conjunction
        if is_fronted:
            main.subject, clause.subject = clause.subject, main.subject
            inputs = f"{en} {english(clause)}, {english(main)}"
            return [main, clause], inputs, f"{german(clause, 'last', de)}, {german(main, 'first')}", "."
        inputs = f"{english(main)}{',' * (en == 'although')} {en} {english(clause)}"
        return [main, clause], inputs, f"{german(main)}, {german(clause, 'last', de)}", "."

    def _ask(self, clause):
        """Makes a clause a question; returns (English, German) question words, or None if the clause does not fit."""
        part = self._choose(["why", "who", "when", *(phrase.role for phrase in clause.phrases)])
        if (
            not part
            or (clause.is_negated and part != "why")
            or (part == "who" and not is_person(clause.subject))
            or (part == "when" and (clause.time or clause.verb.group not in _ACTIONS))
            or (part != "who" and _is_odd_question(clause))
        ):
            return None
        clause.adverb = ()
        if clause.time is None and clause.tense == "perfect":
            clause.aspect = "past"
        elif clause.time is None and clause.tense == "present" and clause.verb.ing:
            clause.aspect = "progressive"
        if part == "who":
            clause.subject = WHO
            return "", ""
        index = next((i for i, phrase in enumerate(clause.phrases) if phrase.role == part), None)
        if index is not None:
            phrase = clause.phrases[index]
            clause.phrases[index] = phrase._replace(en="", de="", noun_phrase=None)
        if part in _QUESTION_WORDS:
            return _QUESTION_WORDS[part]
        thing = phrase.noun_phrase
        if "kin" in thing.noun.kinds or thing.owner or self._happens(0.6):
            clause.phrases[index] = clause.phrases[index]._replace(filler="")
            thing = WHO if is_person(thing) else WHAT
        else:
            thing = thing._replace(determiner="which")
        return thing.english("acc"), thing.german("dat" if part == "recipient" else "acc")

    # Clauses.

    def _clause(self, groups=_CLAUSES, tenses=_TENSES, negated=0.15, fronted=0.0, timed=0.45, verb=None):
        """Samples a `Clause`; `negated`, `fronted` and `timed` are probabilities; `verb` overrides `groups`."""
        group = verb.group if verb else self._choose(groups)
        is_negated = self._happens(negated)
        if group in ("quality", "feeling"):
            return self._predication(group == "feeling", is_negated)
        verb = verb or self._choose(_GROUPS[group])
        tense = {"state": "present", "mishap": "perfect"}.get(group) or self._choose(tenses)
        clause = Clause(None, verb, tense, is_negated=is_negated)
        self._set_time(clause, timed, fronted)
        clause.subject = self._person("definite" if is_negated or clause.adverb else "subject")
        clause.phrases = list(self._complements(clause))
        return clause

    def _predication(self, is_feeling, is_negated):
        if is_feeling:
            subject, adjective = self._person("definite"), self._choose(_FEELINGS)
        else:
            subject = self._noun_phrase(self._choose(_THINGS), "definite")._replace(adjective=None)
            adjective = self._choose(_ADJECTIVES_OF[subject.noun])
        filler = "" if is_feeling else f"{subject.noun.en} + {adjective.en}"
        predicate = Phrase(adjective.en, adjective.de, PLACE, filler=filler)
        return Clause(subject, _BE, phrases=[predicate], is_negated=is_negated)

    def _set_time(self, clause, timed, fronted):
        """Samples the time, the adverb and the English aspect of a clause."""
        is_present = clause.tense == "present"
        # A time and nicht in the same middle field read badly, and "see" and "need" have no progressive.
        if clause.is_negated or (is_present and not clause.verb.ing):
            return
        if self._happens(timed):
            if is_present:
                kind = self._choose(("now", "now", "future", "habit"))
            else:
                kind = {"perfect": "past", "will": "future"}.get(clause.tense) or self._choose(("now", "future"))
            time = self._choose(_TIMES[kind])
            clause.time = Phrase(time.en, time.de, TIME)
            clause.is_fronted = self._happens(fronted)
            clause.aspect = {"past": "past", "habit": ""}.get(kind, "progressive" * is_present)
        elif clause.tense in _ADVERBS and self._happens(0.15):
            clause.adverb = self._choose(_ADVERBS[clause.tense])

    def _complements(self, clause):
        verb, subject, group = clause.verb, clause.subject, clause.verb.group
        style = "negated" if clause.is_negated else "object"
        if group == "dative":
            yield self._object(verb.objects, style, subject, "dat")
        elif group == "ditransitive":
            recipient = self._object(_PEOPLE, "definite" if clause.is_negated else "object", subject, "dat")
            yield recipient._replace(role="")
        if verb.objects and group != "dative":
            yield self._object(verb.objects, verb.style or style, subject)
        if verb.places and self._happens({"motion": 1.0, "activity": 0.85}.get(group, 0.25)):
            yield place_phrase(self._noun_phrase(self._choose(verb.places), "place"), group == "motion")

    # Noun phrases.

    def _person(self, style):
        """Samples a pronoun or a noun phrase for one or more persons."""
        if self._happens(0.35):
            return self._choose(PRONOUNS)
        return self._noun_phrase(self._choose(_PEOPLE), style)

    def _object(self, options, style, subject, case="acc"):
        own = subject.noun if isinstance(subject, NounPhrase) else None
        noun = self._choose([noun for noun in options if noun is not own])
        if noun in _PEOPLE and self._happens(0.15):
            reflexive = {I, WE} if subject in (I, WE) else {subject}
            return object_phrase(self._choose([pronoun for pronoun in PRONOUNS if pronoun not in reflexive]), case)
        return object_phrase(self._noun_phrase(noun, style, subject), case)

    def _noun_phrase(self, noun, style, subject=None):
        singular, plural, mass = _STYLES[style]
        is_plural = bool(noun.en_plural and plural) and (not noun.de or self._happens(0.3))
        determiner = self._choose(plural if is_plural else singular if noun.en_plural else mass)
        if determiner == "own" and noun in _NOBODYS:
            determiner = "the"
        elif determiner == "own" or "kin" in noun.kinds:
            determiner = self._choose(_possessives(subject))
        adjective = self._choose(_ADJECTIVES_OF[noun]) if _ADJECTIVES_OF[noun] and self._happens(0.3) else None
        owner = None
        if determiner == "the" and noun in _OWNED and self._happens(0.2):
            owner = self._noun_phrase(self._choose(_PEOPLE), "definite", subject)
        return NounPhrase(noun, determiner, is_plural, adjective, owner)


def is_person(subject):
    """Returns whether a pronoun or noun phrase refers to one or more persons."""
    return not isinstance(subject, NounPhrase) or subject.noun in _PEOPLE


def pronoun_of(subject):
    """Returns the pronoun for a noun phrase, or None for das Kind and das Mädchen (he or she in English)."""
    if not isinstance(subject, NounPhrase):
        return subject
    return ({"m": HE, "f": SHE, "p": THEY} if is_person(subject) else IT).get(subject.gender)


def _combinations(frame, clause):
    """Yields the names of the combinations in a clause that may be held out."""
    verb = clause.verb
    if verb.group in _ACTIONS:  # other verbs are rare, and might not occur in some frame at all
        yield f"{frame}, {clause.tense} + {verb.de}"
    for phrase in clause.phrases:
        if phrase.filler:
            yield f"{verb.de} + {phrase.filler}"


def _is_odd_question(clause):
    """Returns whether a question is odd: "Am I reading a book?" (but not "Can I …?") or "Does every student …?"."""
    if isinstance(clause.subject, NounPhrase):
        return clause.subject.determiner in ("every", "many", "two", "a")
    return clause.subject is I and clause.tense not in ("can", "should", "have to", "be allowed to")


def _possessives(subject):
    """Returns possessives to sample from, most of which refer to the subject."""
    pronoun = pronoun_of(subject) if subject and is_person(subject) else None
    if pronoun:
        return (pronoun.possessive,) * 9 + _POSSESSIVES
    return ("my", "your", "our") if subject else _POSSESSIVES  # for das Kind, English would need "his" or "her"
