"""What the phrasebook talks about: random clauses that make sense (people buy, trains leave, soup is hot)."""

from t2t_lite.problems import phrasebook_grammar as grammar
from t2t_lite.problems.phrasebook_grammar import Clause, NounPhrase, Phrase
from t2t_lite.problems.phrasebook_lexicon import ADJECTIVES, FEELINGS, NOUNS, PLACES, TIMES, VERBS, nouns
from t2t_lite.problems.phrasebook_words import HE, IT, MODALS, PRONOUNS, SHE, THEY, WE, I, Word


def weighted(weights):
    """Returns the names, each as often as its weight says."""
    return tuple(name for name, weight in weights.items() for _ in range(weight))


PERSONS = ("person", "youth", "kin")
_PEOPLE = nouns("person youth") * 2 + nouns("kin")
_POSSESSIVES = tuple(pronoun.possessive for pronoun in PRONOUNS)

# Groups of verbs: actions, which take every tense and time, and the others, each with a method of its name.
ACTIONS = weighted({"transitive": 45, "dative": 9, "ditransitive": 10, "explaining": 5, "activity": 12, "motion": 12})
_OTHERS = {
    "state": 10,
    "schedule": 8,
    "quality": 9,
    "feeling": 4,
    "cost": 5,
    "live": 3,
    "belong": 3,
    "put": 3,
    "lie": 3,
}
_ALL = ACTIONS + weighted(_OTHERS)
OTHER = {verb.en: verb for verb in VERBS["other"]}

# verbs whose object is a particular one: nobody tidies up "a room"
_WITH_KNOWN = "aufräumen putzen aufmachen zumachen einschalten ausschalten vorbereiten abholen anschauen verstehen"
_TENSES = weighted({"present": 9, "perfect": 8} | dict.fromkeys(MODALS, 1))
_ADVERBS = {
    "present": (("often", "oft"), ("always", "immer"), ("never", "nie"), ("sometimes", "manchmal")),
    "perfect": (("already", "schon"), ("never", "nie")),
}
_TIMES = {kind: tuple(time for time in TIMES if kind in time.kinds) for kind in ("now", "future", "past", "habit")}

# style: determiners of a singular, a plural and a mass noun ("own" is a possessive, "-" none), how often plural
_STYLES = {
    "subject": ("the the the the a own this every", "the the the own this two three many", "the", 0.3),
    "definite": ("the the the own this", "the the the own this", "the the own", 0.3),
    "object": (
        "the the a a a a own own this",
        "the the - - - own this two three five many",
        "the the - - - - own",
        0.3,
    ),
    "recipient": ("the the the a own this", "the the the own this two three", "the", 0.3),
    "negated": ("the the any any any own this", "the any any any own this", "the any any any own", 0.3),
    "habit": ("the", "-", "-", 1.0),
    "liked": ("the the own this", "- - - the own this", "- - the", 0.7),
    "disliked": ("the the own this", "any any any the own this", "any any the", 0.7),
    "public": ("the the the the the this", "", "-", 0.0),
    "private": ("the the own", "", "-", 0.0),
}
_STYLES = {style: (*(tuple(row.split()) for row in rows), plural) for style, (*rows, plural) in _STYLES.items()}
_UNWANTED = ("verlieren", "vergessen")  # said of without a modal
_STYLE_OF = {
    "brauchen": ("object", "negated"),
    "haben": ("object", "negated"),
    "kennen": ("definite", "definite"),
    "lieben": ("liked", "disliked"),
    "mögen": ("liked", "disliked"),
}
# "my woman" would be a wife in German, "my tourist" and "my bridge" are odd
_NOBODYS = nouns(
    "man woman boy girl tourist waiter bridge park transit market hospital museum church library university"
)
_OWNED = ("print", "clothes", "thing", "vehicle", "device")  # kinds of noun that go with "the teacher's"
_DESCRIBED = tuple(noun for noun in NOUNS.values() if ADJECTIVES[noun])
_ABSOLUTE = ("red", "blue", "green", "black", "white", "empty", "fresh")  # adjectives that go without "very"
_SURFACES = (
    ("on", "auf", nouns("table chair bed")),
    ("under", "unter", nouns("table chair bed")),
    ("in", "in", nouns("bag suitcase cupboard")),
)
_VEHICLES = {"reisen": nouns("train bus car plane ship"), "kommen": nouns("train bus car bicycle")}
_PRICES = {  # euros from, to, step; below 100 cents may follow
    "eatable drinkable print item": (2, 12, 1),
    "clothes thing": (20, 120, 5),
    "device furniture": (50, 950, 10),
    "vehicle animal": (500, 20_000, 250),
    "house": (100_000, 900_000, 10_000),
}
_PRICES = {noun: price for names, price in _PRICES.items() for noun in nouns(names)}
_CENTS = (20, 25, 40, 50, 60, 75, 80, 90, 95, 99)


def pronoun_of(subject):
    """Returns the pronoun that takes up a noun phrase, or None for das Kind and das Mädchen (English: he or she)."""
    if not isinstance(subject, NounPhrase):
        return subject
    if subject.noun.kind in PERSONS:
        return {"m": HE, "f": SHE, "p": THEY}.get(subject.gender)
    return IT[subject.gender]


def object_phrase(thing, case="acc"):
    """Returns an object: a `NounPhrase` or a `Pronoun`, in the accusative or the dative ("dat")."""
    if not isinstance(thing, NounPhrase):
        return Phrase(thing.english(case), thing.german(case), grammar.PRONOUN)
    if case == "dat":
        slot, role = grammar.DATIVE, "recipient"
    else:
        slot, role = grammar.DEFINITE if thing.is_definite else grammar.INDEFINITE, "object"
    return Phrase(thing.english(), thing.german(case), slot, role, thing.noun.en, thing)


def place_phrase(place, is_goal=False):
    """Returns where something happens, or where somebody goes, with the prepositions of the place."""
    noun = place.noun
    at_english, at_german, to_german = PLACES[noun]
    if not is_goal:
        en = f"{at_english} {place.english()}"
        return Phrase(en, place.german_after(at_german, "dat"), grammar.PLACE, "place", noun.en)
    case = "acc" if to_german in ("in", "auf") else "dat"
    en = "home" if noun.en == "home" else f"to {place.english()}"
    return Phrase(en, place.german_after(to_german, case), grammar.PLACE, "goal", noun.en)


def literal(en, de, slot=grammar.PLACE, role="", filler=""):
    """Returns a phrase of fixed words: a predicate, a price, a time."""
    return Phrase(en, [Word(word, "adv") for word in de.split()], slot, role, filler)


class Clauses:
    """Draws clauses; `generator` is a `random.Random`."""

    def __init__(self, generator):
        self._random = generator.random

    def choose(self, options):
        """Returns one of a sequence."""
        return options[int(self._random() * len(options))]

    def happens(self, probability):
        """Returns True that often."""
        return self._random() < probability

    def clause(self, groups=_ALL, tenses=_TENSES, negated=0.15, subject=None, timed=0.45, fronted=0.0):
        """Returns a `Clause`.

        Args:
            groups: groups of verbs, or verbs, to choose from.
            tenses: tenses to choose from, where the group has more than the present.
            negated: probability of a negation.
            subject: a person; by default any.
            timed: probability of an expression of time.
            fronted: probability that it comes first.
        """
        group = self.choose(groups)
        if group in _OTHERS:
            return getattr(self, "_" + group)(subject or self.person("definite"), self.happens(negated), fronted)
        verb = self.choose(VERBS[group]) if isinstance(group, str) else group
        clause = Clause(subject, verb, self.choose(tenses), is_negated=self.happens(negated))
        if verb.de in _UNWANTED and clause.tense in MODALS:
            clause.tense = "perfect"
        style = self._set_time(clause, timed, fronted)
        if subject is None:
            clause.subject = self.person("definite" if clause.is_negated or clause.adverb else "subject")
        clause.phrases = list(self._complements(clause, style))
        return clause

    # Noun phrases and their places in a clause.

    def person(self, style="subject"):
        """Returns a pronoun or a noun phrase for a person or persons."""
        if self.happens(0.35):
            return self.choose(PRONOUNS)
        return self._noun_phrase(self.choose(_PEOPLE), style, adjective=0.25)

    def _noun_phrase(self, noun, style, subject=None, adjective=0.35):
        if noun.kind in ("town", "home"):
            return NounPhrase(noun)
        singular, plural, mass, often_plural = _STYLES[style]
        is_plural = bool(noun.en_plural) and (not noun.de or self.happens(often_plural))
        determiner = self.choose(plural if is_plural else mass if noun.is_mass else singular)
        if determiner == "own" and noun in _NOBODYS:
            determiner = "the"
        elif determiner == "own" or noun.kind == "kin":
            determiner = self.choose(_possessives(subject))
        options = ADJECTIVES[noun]
        likelihood = adjective / 2 if noun.kind == "kin" else adjective
        described = self.choose(options) if options and self.happens(likelihood) else None
        owner = None
        if determiner == "the" and noun.kind in _OWNED and self.happens(0.2):
            owner = self._noun_phrase(self.choose(_PEOPLE), "definite", subject, adjective=0)
        return NounPhrase(noun, determiner, is_plural, described, owner)

    def _object(self, options, case, style, subject):
        noun = self.choose(options)
        while isinstance(subject, NounPhrase) and _is_odd_pair(subject.noun, noun):
            noun = self.choose(options)
        if noun.kind in PERSONS and self.happens(0.15):
            pronoun = self.choose([pronoun for pronoun in PRONOUNS if not _is_reflexive(pronoun, subject)])
            return object_phrase(pronoun, case)
        return object_phrase(self._noun_phrase(noun, style, subject), case)

    def _recipient(self, style, subject):
        style = {"object": "recipient"}.get(style, "definite")
        return self._object(_PEOPLE, "dat", style, subject)

    def _place(self, noun, is_goal, subject):
        style = "private" if noun.kind == "interior" or noun.en == "garden" else "public"
        place = self._noun_phrase(noun, style, subject, adjective=0.2)
        return place_phrase(place, is_goal)

    def _surface(self, case, subject):
        en, de, things = self.choose(_SURFACES)
        thing = self._noun_phrase(self.choose(things), "private", subject)
        return Phrase(f"{en} {thing.english()}", thing.german_after(de, case), grammar.PLACE, "", thing.noun.en)

    def _company(self, subject):
        person = self._noun_phrase(self.choose(_PEOPLE), "definite", subject)
        return Phrase(f"with {person.english()}", person.german_after("mit", "dat"), grammar.COMPANION)

    def _vehicle(self, verb):
        vehicle = NounPhrase(self.choose(_VEHICLES[verb.de]), "the")
        return Phrase(f"by {vehicle.noun.en}", vehicle.german_after("mit", "dat"), grammar.COMPANION)

    def _amount(self, noun):
        low, high, step = _PRICES[noun]
        euros = low + step * int((high - low) / step * self._random())
        en = f"{euros:,}" if euros >= 100 or self.happens(0.2) else f"{euros}.{self.choose(_CENTS)}"
        return en, en.translate(str.maketrans(".,", ",."))

    def _clock(self):
        time = f"{6 + int(18 * self._random())}:{5 * int(12 * self._random()):02d}"
        return f"at {time}", f"um {time} Uhr"

    def _time(self, kind, clock=0.15):
        if kind in ("future", "past") and self.happens(clock):
            en, de = self._clock()
        else:
            en, de, kinds = self.choose(_TIMES[kind])
            if "day" in kinds and self.happens(2 * clock):
                at, um = self._clock()
                en, de = f"{en} {at}", f"{de} {um}"
        return literal(en, de, grammar.TIME)

    # Actions.

    def _set_time(self, clause, timed, fronted):
        """Chooses time, adverb and English aspect; returns the style of the objects that go with them."""
        is_present = clause.tense == "present"
        if clause.is_negated and not fronted:  # a time and nicht in one middle field read badly
            timed = 0
        if is_present and not clause.verb.has_progressive and clause.verb.nouns:  # to see, to forget: it just happens
            timed = 0
        if self.happens(timed):
            if is_present:
                kinds = ("now", "future") if clause.is_negated else ("now", "now", "future", "habit")
                kind = self.choose(kinds) if clause.verb.has_progressive else "habit"
            else:
                kind = {"perfect": "past", "will": "future"}.get(clause.tense) or self.choose(("now", "future"))
            clause.time = self._time(kind)
            clause.is_fronted = clause.is_negated or self.happens(fronted)
            clause.aspect = {"past": "past", "habit": ""}.get(kind, "progressive" * is_present)
        elif not clause.is_negated and clause.tense in _ADVERBS and self.happens(0.15):
            clause.adverb = self.choose(_ADVERBS[clause.tense])
        if clause.is_negated:
            return "negated"
        is_habit = is_present and (clause.adverb or (clause.time and not clause.aspect))
        return "habit" if is_habit else "object"

    def _complements(self, clause, style):
        verb, subject, group = clause.verb, clause.subject, clause.verb.group
        if group in ("dative", "ditransitive"):
            recipient = self._recipient(style, subject)
            yield recipient if group == "dative" else recipient._replace(role="")
        if group in ("transitive", "ditransitive", "explaining"):
            known = "definite" if verb.de in _WITH_KNOWN.split() else style
            yield (thing := self._object(verb.nouns, "acc", known, subject))
        if group == "explaining":
            recipient = self._recipient(style, subject)
            yield recipient._replace(en=f"to {recipient.en}", role="")
        if style == "object" and verb.de in ("kaufen", "verkaufen") and self.happens(0.3):
            en, de = self._amount(thing.noun_phrase.noun)
            yield literal(f"for {en} euros", f"für {de} Euro", grammar.COMPANION)
        elif verb.places and self.happens({"motion": 1.0, "activity": 0.85}.get(group, 0.25)):
            yield self._place(self.choose(verb.places), group == "motion", subject)
            if verb.de in _VEHICLES and self.happens(0.3):
                yield self._vehicle(verb)
            elif group in ("activity", "motion") and self.happens(0.15):
                yield self._company(subject)

    # The other groups.

    def _state(self, subject, is_negated, fronted):
        verb = self.choose(VERBS["state"])
        style = _STYLE_OF[verb.de][is_negated]
        thing = self._object(verb.nouns, "acc", style, subject)
        return Clause(subject, verb, phrases=[thing], is_negated=is_negated)

    def _schedule(self, subject, is_negated, fronted):
        verb = self.choose(VERBS["schedule"])
        subject = self._noun_phrase(self.choose(verb.nouns), "public", adjective=0.15)
        clause = Clause(subject, verb, self.choose(("present", "present", "perfect", "will")), is_negated=is_negated)
        if verb.places and self.happens(0.7):
            clause.phrases = [self._place(self.choose(verb.places), False, subject)]
        if not is_negated and self.happens({"present": 1.0}.get(clause.tense, 0.5)):
            clause.aspect = "past" * (clause.tense == "perfect")
            clause.time = self._time(clause.aspect or "future", clock=0.5)
            clause.is_fronted = self.happens(fronted)
        return clause

    def _quality(self, subject, is_negated, fronted):
        subject = self._noun_phrase(self.choose(_DESCRIBED), "definite", adjective=0)
        adjective = self.choose(ADJECTIVES[subject.noun])
        degree = ("", "") if adjective.en in _ABSOLUTE else self.choose((("", ""), ("very ", "sehr "), ("too ", "zu ")))
        predicate = literal(
            degree[0] + adjective.en, degree[1] + adjective.de, filler=f"{subject.noun.en} + {adjective.en}"
        )
        return Clause(subject, OTHER["be"], phrases=[predicate], is_negated=is_negated)

    def _feeling(self, subject, is_negated, fronted):
        clause = Clause(subject, OTHER["be"], is_negated=is_negated)
        (very, sehr), (en, de) = self.choose((("", ""), ("very ", "sehr "))), self.choose(FEELINGS)
        clause.phrases = [literal(very + en, sehr + de)]
        if not is_negated and self.happens(0.25):
            clause.adverb = self.choose(_ADVERBS["present"])
        return clause

    def _cost(self, subject, is_negated, fronted):
        subject = self._noun_phrase(self.choose(OTHER["cost"].nouns), "definite")
        en, de = self._amount(subject.noun)
        return Clause(subject, OTHER["cost"], phrases=[literal(f"{en} euros", f"{de} Euro", role="price")])

    def _live(self, subject, is_negated, fronted):
        place = self._place(self.choose(OTHER["live"].places), False, subject)
        return Clause(subject, OTHER["live"], phrases=[place], is_negated=is_negated)

    def _belong(self, subject, is_negated, fronted):
        thing = self._noun_phrase(self.choose(OTHER["belong"].nouns), "definite")._replace(owner=None)
        return Clause(thing, OTHER["belong"], phrases=[self._recipient("definite", thing)])

    def _put(self, subject, is_negated, fronted):
        clause = Clause(subject, OTHER["put"], self.choose(_TENSES), is_negated=is_negated)
        style = self._set_time(clause, 0.4, fronted)
        thing = self._object(clause.verb.nouns, "acc", style, subject)
        clause.phrases = [thing, self._surface("acc", subject)]
        return clause

    def _lie(self, subject, is_negated, fronted):
        thing = self._noun_phrase(self.choose(OTHER["lie"].nouns), "definite")
        return Clause(
            thing, OTHER["lie"], "present", "progressive", [self._surface("dat", None)], is_negated=is_negated
        )


def _possessives(subject):
    """Returns possessives to choose from: mostly the one that points back to the subject."""
    if isinstance(subject, NounPhrase) and subject.noun.kind in PERSONS:
        own = {"m": "his", "f": "her", "p": "their"}.get(subject.gender)
        return (own,) * 9 + _POSSESSIVES if own else ("my", "your", "our")  # das Kind: English has his and her
    return (subject.possessive,) * 9 + _POSSESSIVES if subject in PRONOUNS else _POSSESSIVES


def _is_odd_pair(subject, noun):
    """Whether two nouns do not go together as subject and object: the same, or a child's own children."""
    return subject is noun or (subject.kind == "youth" and noun.en in ("son", "daughter"))


def _is_reflexive(pronoun, subject):
    """Whether a pronoun cannot be the object of a subject: I … me, we … me, they … them."""
    return pronoun is subject or {pronoun, subject} <= {I, WE}
