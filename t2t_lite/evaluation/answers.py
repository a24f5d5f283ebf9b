"""What a model's logits, and the ids of a row, mean as an answer: a label, a number, tags of words or a part of a text.

An answer is chosen in a graph, for a whole batch, and read from the batch's rows in Python.
"""

import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.text.vocabulary import EOS_ID

LONGEST_ANSWER = 30  # pieces, as in BERT's run_squad.py
NEVER = -1e9  # the score of a span that can't be an answer


def span_scores(logits, inputs, longest=LONGEST_ANSWER):
    """Returns the score of each span that may be the answer to a question; in a graph, too.

    Args:
        logits: float32 [B, 2, 1 + T], of the first and of the last position, counted from 1.
        inputs: int32 [B, T], a question and a context, each ending in 1; padded with 0.
        longest: int, positions of a span at most.

    Returns:
        float32 [B, T, T]: the sum of two logits, those of the first and of the last position, both counted from 0;
        `NEVER` unless both are in the context, in this order.
    """
    ends = tf.cast(inputs == EOS_ID, tf.int32)
    is_context = (tf.cumsum(ends, axis=1) == 1) & (inputs != EOS_ID) & (inputs != 0)
    first, last = tf.unstack(tf.where(is_context[:, None], logits[:, :, 1:], NEVER), axis=1)
    scores = first[:, :, None] + last[:, None, :]
    width = tf.shape(inputs)[1]
    is_span = tf.linalg.band_part(tf.ones([width, width]), 0, tf.minimum(longest, width) - 1) > 0
    return tf.maximum(tf.where(is_span, scores, NEVER), NEVER)


def best_spans(logits, inputs):
    """Returns int32 [B, 2], the first and the last position, counted from 1, of the best span: see `span_scores`."""
    width = tf.shape(inputs)[1]
    best = tf.argmax(tf.reshape(span_scores(logits, inputs), [-1, width * width]), axis=-1, output_type=tf.int32)
    return 1 + tf.stack([best // width, best % width], axis=-1)


def _best_ids(logits, inputs):
    return 1 + tf.argmax(logits[..., 1:], axis=-1, output_type=tf.int32)  # 0 is padding, and no class


def _class(encoders, inputs, targets, chosen):
    return [encoders["targets"].decode(ids) for ids in (chosen, targets)]


def _number(encoders, inputs, targets, chosen):
    return [encoders["targets"].value(place) for place in (chosen, encoders["targets"].place(targets))]


def _tags(encoders, inputs, targets, chosen):
    is_word = targets != 0
    return [[encoders["targets"].decode(i) for i in ids[is_word].tolist()] for ids in (chosen, targets)]


def _span(encoders, inputs, targets, chosen):
    return [encoders["inputs"].decode(inputs[first - 1 : last].tolist()) for first, last in (chosen, targets)]


# By task: what chooses an answer in a graph, from logits and inputs, and what reads (predicted, expected) from a row.
_TASKS = {
    "classification": (_best_ids, _class),
    "regression": (lambda logits, inputs: logits[:, 0], _number),
    "tagging": (_best_ids, _tags),
    "spans": (best_spans, _span),
}


class Answers:
    """The answers that a model gives in an evaluation, and those that are expected.

    Args:
        problem: Problem.
        encoders: {feature: encoder}.

    Raises:
        UserError: the problem's task has no answers.
    """

    def __init__(self, problem, encoders):
        check_answers(problem)
        self._choose, self._read = _TASKS[problem.task]
        self._encoders = encoders

    def choose(self, logits, inputs):
        """In a graph: returns what a batch's logits of the targets choose, [B, …]."""
        return self._choose(logits, inputs)

    def read(self, batch, chosen):
        """Returns a list of (predicted, expected), one pair per row.

        Args:
            batch: {"inputs", "targets"}, int32 [B, …].
            chosen: what `choose` returned for it.
        """
        rows = zip(batch["inputs"].numpy(), batch["targets"].numpy(), chosen.numpy(), strict=True)
        return [self._read(self._encoders, *row) for row in rows]


def check_answers(problem):
    """Raises `UserError` if the answers of a problem's task cannot be compared by a metric."""
    if problem.task not in _TASKS:
        raise UserError(
            f"{problem.name}: eval_metrics has a metric of answers, which its task, {problem.task}, does not have. "
            f"Expected one of {', '.join(_TASKS)}."
        )
