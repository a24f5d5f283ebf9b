"""`translate_ende_phrasebook`: English-German sentence pairs from a grammar, the data that needs no download.

A random meaning (`phrasebook_clauses.py`) is put into a frame such as question or weil-clause (here) and said in both
languages (`phrasebook_grammar.py`, `phrasebook_lexicon.py`). Some combinations of a verb with an object, place or
subject, and of a frame with a verb, are held out: training never shows them, and every dev and test sentence has at
least one. So the score says whether a model has learned the grammar; it says nothing about news.
"""

import functools
import random
import zlib
from typing import NamedTuple

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, TranslateProblem
from t2t_lite.problems import phrasebook_grammar as grammar
from t2t_lite.problems.phrasebook_clauses import (
    ACTIONS,
    OTHER,
    PERSONS,
    Clauses,
    literal,
    object_phrase,
    pronoun_of,
    weighted,
)
from t2t_lite.problems.phrasebook_grammar import Clause, NounPhrase, english, german
from t2t_lite.problems.phrasebook_lexicon import FEELINGS, NOUNS, VERBS
from t2t_lite.problems.phrasebook_words import IT, WHAT, WHO, YOU, I, Word

PAIRS = {DatasetSplit.TRAIN: 100_000, DatasetSplit.EVAL: 1_000, DatasetSplit.TEST: 1_500}
HELD_OUT_PERCENT = 5  # of the combinations, for dev and for test each


@registry.register_problem
class TranslateEndePhrasebook(TranslateProblem):
    """English to German from the embedded grammar: 100,000 training pairs, no files needed."""

    language_pair = ("en", "de")
    approx_vocab_size = 2**11

    @property
    def dataset_splits(self):
        """Four shards for training, one each for dev and test."""
        return [
            {"split": DatasetSplit.TRAIN, "shards": 4},
            {"split": DatasetSplit.EVAL, "shards": 1},
            {"split": DatasetSplit.TEST, "shards": 1},
        ]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields the pairs of a split; the same `random_seed` gives the same pairs."""
        return generate_pairs(self.random_seed, PAIRS[dataset_split], dataset_split)


class Sentence(NamedTuple):
    """A pair with its analysis.

    Attributes:
        inputs: the English text.
        targets: the German text.
        words: the German words with their tags (`phrasebook_grammar.py`), "," included.
        frame: the name of the frame.
        combinations: what hold-outs are made of: "kaufen + apple", "question, perfect + kaufen".
    """

    inputs: str
    targets: str
    words: list
    frame: str
    combinations: tuple


def generate_pairs(seed, count, split):
    """Yields `count` pairs {"inputs", "targets"} of a split, no English sentence twice."""
    for sentence in generate_sentences(seed, count, split):
        yield {"inputs": sentence.inputs, "targets": sentence.targets}


def generate_sentences(seed, count, split):
    """Yields `count` `Sentence`s of a split ("train", "eval", "test"), no English sentence twice."""
    phrasebook, seen = Phrasebook(random.Random(f"{seed} {split}")), set()
    own = {split} - {DatasetSplit.TRAIN}
    while len(seen) < count:
        sentence = phrasebook.sentence()
        held_out = {home_of(combination) for combination in sentence.combinations} - {DatasetSplit.TRAIN}
        if held_out == own and sentence.inputs not in seen:
            seen.add(sentence.inputs)
            yield sentence


@functools.cache
def home_of(combination):
    """Returns the split that a combination such as "kaufen + apple" is held out for; "train" may occur in all."""
    bucket = zlib.crc32(combination.encode()) % 100  # Python's hash() differs from run to run
    if bucket >= 2 * HELD_OUT_PERCENT:
        return DatasetSplit.TRAIN
    return DatasetSplit.TEST if bucket < HELD_OUT_PERCENT else DatasetSplit.EVAL


def combinations_of(frame, clause):
    """Yields the combinations that a clause is made of."""
    verb, subject = clause.verb, clause.subject
    if verb.group in ACTIONS:  # a verb of few frames would never be seen in one of them
        yield f"{frame}, {clause.tense} + {verb.de}"
    if isinstance(subject, NounPhrase) and subject.noun in verb.nouns:
        yield f"{subject.noun.en} + {verb.de}"
    for phrase in clause.phrases:
        if phrase.filler:
            yield f"{verb.de} + {phrase.filler}"


_FRAMES = weighted(
    {"statement": 30, "question": 11, "wh_question": 16, "report": 14, "reason": 12, "motive": 6, "condition": 8}
)
_CONDITIONED = ("can", "will", "will", "have to", "want to", "should", "be allowed to")
_NOW = ("present", "present", "can")
_OUTDOORS = ("activity", "motion", "transitive")  # groups that have something to do with the weather


def _transitive(infinitives):
    return tuple(verb for verb in VERBS["transitive"] if verb.de in infinitives.split())


_NEEDED = _transitive("kaufen suchen mitnehmen mieten reparieren")
_LIKED = _transitive("kaufen bestellen probieren besuchen einladen fotografieren anrufen abholen")
_PURPOSES = _transitive("kaufen verkaufen suchen besuchen treffen abholen fotografieren anschauen fragen")
_NEED, _LIKE, _LOVE = (
    next(verb for verb in VERBS["state"] if verb.de == infinitive) for infinitive in ("brauchen", "mögen", "lieben")
)
_COSTLY = ("kaufen", "bestellen", "mieten", "bezahlen", "reisen", "fliegen")
_GOOD_WEATHER, _BAD_WEATHER = (("good", "gut"), ("warm", "warm")), (("bad", "schlecht"), ("cold", "kalt"))
_BECAUSE, _ALTHOUGH, _IF = ("because", "weil"), ("although", "obwohl"), ("if", "wenn")


class Phrasebook(Clauses):
    """Draws meanings and says them; `generator` is a `random.Random`.

    Each frame's method returns its clauses, the English, the German words and the mark at the end, or None where the
    clause that was drawn does not fit.
    """

    def sentence(self):
        """Returns a random `Sentence`."""
        said = None
        while said is None:
            frame = self.choose(_FRAMES)
            said = getattr(self, "_" + frame)()
        clauses, inputs, words, mark = said
        targets = grammar.german_text(words)
        return Sentence(
            inputs[0].upper() + inputs[1:] + mark,
            targets[0].upper() + targets[1:] + mark,
            words,
            frame,
            tuple(name for clause in clauses for name in combinations_of(frame, clause)),
        )

    def _statement(self):
        clause = self.clause(fronted=0.55)
        return [clause], english(clause), german(clause), "."

    def _question(self):
        clause = self.clause(negated=0)
        if _is_odd_question(clause):
            return None
        return [clause], english(clause, ""), german(clause, "first"), "?"

    def _wh_question(self):
        clause = self.clause(negated=0.1)
        question = self._ask(clause)
        if question is None:
            return None
        en, words = question
        return [clause], english(clause, en or None), german(clause, first=words), "?"

    def _report(self):
        """I know that …; I do not know whether …; do you know why …?"""
        verb = self.choose(("know", "know", "think", "hope", "say"))
        is_open = verb == "know" and self.happens(0.6)
        is_question = is_open and self.happens(0.4)
        main = Clause(YOU if is_question else self.person("definite"), OTHER[verb])
        main.is_negated = not is_question and (is_open or (verb == "think" and self.happens(0.3)))
        clause = self.clause(negated=0 if is_open else 0.15)
        if _thing(clause.subject) == _thing(main.subject):
            return None
        is_hoped_for = clause.verb is not OTHER["be"] and clause.tense in ("present", "perfect", "can", "will")
        if verb == "hope" and not is_hoped_for:
            return None
        if is_open and self.happens(0.4):
            question = self._ask(clause)
            if question is None:
                return None
            conjunction, words = question
        else:
            conjunction, words = ("whether", [Word("ob", "conj")]) if is_open else ("that", [Word("dass", "conj")])
        start = english(main, "" if is_question else None)
        said = " ".join(filter(None, (start, conjunction, english(clause))))
        words = _join(german(main, "first" if is_question else "second"), german(clause, "last", words))
        return [clause], said, words, "?" if is_question else "."

    def _reason(self):
        """Somebody does something although …, or not because …; drives to town because she has to …"""
        subject = self.person("definite")
        pronoun = pronoun_of(subject)
        is_fronted = self.happens(0.35)
        timed = 0 if is_fronted else 0.3
        if pronoun is None:
            return None
        first, second = (pronoun, subject) if is_fronted else (subject, pronoun)
        conjunction = self.choose((_BECAUSE, _BECAUSE, _ALTHOUGH))
        if conjunction is _BECAUSE and self.happens(0.35):
            main = self.clause(("motion",), ("present",), 0, first, timed)
            cause = self.clause(_PURPOSES, ("have to", "want to"), 0, second, timed=0)
        else:
            is_negated = self.happens(0.8 if conjunction is _BECAUSE else 0.3)
            is_weather = self.happens(0.3)
            groups, tenses = _OUTDOORS if is_weather else ACTIONS, _NOW if is_negated else ("present",)
            main = self.clause(groups, tenses, is_negated, first, timed, fronted=0.5 if timed else 0)
            is_good = is_negated != (conjunction is _BECAUSE)
            cause = self._weather(is_good, "progressive") if is_weather else self._circumstance(main, second, is_good)
        return subordinate(main, conjunction, cause, is_fronted)

    def _motive(self):
        """Somebody buys something because she needs it: the pronoun has the gender of the German noun."""
        verbs, motives = self.choose(((_NEEDED, (_NEED,)), (_LIKED, (_LIKE, _LOVE))))
        main = self.clause(verbs, ("present", "perfect", "want to"), negated=0)
        thing, pronoun = main.phrases[0].noun_phrase, pronoun_of(main.subject)
        motives = [verb for verb in motives if thing and thing.noun in verb.nouns]
        wanted = thing and pronoun_of(thing)
        if not (motives and wanted and pronoun) or wanted is pronoun:
            return None
        phrase = object_phrase(wanted)._replace(filler=thing.noun.en)
        cause = Clause(pronoun, self.choose(motives), phrases=[phrase])
        return subordinate(main, _BECAUSE, cause)

    def _condition(self):
        """If it rains, …; … if he has time."""
        subject = self.person("definite")
        pronoun = pronoun_of(subject)
        is_fronted = self.happens(0.5)
        if self.happens(0.4) or pronoun is None:
            main = self.clause(_OUTDOORS, _CONDITIONED, 0.2, subject, timed=0)
            return subordinate(main, _IF, self._weather(not main.is_negated), is_fronted)
        first, second = (pronoun, subject) if is_fronted else (subject, pronoun)
        main = self.clause(ACTIONS, _CONDITIONED, 0.2, first, timed=0)
        condition = self._circumstance(main, second, is_good=not main.is_negated)
        return subordinate(main, _IF, condition, is_fronted)

    def _circumstance(self, main, subject, is_good):
        """What lets somebody do something, or keeps from it: has time, has no money, is tired…"""
        if is_good or self.happens(0.3):
            thing = NounPhrase(NOUNS["money" if main.verb.de in _COSTLY else "time"], "-" if is_good else "no")
            return Clause(subject, OTHER["have"], phrases=[object_phrase(thing)._replace(filler="")])
        return Clause(subject, OTHER["be"], phrases=[literal(*self.choose(FEELINGS[:-1]))])

    def _weather(self, is_good, aspect=""):
        if self.happens(0.5):
            weather = NounPhrase(NOUNS["weather"], "the")
            predicate = literal(*self.choose(_GOOD_WEATHER if is_good else _BAD_WEATHER))
            return Clause(weather, OTHER["be"], phrases=[predicate])
        if is_good:
            return Clause(NounPhrase(NOUNS["sun"], "the"), OTHER["shine"], aspect=aspect)
        return Clause(IT["n"], OTHER[self.choose(("rain", "snow"))], aspect=aspect)

    def _ask(self, clause):
        """Takes out of the clause what is asked for.

        Returns ("" for a question about the subject) the English and the German question words; None where the part
        that was drawn cannot be asked for.
        """
        asked = self.choose(["why", "who", "when", *(phrase.role for phrase in clause.phrases)])
        is_person = not isinstance(clause.subject, NounPhrase) or clause.subject.noun.kind in PERSONS
        if (
            not asked
            or (clause.is_negated and asked != "why")
            or (asked == "who" and not is_person)
            or (asked == "when" and (clause.time or clause.verb.group not in _TIMED))
            or (asked != "who" and _is_odd_question(clause))
        ):
            return None
        clause.adverb = ()
        if clause.time is None and clause.tense == "perfect":
            clause.aspect = "past"
        elif clause.time is None and clause.tense == "present":
            clause.aspect = "progressive" if clause.verb.has_progressive else clause.aspect
        if asked == "who":
            clause.subject = WHO
            return "", []
        index = next((i for i, phrase in enumerate(clause.phrases) if phrase.role == asked), None)
        if index is not None:
            phrase = clause.phrases[index]
            clause.phrases[index] = phrase._replace(en="", de=[], noun_phrase=None)
        if asked in _QUESTION_WORDS:
            en, de = _QUESTION_WORDS[asked]
            return en, [Word(word, "wh") for word in de.split()]
        thing = phrase.noun_phrase
        if thing.noun.kind == "kin" or thing.owner or self.happens(0.6):
            clause.phrases[index] = clause.phrases[index]._replace(filler="")
            thing = WHO if thing.noun.kind in PERSONS else WHAT
        else:
            thing = thing._replace(determiner="which")
        return thing.english("acc"), thing.german("dat" if asked == "recipient" else "acc")


_TIMED = {*ACTIONS, "schedule"}  # groups of verbs that "when" is asked with
_QUESTION_WORDS = {
    "why": ("why", "warum"),
    "when": ("when", "wann"),
    "place": ("where", "wo"),
    "goal": ("where", "wohin"),
    "price": ("how much", "wie viel"),
}


def _thing(subject):
    return subject.noun if isinstance(subject, NounPhrase) else subject


def _is_odd_question(clause):
    """Said of "Am I reading a book?" (but "Can I …?") and "Does every student …?"."""
    if isinstance(clause.subject, NounPhrase):
        return clause.subject.determiner in ("every", "many", "a")
    return clause.subject is I and clause.tense not in ("can", "should", "have to", "be allowed to")


def _join(first, second):
    """Returns the words of two clauses with a comma between them."""
    return [*first, Word(",", "comma"), *second]


def subordinate(main, conjunction, clause, is_fronted=False):
    """Returns what a frame's method returns for a main and a subordinate clause; None where they do not fit."""
    if not main.verb.has_progressive or main.adverb[:1] == ("never",):  # to forget, to see: there is no such reason
        return None
    en, de = conjunction
    words = german(clause, "last", [Word(de, "conj")])
    if is_fronted:
        said = f"{en} {english(clause)}, {english(main)}"
        words = _join(words, german(main, "first"))
    else:
        said = f"{english(main)}{',' * (en == 'although')} {en} {english(clause)}"
        words = _join(german(main), words)
    return [main, clause], said, words, "."
