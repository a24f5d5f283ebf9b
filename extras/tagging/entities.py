"""Entities in tagged sentences, and their counts by the rules of conlleval, as seqeval applies them."""

import re

import numpy as np

# IOB1, IOB2, IOE and IOBES; BILOU; BMES, with O also called BMESO; BMEWO.
_SCHEMES = [re.compile(f"O|[{marks}](-.*)?") for marks in ("BIES", "BILU", "BMES", "BMEW")]
_IN_IOBES = {"L": "E", "U": "S", "M": "I", "W": "S"}
EXPECTED = "O, B-…, I-…, and where used E-…, S-… (IOBES), L-…, U-… (BILOU), M-… for I-… (BMES), or W-… for S-… (BMEWO)"


def are_of_entities(tags):
    """Returns whether all tags are those of entities, such as O, B-PER and I-PER, by one of the schemes."""
    return any(all(map(scheme.fullmatch, tags)) for scheme in _SCHEMES)


def odd_tags(tags):
    """Returns the sorted tags that do not fit the entity scheme of the others; [] if tags are not about entities.

    Args:
        tags: set of str.
    """
    fitting = max(({tag for tag in tags if scheme.fullmatch(tag)} for scheme in _SCHEMES), key=len)
    are_meant = "O" in tags or len(fitting) > len(tags) / 2
    return sorted(tags - fitting) if are_meant else []


def entities(tags):
    """Returns the entities of a sentence, a set of (type, first word, last word), counted from 0.

    A continuing tag after no entity, or after one of another type, begins an entity.

    Args:
        tags: list of str, for which `are_of_entities`.
    """
    spans, start, last_mark, kind = set(), None, "O", ""
    for at, tag in enumerate([*tags, "O"]):
        mark, new_kind = _IN_IOBES.get(tag[0], tag[0]), tag[2:]
        if start is not None and (mark in "BSO" or last_mark in "ES" or kind != new_kind):
            spans.add((kind, start, at - 1))
            start = None
        if start is None and mark != "O":
            start = at
        last_mark, kind = mark, new_kind
    return spans


def entity_counts(predicted, expected):
    """Returns int [sentences, 3]: the numbers of entities that are predicted and expected, predicted, and expected.

    Args:
        predicted, expected: lists of lists of tags.
    """
    pairs = [(entities(a), entities(b)) for a, b in zip(predicted, expected, strict=True)]
    return np.array([(len(a & b), len(a), len(b)) for a, b in pairs])
