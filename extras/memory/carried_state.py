"""The state that a model carries from step to step."""

import numpy as np
import tensorflow as tf

from t2t_lite.errors import LOGGER, UserError, counted
from t2t_lite.files import plain_path
from t2t_lite.runs.weights import shape_text


class CarriedState:
    """The states that a run carries from step to step, on the devices that process the batches.

    The batches of a step (one or more per replica) are called lanes. Each lane has its own state.

    Args:
        model: keras.Model with an `initial_state`.
        rows: int, rows per batch.
        devices: list of str, the device of each lane.

    Attributes:
        now: list of the current state of each lane, a structure of tensors.

    Raises:
        UserError: the first axis of a tensor in `initial_state` does not have the size `rows`.
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
                    f"{type(model).__name__}.initial_state returned a tensor of shape {tuple(leaf.shape)} for "
                    f"rows={rows}. Expected a first axis of {rows} for each tensor."
                )

    @property
    def spec(self):
        """The state of a lane, as a structure of `tf.TensorSpec`."""
        return tf.nest.map_structure(lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), self.now[0])

    def description(self, source):
        """Returns the line about its state that a run logs at the start; `source` is a SegmentBatches."""
        size = sum(leaf.shape.num_elements() * leaf.dtype.size for leaf in tf.nest.flatten(self.now))
        return (
            f"state: carried from step to step in {counted(len(self.now), 'lane')} of {source.rows} rows, "
            f"{size / 1e6:,.1f} MB; segments of {source.length} ids, {source.rows_per_example} per row"
        )

    def save(self, path):
        """Writes the states to files whose names begin with `path`, in TensorFlow's checkpoint format."""
        with tf.device("CPU:0"):
            leaves = [tf.identity(leaf) for leaf in tf.nest.flatten(self.now)]
            names = [self._name(i) for i in range(len(leaves))]
            tf.raw_ops.SaveV2(prefix=path, tensor_names=names, shape_and_slices=[""] * len(names), tensors=leaves)

    def restore(self, path):
        """Reads the files that `save` wrote. If they do not exist, logs a warning and keeps the current states.

        Raises:
            UserError: the shapes of the saved states differ from the model's.
            tf.errors.OpError: the files are damaged.
        """
        if not tf.io.gfile.exists(f"{path}.index"):
            LOGGER.warning(
                f"{path}: no saved state; only the newest two checkpoints have a state. The model starts with its "
                "initial state"
            )
            return
        reader = tf.train.load_checkpoint(plain_path(path))
        shapes, values = reader.get_variable_to_shape_map(), []
        for i, leaf in enumerate(tf.nest.flatten(self.now)):
            there = shapes.get(self._name(i))
            if there != leaf.shape.as_list():
                raise UserError(
                    f"{path}: the saved state is {shape_text(there)}, but the model's is {shape_text(leaf.shape)}. "
                    "Expected the settings that the run was trained with, or another output_dir."
                )
            with tf.device(leaf.device):
                values.append(tf.identity(tf.constant(np.asarray(reader.get_tensor(self._name(i))), leaf.dtype)))
        self.now = tf.nest.pack_sequence_as(self.now, values)

    def _name(self, i):
        lane, leaf = divmod(i, len(tf.nest.flatten(self.now[0])))
        return f"lane_{lane:04d}/{leaf:04d}"


def lanes_of(replicas, accumulation, before, output_dir):
    """Returns the number of lanes of a run, which is its number of batches per step.

    Args:
        replicas: Replicas.
        accumulation: int, number of batches that a replica accumulates per step.
        before: dict, the contents of `hparams.json` if a run is resumed; otherwise None.
        output_dir: str.

    Raises:
        UserError: the resumed run had a different number of batches per step, or there are several machines.
    """
    if replicas.cluster is not None:
        raise UserError(
            "TF_CONFIG: the model carries a state from step to step, but the chief, which saves the checkpoints, only "
            "has the state of its own batches. Expected a single machine."
        )
    lanes = replicas.count * accumulation
    had = (before or {}).get("batches_a_step", lanes)
    if had != lanes:
        raise UserError(
            f"{output_dir}: batches_a_step: {had} -> {lanes} ({counted(replicas.count, 'replica')} x "
            f"gradient_accumulation_steps={accumulation}). The model carries a state from each batch of a step to the "
            "same batch of the next step, so the number of batches cannot change in a run, even with "
            f"--allow_hparams_change. Expected {had}, or another output_dir."
        )
    return lanes
