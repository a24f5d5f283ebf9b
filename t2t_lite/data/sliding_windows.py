"""Windows that slide over a text, so that a language model scores every id with enough context."""

import itertools

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data import batching
from t2t_lite.data.example_reader import ExampleReader
from t2t_lite.data.splits import FILE_TAGS
from t2t_lite.errors import UserError


def check_stride(problem, stride, split, has_state=False):
    """Raises `UserError` unless the windows of a problem's split may move by `stride` ids; 0: no windows."""
    if not stride:
        return
    if has_state:
        raise UserError(
            f"--eval_stride={stride}: the model carries a state from one segment of a text to the next, so each id is "
            "given what comes before it anyway. Leave it out."
        )
    if split not in problem.ordered_splits:
        raise UserError(
            f"--eval_stride={stride}: the {FILE_TAGS[split]} records of {problem.full_name} are not one text in order. "
            "Leave it out; it is for the dev and test sets of problems such as languagemodel_own."
        )
    if not registry.task_of(problem).is_text:
        raise UserError(
            f"--eval_stride={stride}: {problem.full_name} has the task {problem.task}, whose ids are not predicted "
            "from those before them. Leave it out; it is for problems such as languagemodel_own."
        )
    if stride > problem.sequence_length:
        raise UserError(
            f"--eval_stride={stride}: would skip ids between rows of {problem.sequence_length}. Expected from 1 to "
            f"{problem.sequence_length}."
        )


def sliding_batches(problem, hparams, paths, encoders, stride):
    """Returns batches that score each id of a text once, given at least `sequence_length - stride` ids before it.

    The first window scores all of its ids, each given those before it.

    Args:
        problem: Problem with `sequence_length`, whose records in `paths` are in order.
        hparams: HParams: batch_size is used.
        paths: list of str.
        encoders: {feature: encoder}.
        stride: int, number of ids by which a window moves.

    Returns:
        A `tf.data.Dataset` of {"targets", "scored"}: int32 [rows, sequence_length], padded with 0; "scored" are the
        targets with 0 where they are not scored.
    """
    examples = ExampleReader(problem, hparams, "eval", paths, encoders).examples()
    ids = np.fromiter(itertools.chain.from_iterable(example["targets"] for example in examples), np.int32)
    length = problem.sequence_length
    starts = np.arange(0, max(len(ids) - length + stride, 1), stride)

    def window(start):
        row = tf.constant(ids)[start : start + length]
        is_new = tf.range(tf.size(row)) >= tf.where(start == 0, 0, length - stride)
        return {"targets": row, "scored": tf.where(is_new, row, 0)}

    windows = tf.data.Dataset.from_tensor_slices(starts).map(window)
    return batching.ahead(windows.padded_batch(max(1, hparams.batch_size // length)))
