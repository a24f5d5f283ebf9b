"""Saving and restoring a run, and averaging checkpoints (tensor2tensor's utils/avg_checkpoints.py)."""

import os
import re

import tensorflow as tf

from t2t_lite.data.files import list_files, plain_folder, plain_path
from t2t_lite.errors import Failure, UserError
from t2t_lite.models.weights import Damaged, check_fits, open_checkpoint, trackable, trackable_weights
from t2t_lite.training.ema import averages

PREFIX = "model.ckpt"


class RunCheckpoints:
    """The checkpoints of one `output_dir`: `model.ckpt-<step>.*` and the list `checkpoint`.

    With a moving average of the weights, "model" in a checkpoint is that average, for all who use the model; "trained"
    is what training goes on with.

    A save that is killed leaves the earlier ones as they were: the list is rewritten last, by a rename.

    Args:
        output_dir: str.
        model: a built Keras model.
        optimizer: its built Keras optimizer.
        keep_max: int, recent checkpoints kept.
        keep_every_n_hours: float, further ones kept for good.
        **objects: what else is saved: the data iterator and counters.
    """

    def __init__(self, output_dir, model, optimizer, keep_max=20, keep_every_n_hours=10000, **objects):
        self.output_dir = output_dir
        self._model = model
        saved = averages(model, optimizer)
        own = {id(variable) for variable in saved.values()}
        # By number: Keras names them after the process' count of models. Their order is that of the model's weights.
        rest = {f"{i:04d}": v.value for i, v in enumerate(optimizer.variables) if id(v) not in own}
        self._objects = {"model": trackable({n: v.value for n, v in saved.items()}), "optimizer": trackable(rest)}
        if optimizer.use_ema:
            self._objects["trained"] = trackable_weights(model)
        self._objects |= objects
        self._checkpoint = tf.train.Checkpoint(**self._objects)
        self._manager = tf.train.CheckpointManager(
            self._checkpoint,
            plain_folder(output_dir),
            max_to_keep=keep_max,
            keep_checkpoint_every_n_hours=keep_every_n_hours,
            checkpoint_name=PREFIX,
        )

    def save(self, step):
        """Saves as `model.ckpt-<step>`; returns its path.

        Raises:
            Failure: the disk is full or the folder cannot be written; the last checkpoint is intact.
        """
        try:
            return self._own_path(self._manager.save(checkpoint_number=step))
        except (tf.errors.OpError, OSError) as error:
            self._remove(rf"{PREFIX}-{step}[._].*")
            last = self.latest
            kept = f"The last good checkpoint is {last}." if last else "No checkpoint was saved before."
            raise Failure(
                f"{self.output_dir}: the checkpoint of step {step} could not be saved: {_first_line(error)} {kept} "
                "Make room or permission, then run the same command again."
            ) from error

    def save_apart(self, path):
        """Saves as `path`, a checkpoint beside the run's own, which are as they were."""
        self._checkpoint.write(path)

    @property
    def latest(self):
        """Path of the newest checkpoint, or None."""
        return self._own_path(self._manager.latest_checkpoint)

    def _own_path(self, path):
        """Returns the path as the user knows it, of one that `plain_path` has made."""
        return path and os.path.join(self.output_dir, os.path.basename(path))

    def restore_latest(self, skip=()):
        """Restores the newest checkpoint that can be read.

        Args:
            skip: names of objects to leave as they are.

        Returns:
            (path or None where there is none, list of paths that could not be read, newest first).

        Raises:
            UserError: a checkpoint of another model, or all are damaged.
        """
        damaged = []
        for path in map(self._own_path, reversed(self._manager.checkpoints)):
            try:
                check_fits(path, self._model)
                wanted = {name: value for name, value in self._objects.items() if name not in skip}
                tf.train.Checkpoint(**wanted).read(plain_path(path)).assert_existing_objects_matched().expect_partial()
                return path, damaged
            except Damaged:
                damaged.append(path)
            except UserError:
                raise
            except (tf.errors.DataLossError, tf.errors.NotFoundError, tf.errors.OutOfRangeError, IndexError):
                damaged.append(path)  # IndexError: how the reader says "Read less bytes than requested"
            except (AssertionError, ValueError, tf.errors.InvalidArgumentError) as error:
                if not any(key.startswith("optimizer/") for key in open_checkpoint(path).get_variable_to_shape_map()):
                    raise UserError(
                        f"{path}: an imported or averaged model, without what training needs to go on. Begin a new run "
                        f"with its weights: another --output_dir, and --warm_start_from={self.output_dir}"
                    ) from error
                raise UserError(
                    f"{path}: does not fit this model: {_first_line(error)} "
                    "Expected the settings it was trained with, or another output_dir."
                ) from error
        if damaged:
            raise UserError(
                f"{self.output_dir}: no checkpoint can be read; tried {', '.join(map(os.path.basename, damaged))}. "
                "Restore them from a copy, or train in another output_dir."
            )
        return None, damaged

    def remove_leftovers(self):
        """Removes what saves that were killed have left."""
        self._remove(rf"{PREFIX}-.*_temp")

    def _remove(self, pattern):
        for path in list_files(self.output_dir, pattern):
            remove(path)


def remove(path):
    """Removes a file, or a folder with all that is in it."""
    if tf.io.gfile.isdir(path):
        tf.io.gfile.rmtree(path)
    else:
        tf.io.gfile.remove(path)


def checkpoint_step(path):
    """Returns the step in a checkpoint's name: `model.ckpt-1200` -> 1200; 0 where there is none."""
    match = re.search(r"-(\d+)$", str(path))
    return int(match[1]) if match else 0


def average_checkpoints(paths, output_path):
    """Writes the mean of the models in several checkpoints (paper, section 6.1: the last 5, or 20).

    Only the model's weights and the step of the last one are written: moments of the optimizer and the position in
    the data have no mean. Sums are made in float64; each weight keeps its dtype.

    Args:
        paths: list of checkpoint paths, of one run.
        output_path: str, such as `avg/model.ckpt-1200`.

    Raises:
        UserError: no checkpoint, one that cannot be read, or different variables or shapes.
    """
    if not paths:
        raise UserError("averaging: no checkpoints were given.")
    sums, first = {}, None
    for path in paths:
        try:
            reader = open_checkpoint(path)
            shapes = {n: s for n, s in reader.get_variable_to_shape_map().items() if n.startswith("model/")}
        except (tf.errors.OpError, ValueError) as error:
            raise UserError(f"{path}: not a readable checkpoint: {_first_line(error)}") from error
        first = first or (path, shapes)
        if shapes != first[1]:
            name = next(n for n in sorted({*shapes, *first[1]}) if shapes.get(n) != first[1].get(n))
            raise UserError(
                f"{path}: {name} has shape {shapes.get(name)}, in {first[0]} {first[1].get(name)}. "
                "Expected checkpoints of one run."
            )
        for key in shapes:
            value = _read_tensor(reader, path, key)
            # Counters and seeds have no mean: the last one's stay.
            sums[key] = sums.get(key, 0.0) + value.astype("float64") if _is_float(value) else value
    dtypes = reader.get_variable_to_dtype_map()
    tensors = {k: (v / len(paths) if _is_float(v) else v).astype(dtypes[k].as_numpy_dtype) for k, v in sums.items()}
    # With the last one's object graph, so that the average restores as any checkpoint does.
    others = [key for key in dtypes if key.startswith(("step/", "save_counter/", "_CHECKPOINTABLE"))]
    for key in others:
        tensors[key] = _read_tensor(reader, paths[-1], key)
    tf.io.gfile.makedirs(os.path.dirname(output_path))
    values = [tf.constant(value) for value in tensors.values()]
    tf.raw_ops.SaveV2(
        prefix=output_path, tensor_names=list(tensors), shape_and_slices=[""] * len(values), tensors=values
    )


def _read_tensor(reader, path, key):
    try:
        return reader.get_tensor(key)
    except (tf.errors.OpError, IndexError) as error:  # IndexError: the file ends too early
        raise UserError(f"{path}: {key} cannot be read: {_first_line(error)}") from error


def _is_float(value):
    return tf.as_dtype(value.dtype).is_floating


def _first_line(error):
    text = (getattr(error, "message", None) or str(error)).strip()
    return text.splitlines()[0].rstrip(".") + "." if text else f"{type(error).__name__}."
