"""Splits long rows into batches of segments, for models that carry a state from segment to segment."""

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data import batching
from t2t_lite.data.example_batches import ExampleBatches
from t2t_lite.data.example_reader import ExampleReader
from t2t_lite.errors import UserError
from t2t_lite.extras.memory.carried_state import CarriedState, lanes_of
from t2t_lite.registry import register_batches
from t2t_lite.settings.reserved_names import BEFORE


@register_batches("segments")
class SegmentBatches(ExampleBatches):
    """Makes batches {"targets" [rows, segment_length], "before" [rows]} that continue earlier batches.

    Training reads whole rows of `sequence_length` ids. The order of rows, the epochs, and the position that a
    checkpoint stores are therefore the same as in any other run. Each group of `lanes` batches of whole rows is split
    into segments: A and B become A0 B0 A1 B1 …, so that batch b of a step continues batch b of the previous step, or
    starts new rows. Rows with fewer than `sequence_length` ids are skipped.

    Args:
        problem, hparams, encoders: see `ExampleBatches`; `hparams.segment_length` is a setting of the model.
        lanes: int, number of batches per step.

    Attributes:
        rows: int, rows per batch.
        length: int, ids per segment.

    Raises:
        UserError: the problem's rows differ in length, their length is not a multiple of the segment length, or a
            hyperparameter cannot be used with segments.
    """

    def __init__(self, problem, hparams, encoders=None, lanes=1):
        length, row = hparams.get("segment_length", 0), getattr(problem, "sequence_length", 0)
        if not length:
            raise UserError(
                "the model carries a state from batch to batch, but has no hyperparameter segment_length. Declare it "
                "in the model's HPARAMS."
            )
        if not row or dict(problem.features) != {"targets": 2} or not registry.task_of(problem).is_text:
            raise UserError(
                f"{problem.full_name}: the model carries a state from one segment of a text to the next, but these "
                "examples are not rows of a long text. Expected a problem such as languagemodel_own."
            )
        if row == length or row % length:
            raise UserError(
                f"segment_length={length}: each row of {problem.full_name} has {row} ids. Expected a smaller divisor "
                f"of {row}, or a different row length (t2t-datagen --sequence_length)."
            )
        if hparams.batch_size < length:
            raise UserError(
                f"batch_size={hparams.batch_size}: a segment of segment_length={length} ids must fit into a batch. "
                f"Expected {length} or more."
            )
        if hparams.bpe_dropout:
            raise UserError(
                f"bpe_dropout={hparams.bpe_dropout} would change the length of rows, which must all have the same "
                "number of segments. Expected 0."
            )
        self.rows, self.length = hparams.batch_size // length, length
        whole = {"batch_size": self.rows * row, "max_length": row, "min_length": row}
        super().__init__(problem, hparams.override_from_dict(whole), encoders, lanes)
        self.features = {"targets": 2, BEFORE: 1}
        self.longest, self.left_out = length, f"shorter than {row} ids"
        self.rows_per_example = row // length

    lanes_of = staticmethod(lanes_of)

    def carried(self, model, devices, accumulation):
        """Returns the `CarriedState` of a run, or None if its model has no state."""
        if model.initial_state(1, training=True) is None:
            return None
        if check_lengths := getattr(model, "check_lengths", None):
            check_lengths(self.length)
        return CarriedState(model, self.rows, [device for device in devices for _ in range(accumulation)])

    def first_state(self, model):
        """Returns the state before the first batch of an evaluation: see `ExampleBatches`."""
        state = model.initial_state(self.rows, training=False)
        return () if state is None else state

    def training(self, paths, facts, most_shapes=None):
        """Returns the training batches, all with the same shape: see `ExampleBatches`."""
        rows = batching.training_batches(self.problem, self.hparams, paths, self.encoders, prefetch=False)
        return batching.ahead(rows.batch(self.lanes, drop_remainder=True).flat_map(self._cut))

    @tf.autograph.experimental.do_not_convert
    def _cut(self, step):
        """Splits {"targets": [lanes, rows, sequence_length]} into segments, alternating between the lanes."""
        shape = self.lanes, self.rows, self.rows_per_example, self.length
        ids = tf.reshape(step["targets"], shape)
        before = tf.pad(ids[:, :, :-1, -1], [[0, 0], [0, 0], [1, 0]])
        ids, before = (tf.transpose(x, [2, 0, 1, *range(3, len(x.shape))]) for x in (ids, before))
        parts = {"targets": ids, BEFORE: before}
        return tf.data.Dataset.from_tensor_slices({f: tf.reshape(x, [-1, *x.shape[2:]]) for f, x in parts.items()})

    def evaluation(self, paths, in_order=False):
        """Returns the batches of one pass, padded with 0. Each batch continues the previous batch.

        With `in_order`, the text is split into as many parts as a batch has rows, and the parts are read in parallel.
        At the beginning of each part except the first, the model knows the previous id but has no state. If a text has
        fewer segments than a batch has rows, the last rows are padding. Without `in_order`, the initial state is used
        at the beginning of each record.
        """
        reader = ExampleReader(self.problem, self.hparams, "eval", paths, self.encoders)
        rows = [np.array(example["targets"], np.int32) for example in reader.examples()]
        rows = rows or [np.zeros(0, np.int32)]
        if in_order:
            text = np.concatenate(rows)
            width = -(-len(text) // (self.rows * self.length)) * self.length
            padding = self.rows * width - len(text)
            groups = [np.pad(text, (0, padding)).reshape(self.rows, width)]
            before = [np.pad(text, (1, padding))[:-1].reshape(self.rows, width)]
        else:
            width = -(-max(map(len, rows)) // self.length) * self.length
            rows = [np.pad(row, (0, width - len(row))) for row in rows]
            rows += [np.zeros(width, np.int32)] * (-len(rows) % self.rows)
            groups = np.split(np.stack(rows), len(rows) // self.rows)
            before = [np.pad(group, ((0, 0), (1, 0)))[:, :-1] for group in groups]
        segments = np.concatenate([self._in_turn(group) for group in groups])
        before = np.concatenate([self._in_turn(group)[:, :, 0] for group in before])
        return batching.ahead(tf.data.Dataset.from_tensor_slices({"targets": segments, BEFORE: before}))

    def _in_turn(self, rows):
        """Splits rows into segments: [rows, n * length] -> [n, rows, length]."""
        return np.swapaxes(rows.reshape(len(rows), -1, self.length), 0, 1)

    def narrowest(self):
        """Returns a batch that contains only padding; all batches have the same shape."""
        return {"targets": tf.zeros([self.rows, self.length], tf.int32), BEFORE: tf.zeros([self.rows], tf.int32)}
