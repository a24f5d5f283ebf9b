"""Samples of the phrasebook, made once, and how their tagged German words are read."""

import functools
import itertools

from t2t_lite.problems import phrasebook


@functools.cache
def train():
    return list(phrasebook.generate_sentences(7, 5000, "train"))


@functools.cache
def held_out(split):
    return list(phrasebook.generate_sentences(7, 400, split))


def clauses(sentence):
    """Splits the tagged words at the comma."""
    return [
        list(group) for is_comma, group in itertools.groupby(sentence.words, lambda w: w.tag == "comma") if not is_comma
    ]


def all_clauses(sentences):
    return [clause for sentence in sentences for clause in clauses(sentence)]


def noun_phrases(clause):
    """Yields (words from determiner to noun, gender, case, preposition or None)."""
    phrase, preposition = [], None
    for word in clause:
        kind, *features = word.tag.split()
        if kind == "prep":
            preposition = word.text
        elif kind in ("det", "prep+det", "adj", "noun"):
            phrase.append(word)
            if kind == "noun":
                assert len({tuple(part.tag.split()[1:]) for part in phrase}) == 1, phrase
                if phrase[0].tag.startswith("prep+"):
                    preposition = phrase[0].text
                yield phrase, *features, preposition
                phrase, preposition = [], None
    assert not phrase, clause


def finite(clause):
    """Returns (index, person, infinitive) of the finite verb; there is exactly one."""
    [(index, tag)] = [(i, word.tag.split()) for i, word in enumerate(clause) if word.tag.startswith("fin")]
    return index, int(tag[1]), tag[2]


def lexical_verb(clause):
    ends = [word.tag.split()[1] for word in clause if word.tag.startswith(("inf", "part"))]
    return ends[0] if ends else finite(clause)[2]
