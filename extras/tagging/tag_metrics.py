"""Metrics of the tags of sentences' words, from 0 to 1."""

import numpy as np

from t2t_lite.errors import UserError, shown
from t2t_lite.evaluation.answer_metrics import AnswerMetric
from t2t_lite.extras.tagging.entities import EXPECTED, are_of_entities, entity_counts


def _word_counts(predicted, expected):
    """Returns int [sentences, 2]: the words with the right tag, and all words."""
    pairs = zip(predicted, expected, strict=True)
    return np.array([(sum(a == b for a, b in zip(*tags, strict=True)), len(tags[1])) for tags in pairs])


def _has_entities(answers):
    return are_of_entities({tag for tags in answers for tag in tags})


def _entity_counts(predicted, expected):
    if not _has_entities([*predicted, *expected]):
        tags = sorted({tag for sentence in (*predicted, *expected) for tag in sentence})
        raise UserError(f"entities: the tags {shown(', '.join(tags))}. Expected {EXPECTED}.")
    return entity_counts(predicted, expected)


def _share(part, *wholes):
    """Returns a score of rows of counts: len(wholes) times the sum of column `part` over those of `wholes`, as F1."""

    def score(rows):
        sums = rows.sum(axis=0)
        whole = sums[list(wholes)].sum()
        return len(wholes) * sums[part] / whole if whole else 0.0

    return score


OF_TAGS = {
    "token_accuracy": AnswerMetric(_word_counts, _share(0, 1), is_registered=False),
    "entity_f1": AnswerMetric(_entity_counts, _share(0, 1, 2), allows=_has_entities),
    "entity_precision": AnswerMetric(_entity_counts, _share(0, 1), allows=_has_entities),
    "entity_recall": AnswerMetric(_entity_counts, _share(0, 2), allows=_has_entities),
}
