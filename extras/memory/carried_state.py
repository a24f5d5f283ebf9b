"""The state that a model carries from step to step, one for each lane: the place of a batch in its step."""

import logging

import numpy as np
import tensorflow as tf

from t2t_lite.errors import UserError, counted
from t2t_lite.files import plain_path
from t2t_lite.runs.weights import shape_text

_LOGGER = logging.getLogger("t2t_lite")


class CarriedState:
    """The states of all lanes, as tensors on the devices that take the lanes' batches.

    Args:
        model: keras.Model with an `initial_state`.
        rows: int, of a batch.
        devices: list of str, of each lane.

    Attributes:
        now: list of structures of tensors, one for each lane.

    Raises:
        UserError: the first axis of a tensor of `initial_state` is not the rows.
    """

    def __init__(self, model, rows, devices):
        self.now = []
        for device in devices:
            with tf.device(device):
                state = tf.nest.map_structure(tf.convert_to_tensor, model.initial_state(rows, training=True))
                self.now.append(tf.nest.map_structure(tf.identity, state))
        for leaf in tf.nest.flatten(self.now[0]):
            if leaf.shape.rank == 0 or leaf.shape[0] != rows:
                raise UserError(
                    f"{type(model).__name__}.initial_state: returned a tensor of shape {tuple(leaf.shape)} for "
                    f"rows={rows}. Expected {rows} as the first axis of each."
                )

    @property
    def spec(self):
        """The structure of `tf.TensorSpec` that all lanes have."""
        return tf.nest.map_structure(lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), self.now[0])

    @property
    def bytes(self):
        """The size of all lanes' states."""
        return sum(leaf.shape.num_elements() * leaf.dtype.size for leaf in tf.nest.flatten(self.now))

    def description(self, source):
        """Returns what a run says about it; `source`: SegmentBatches."""
        return (
            f"state: carried from step to step in {counted(len(self.now), 'lane')} of {source.rows} rows, "
            f"{self.bytes / 1e6:,.1f} MB; segments of {source.length} ids, {source.rows_per_example} a row"
        )

    def save(self, path):
        """Writes the states to files that begin with `path`, in TensorFlow's format of checkpoints."""
        with tf.device("CPU:0"):
            leaves = [tf.identity(leaf) for leaf in tf.nest.flatten(self.now)]
            names = [self._name(i) for i in range(len(leaves))]
            tf.raw_ops.SaveV2(prefix=path, tensor_names=names, shape_and_slices=[""] * len(names), tensors=leaves)

    def restore(self, path):
        """Reads what `save` wrote. Where nothing is there the states stay as they are, and the user is told.

        Raises:
            UserError: it is of other shapes.
            tf.errors.OpError: it is damaged.
        """
        if not tf.io.gfile.exists(f"{path}.index"):
            _LOGGER.warning(
                f"{path}: no such files, which the newest two checkpoints have: the model's state begins anew"
            )
            return
        reader = tf.train.load_checkpoint(plain_path(path))
        shapes, values = reader.get_variable_to_shape_map(), []
        for i, leaf in enumerate(tf.nest.flatten(self.now)):
            there = shapes.get(self._name(i))
            if there != leaf.shape.as_list():
                raise UserError(
                    f"{path}: the state of the model is {shape_text(there)} there, {shape_text(leaf.shape)} in the "
                    "model. Expected the settings that it was trained with, or another output_dir."
                )
            with tf.device(leaf.device):
                values.append(tf.identity(tf.constant(np.asarray(reader.get_tensor(self._name(i))), leaf.dtype)))
        self.now = tf.nest.pack_sequence_as(self.now, values)

    def _name(self, i):
        lane, leaf = divmod(i, len(tf.nest.flatten(self.now[0])))
        return f"lane_{lane:04d}/{leaf:04d}"


def lanes_of(replicas, accumulation, before, output_dir):
    """Returns the number of lanes of a run, the batches of a step.

    Args:
        replicas: Replicas.
        accumulation: int, batches that each replica accumulates per step.
        before: dict, the `hparams.json` of the resumed run, or None.
        output_dir: str.

    Raises:
        UserError: steps have another number of batches than before, or there are several machines.
    """
    if replicas.cluster is not None:
        raise UserError(
            "TF_CONFIG: the model carries a state from step to step, and the chief, which saves checkpoints, has only "
            "that of its own batches. Expected one machine."
        )
    lanes = replicas.count * accumulation
    had = (before or {}).get("batches_a_step", lanes)
    if had != lanes:
        raise UserError(
            f"{output_dir}: batches_a_step: {had} -> {lanes} ({counted(replicas.count, 'replica')} x "
            f"gradient_accumulation_steps={accumulation}). The model carries a state from each batch of a step to the "
            "same one of the next, so that their number cannot change in a run, even with --allow_hparams_change. "
            f"Expected {had}, or another output_dir."
        )
    return lanes
