"""Saves and restores a run's checkpoints, and averages checkpoints (tensor2tensor's utils/avg_checkpoints.py)."""

import os
import re
import time

import tensorflow as tf

from t2t_lite.errors import Failure, UserError, first_line
from t2t_lite.files import list_files, plain_path, remove
from t2t_lite.runs.checkpoint_files import (
    PREFIX,
    checkpoint_step,
    list_checkpoints,
    missing_parts,
    read_list,
    write_list,
)
from t2t_lite.runs.weights import (
    Damaged,
    averages,
    check_finite,
    check_fits,
    open_checkpoint,
    trackable,
    trackable_weights,
    unreadable,
    weight_name,
)

# The beginnings of the names that an average contains. With the object graph, it can be restored like any checkpoint.
_AVERAGED = ("model/", "step/", "save_counter/", "_CHECKPOINTABLE")
_STATES_KEPT = 2  # the newest checkpoint may be damaged, so the one before it also keeps its state


class RunCheckpoints:
    """The checkpoints of one `output_dir`: `model.ckpt-<step>.*` and the list `checkpoint`.

    If a moving average of the weights is kept, "model" in a checkpoint is this average. The weights themselves are in
    "trained", which is only read when training is resumed.

    A killed save leaves earlier checkpoints intact, because the list is written last and then renamed into place. If
    the list is lost or damaged, checkpoints are found by their files. TensorFlow's `CheckpointManager` is not used
    because it relies on the list alone, deletes files in other folders if the list names them, and treats brackets in a
    folder's name as a pattern.

    Args:
        output_dir: str.
        model: a built Keras model.
        optimizer: the model's built Keras optimizer.
        keep_max: int, the number of recent checkpoints to keep, or None for all.
        keep_every_n_hours: float, the number of hours between checkpoints that are kept permanently.
        carried: CarriedState, or None for a model without state. It is saved as `model.ckpt-<step>.state`, but only
            with the two newest checkpoints, because it may be larger than the weights.
        **objects: other objects to save, such as the data iterator and counters; each may be None. "loss_scale" and
            "generators" keep their values if the restored checkpoint lacks them.
    """

    def __init__(self, output_dir, model, optimizer, keep_max=20, keep_every_n_hours=10000, carried=None, **objects):
        self.output_dir = output_dir
        self._model = model
        self._saved = averages(model, optimizer)
        saved_ids = {id(variable) for variable in self._saved.values()}
        # The optimizer's other variables are named by number, since Keras' names depend on the other models of the
        # process.
        rest = {f"{i:04d}": v.value for i, v in enumerate(optimizer.variables) if id(v) not in saved_ids}
        self._objects = {"model": trackable({n: v.value for n, v in self._saved.items()}), "optimizer": trackable(rest)}
        if optimizer.use_ema:
            self._objects["trained"] = trackable_weights(model)
        self._objects |= {name: value for name, value in objects.items() if value is not None}
        self._checkpoint = tf.train.Checkpoint(**self._objects)
        self._carried = carried
        self._keep_max = keep_max
        self._keep_seconds = 3600 * keep_every_n_hours
        self._times, self._last_preserved = self._find()

    def _find(self):
        """Returns ({name of a checkpoint that may be deleted: its time}, time of the last permanent checkpoint)."""
        there = {os.path.basename(path): path for path in list_checkpoints(self.output_dir)}
        listed = read_list(self.output_dir)
        times = {name: time for name, time in listed.times.items() if name in there}
        if times:  # older unlisted checkpoints are permanent; newer ones mean that the list is an old copy
            newest = max(map(checkpoint_step, times))
            later = {name: _time(path) for name, path in there.items() if checkpoint_step(name) > newest}
            return times | later, listed.last_preserved
        times = {name: _time(path) for name, path in there.items()}
        oldest = min(times.values(), default=time.time() - 1)
        # If there are more than keep_max checkpoints, the oldest was kept permanently.
        surplus = self._keep_max and len(times) > self._keep_max
        return times, oldest - self._keep_seconds if surplus else oldest

    def save(self, step):
        """Saves a checkpoint as `model.ckpt-<step>` and returns its path.

        Raises:
            Failure: the disk is full or the folder cannot be written. The last checkpoint remains intact.
        """
        name = f"{PREFIX}-{step}"
        try:
            self._checkpoint.save_counter.assign_add(1)
            path = os.path.join(self.output_dir, name)
            self.save_apart(path)
            self._times.pop(name, None)
            self._times[name] = time.time()
            write_list(self.output_dir, self._times, self._last_preserved)  # must happen before checkpoints are deleted
            self._sweep()
            write_list(self.output_dir, self._times, self._last_preserved)
            return path
        except (tf.errors.OpError, OSError) as error:
            self._times.pop(name, None)
            self._remove(name)
            last_good = self.latest and f"The last good checkpoint is {self.latest}."
            raise Failure(
                f"{self.output_dir}: the checkpoint of step {step} could not be saved: {first_line(error)}. "
                f"{last_good or 'No checkpoint was saved before.'} Free disk space or correct the permissions, then "
                "run the same command again."
            ) from error

    def _sweep(self):
        while self._keep_max and len(self._times) > self._keep_max:
            name, seconds = next(iter(self._times.items()))
            del self._times[name]
            if seconds - self._keep_seconds >= self._last_preserved:
                self._last_preserved = seconds  # the checkpoint is kept permanently and removed from the list
            else:
                self._remove(name)
        for path in list_checkpoints(self.output_dir)[:-_STATES_KEPT] if self._carried else ():
            self._remove(f"{os.path.basename(path)}.state")

    def save_apart(self, path):
        """Saves to `path` without adding the checkpoint to the run's list."""
        if self._carried:
            self._carried.save(f"{path}.state")
        self._checkpoint.write(path)

    @property
    def latest(self):
        """Returns the path of the newest complete checkpoint, or None."""
        return newest_whole(self.output_dir)

    def restore_latest(self, skip=()):
        """Restores the newest readable checkpoint without changing any file.

        Args:
            skip: names of objects that are not restored; "state" stands for `carried`, which a checkpoint may lack.

        Returns:
            (path of the restored checkpoint or None, {path of an unreadable checkpoint: reason} with the newest first).

        Raises:
            UserError: the checkpoint belongs to another model, or all checkpoints are damaged.
        """
        damaged = {}
        for path in reversed(list_checkpoints(self.output_dir)):
            try:
                if lacking := missing_parts(path):
                    raise Damaged(f"{path}: {lacking} is missing.")
                check_fits(path, self._model)
                if not holds(path, "optimizer"):
                    raise UserError(
                        f"{path}: an imported or averaged model lacks the optimizer's state. Start a new run with its "
                        f"weights: choose another --output_dir and add --warm_start_from={self.output_dir}"
                    )
                objects = {name: value for name, value in self._objects.items() if name not in skip}
                for name in ("loss_scale", "generators"):
                    if not holds(path, name):  # saved with a different dtype, or by an earlier version
                        objects.pop(name, None)
                tf.train.Checkpoint(**objects).read(plain_path(path)).assert_existing_objects_matched().expect_partial()
                if self._carried and "state" not in skip:
                    self._carried.restore(f"{path}.state")
                for name, variable in self._saved.items():
                    check_finite(path, {name: tf.convert_to_tensor(variable.value)})
                return path, damaged
            except Damaged as error:
                damaged[path] = str(error)
            except UserError:
                raise
            except (tf.errors.DataLossError, tf.errors.NotFoundError, tf.errors.OutOfRangeError, IndexError) as error:
                damaged[path] = f"{path}: damaged: {first_line(error)}."  # IndexError: the reader's "Read less bytes …"
            except (AssertionError, ValueError, tf.errors.InvalidArgumentError) as error:
                raise UserError(
                    f"{path}: does not match this model: {first_line(error)}. Use the settings with which it was "
                    "trained, or another output_dir."
                ) from error
        if damaged:
            raise UserError(
                f"{self.output_dir}: cannot read any checkpoint; tried {', '.join(map(os.path.basename, damaged))}. "
                "Restore the checkpoints from a copy, or train in another output_dir."
            )
        return None, damaged

    def set_aside(self, paths):
        """Renames unreadable checkpoints to `damaged-<name>`, so that commands ignore them."""
        for path in paths:
            folder, name = os.path.split(path)
            self._times.pop(name, None)
            for part in _parts(folder, name):
                tf.io.gfile.rename(part, os.path.join(folder, f"damaged-{os.path.basename(part)}"), overwrite=True)

    def remove_leftovers(self):
        """Removes files left behind by killed saves."""
        for path in list_files(self.output_dir, rf"{re.escape(PREFIX)}-.*_temp"):
            remove(path)

    def _remove(self, name):
        for path in _parts(self.output_dir, name):
            remove(path)


def holds(path, name):
    """Returns whether a checkpoint contains values of an object, such as "optimizer"."""
    return any(key.startswith(f"{name}/") for key in open_checkpoint(path).get_variable_to_shape_map())


def newest_whole(folder):
    """Returns the newest complete checkpoint of a folder, without suffix, or None."""
    return next((path for path in reversed(list_checkpoints(folder)) if not missing_parts(path)), None)


def newest_step(folder):
    """Returns the step from which the run in a folder resumes, or 0 for a new run."""
    return checkpoint_step(newest_whole(folder))


def _parts(folder, name):
    """Returns the paths of all files of a checkpoint, including those of an unfinished save."""
    return list_files(folder, rf"{re.escape(name)}[._].*")


def _time(path):
    """Returns the time at which a checkpoint was written, in seconds since 1970."""
    return tf.io.gfile.stat(f"{path}.index").mtime_nsec / 1e9


def average_checkpoints(paths, output_path):
    """Writes the mean of the models in several checkpoints (the last 5 or 20 in the paper, section 6.1).

    Only the model's weights and the step of the last checkpoint are written, since a mean of the optimizer's moments or
    of positions in the data would be meaningless. Sums are computed in float64; each weight keeps its dtype.

    Args:
        paths: list of checkpoint paths of one run.
        output_path: str, such as `avg/model.ckpt-1200`.

    Raises:
        UserError: `paths` is empty, a checkpoint cannot be read or has non-finite weights, or the checkpoints'
            variables or shapes differ.
    """
    if not paths:
        raise UserError("averaging: expected at least one checkpoint.")
    sums, values, first = {}, {}, None
    for path in paths:
        try:
            reader = open_checkpoint(path)
            saved = reader.get_variable_to_shape_map()
            # replaces the previous checkpoint's values one by one, so that memory never holds those of two checkpoints
            values.update((name, reader.get_tensor(name)) for name in saved if name.startswith(_AVERAGED))
        except (tf.errors.OpError, ValueError, IndexError) as error:  # IndexError: the file ends too early
            raise UserError(unreadable(path, error)) from error
        shapes = {name: shape for name, shape in saved.items() if name.startswith("model/")}
        first = first or (path, shapes)
        if shapes != first[1]:
            name = next(n for n in sorted({*shapes, *first[1]}) if shapes.get(n) != first[1].get(n))
            raise UserError(
                f"{path}: {name} has shape {shapes.get(name)}, but in {first[0]} it has {first[1].get(name)}. Expected "
                "checkpoints of one run."
            )
        for key in shapes:
            check_finite(path, {weight_name(key): values[key]})
            if tf.as_dtype(values[key].dtype).is_floating:
                sums[key] = sums.get(key, 0.0) + values[key].astype("float64")
    # Counters and seeds are not averaged but copied from the last checkpoint.
    while sums:  # the sums take twice the memory of the model, so each is released once its mean is known
        key, total = sums.popitem()
        values[key] = (total / len(paths)).astype(values[key].dtype)
    tf.io.gfile.makedirs(os.path.dirname(output_path))
    tensors = [tf.constant(value) for value in values.values()]
    tf.raw_ops.SaveV2(
        prefix=output_path, tensor_names=list(values), shape_and_slices=[""] * len(values), tensors=tensors
    )
