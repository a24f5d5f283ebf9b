"""Makes training and evaluation batches in which each row is one example.

For language models, evaluation can use sliding windows over a text instead, so that every id has enough context.
"""

import itertools

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data import batching
from t2t_lite.data.corruption import batch_features
from t2t_lite.data.example_reader import ExampleReader
from t2t_lite.data.manifests import longest_row
from t2t_lite.data.splits import FILE_TAGS
from t2t_lite.errors import UserError


@registry.register_batches("examples")
class ExampleBatches:
    """Makes the batches of a run; each row is one example.

    Args:
        problem: Problem.
        hparams: HParams, as for `batching.training_batches`.
        encoders: {feature: encoder}. If None, ids are not checked.
        lanes: the result of `lanes_of`, or 1 in evaluation.

    Attributes:
        hparams: HParams, whose length limits determine which examples are dropped.
        features: {feature: rank} of a batch.
        longest: int, the maximum number of ids in a training row.
        left_out: str, a description of the dropped examples for messages.
        rows_per_example: int, number of rows that are made from an example.
        ladder: WidthLadder, the shapes that training batches may have. If None, they may have any shape.
    """

    rows_per_example = 1
    ladder = None

    def __init__(self, problem, hparams, encoders=None, lanes=None):
        self.problem, self.hparams, self.encoders, self.lanes = problem, hparams, encoders, lanes
        self.features = batch_features(problem, hparams.model_class)
        self.longest = longest_row(problem, hparams)
        self.left_out = f"longer than {self.longest} ids"

    @staticmethod
    def lanes_of(replicas, accumulation, before, output_dir):
        """Returns the number of lanes, which are the batches per step that carry a state; here None, since none do.

        Args:
            replicas: Replicas.
            accumulation: int, number of batches that each replica accumulates per step.
            before: dict, the contents of the resumed run's `hparams.json`, or None.
            output_dir: str.
        """

    def carried(self, model, devices, accumulation):
        """Returns the state that a model carries from step to step (see `TrainStep`). It is None for these batches.

        Args:
            model: keras.Model.
            devices: list of str, the devices of this machine's replicas.
            accumulation: int, number of batches that each replica accumulates per step.
        """

    def first_state(self, model):
        """Returns the model's initial state for an evaluation, which is () for these batches."""
        return ()

    def training(self, paths, facts, most_shapes=None):
        """Returns the endless stream of training batches for one replica.

        Args:
            paths: list of str, the record files.
            facts: facts of the split as the model sees it, see `Records.seen_facts`.
            most_shapes: int, the maximum number of shapes that batches may have, for XLA. If None, there is no limit.
        """
        arguments = self.problem, self.hparams, paths, self.encoders
        self.ladder = batching.problem_ladder(*arguments, facts, most_shapes) if most_shapes else None
        return batching.training_batches(*arguments, self.ladder)

    def evaluation(self, paths, in_order=False):
        """Returns the batches of one pass. `in_order` (whether consecutive records form one text) is ignored."""
        return batching.evaluation_batches(self.problem, self.hparams, paths, self.encoders)

    def whole(self, paths):
        """Returns the batches of `evaluation`, in the same order, but does not apply the model's `corrupt`."""
        return batching.evaluation_batches(self.problem, self.hparams, paths, self.encoders, whole=True)

    def narrowest(self):
        """Returns a batch that contains only padding and has the first shape that XLA compiles."""
        return batching.narrowest_batch(self.problem, self.hparams, self.ladder)


def check_stride(problem, stride, split, has_state=False):
    """Raises `UserError` unless the windows of a problem's split may move by `stride` ids; 0 means no windows."""
    if not stride:
        return
    if has_state:
        raise UserError(
            f"--eval_stride={stride}: the model already carries a state from one segment of a text to the next, so "
            "each id has the preceding text as context. Remove the flag."
        )
    if split not in problem.ordered_splits or not registry.task_of(problem).is_text:
        raise UserError(
            f"--eval_stride={stride}: the {FILE_TAGS[split]} records of {problem.full_name} are not one continuous "
            "text in which each id is predicted from the preceding ids. Remove the flag; it is for the dev and test "
            "sets of problems such as languagemodel_own."
        )
    if stride > problem.sequence_length:
        raise UserError(
            f"--eval_stride={stride}: windows of {problem.sequence_length} ids would leave gaps. Expected a number "
            f"from 1 to {problem.sequence_length}."
        )


def sliding_batches(problem, hparams, paths, encoders, stride):
    """Returns batches of sliding windows, in which each id of a text is scored once, with enough ids before it.

    At least `sequence_length - stride` ids precede a scored id, except in the first window, which is the beginning of
    the text.

    Args:
        problem: Problem with `sequence_length`, whose records in `paths` are in order.
        hparams: HParams, whose batch_size is used.
        paths: list of str.
        encoders: {feature: encoder}.
        stride: int, number of ids by which a window moves.

    Returns:
        A `tf.data.Dataset` of {"targets", "scored"}: int32 [rows, sequence_length], padded with 0; "scored" has the
        targets to score, and 0 at other positions.
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
