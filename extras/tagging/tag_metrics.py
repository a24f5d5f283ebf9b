"""Metrics for tags and entities; entities are counted with conlleval's rules, as in seqeval."""

import re

import numpy as np

from t2t_lite.errors import UserError, shown
from t2t_lite.evaluation.answer_scores import AnswerMetric

# IOB1, IOB2, IOE and IOBES; BILOU; BMES (with O also called BMESO); BMEWO.
_SCHEMES = [re.compile(f"O|[{marks}](-.*)?") for marks in ("BIES", "BILU", "BMES", "BMEW")]
_IN_IOBES = {"L": "E", "U": "S", "M": "I", "W": "S"}
EXPECTED = "O, B-…, I-…, and E-…, S-… (IOBES) or L-…, U-… (BILOU); or M-… for I-… (BMES) and W-… for S-… (BMEWO)"


def _word_counts(predicted, expected):
    """Returns int [sentences, 2]: for each sentence, the number of correctly tagged words and of all words."""
    pairs = zip(predicted, expected, strict=True)
    return np.array([(sum(a == b for a, b in zip(*tags, strict=True)), len(tags[1])) for tags in pairs])


def _has_entities(answers):
    return are_of_entities({tag for tags in answers for tag in tags})


def _entity_counts(predicted, expected):
    """Returns int [sentences, 3]: for each sentence, the numbers of right, predicted and expected entities."""
    if not _has_entities([*predicted, *expected]):
        tags = sorted({tag for sentence in (*predicted, *expected) for tag in sentence})
        raise UserError(f"entities: the tags {shown(', '.join(tags))} do not mark entities. Expected {EXPECTED}.")
    pairs = [(entities(a), entities(b)) for a, b in zip(predicted, expected, strict=True)]
    return np.array([(len(a & b), len(a), len(b)) for a, b in pairs])


def _share(part, *wholes):
    """Returns a function of counts [rows, columns]: the sum of column `part`, divided by the mean sum of `wholes`."""

    def score(rows):
        sums = rows.sum(axis=0)
        whole = sums[list(wholes)].sum()
        return len(wholes) * sums[part] / whole if whole else 0.0

    return score


TAG_METRICS = {
    "token_accuracy": AnswerMetric(_word_counts, _share(0, 1), is_registered=False),
    "entity_f1": AnswerMetric(_entity_counts, _share(0, 1, 2), allows=_has_entities),
    "entity_precision": AnswerMetric(_entity_counts, _share(0, 1), allows=_has_entities),
    "entity_recall": AnswerMetric(_entity_counts, _share(0, 2), allows=_has_entities),
}


def are_of_entities(tags):
    """Returns whether all tags belong to one entity scheme, such as O, B-PER and I-PER."""
    return any(all(map(scheme.fullmatch, tags)) for scheme in _SCHEMES)


def odd_tags(tags):
    """Returns the sorted tags that do not fit the scheme of the other tags; [] if the tags do not mark entities.

    Args:
        tags: set of str.
    """
    fitting = max(({tag for tag in tags if scheme.fullmatch(tag)} for scheme in _SCHEMES), key=len)
    are_meant = "O" in tags or len(fitting) > len(tags) / 2
    return sorted(tags - fitting) if are_meant else []


def entities(tags):
    """Returns the entities of a sentence, a set of (type, first word, last word); words are counted from 0.

    A continuing tag (such as I-PER) begins a new entity if no entity of the same type precedes it.

    Args:
        tags: list of str for which `are_of_entities` is true.
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
