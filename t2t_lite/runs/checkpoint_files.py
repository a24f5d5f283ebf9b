"""Finds a folder's checkpoints by their file names, because the list in `checkpoint` may be lost, old or damaged."""

import collections
import os
import re

from t2t_lite.errors import Failure, UserError, several
from t2t_lite.files import exists, list_files, read_bytes, write_bytes
from t2t_lite.files.resumable import step_of

PREFIX = "model.ckpt"
LIST = "checkpoint"
_DATA = re.compile(r"(.*)\.data-(\d{5})-of-(\d{5})")
_MOST_BYTES_OF_A_LIST = 2**24

Listed = collections.namedtuple("Listed", "times last_preserved newest")
Listed.__doc__ = (
    "A folder's list of checkpoints. `times` is {name of a checkpoint, without folder: time of writing}, oldest first. "
    "`last_preserved` is the time of the last permanently kept checkpoint. `newest` is the name of the newest "
    "checkpoint. All fields are empty if there is no list."
)


def checkpoint_step(path):
    """Returns the step in a checkpoint's name, such as 1200 for `model.ckpt-1200`, or 0. See `step_of`."""
    match = re.search(r"-([0-9]+)$", str(path))
    return step_of(match[1], path) if match else 0


def list_checkpoints(folder):
    """Returns the paths, without suffix, of all `model.ckpt-<step>` that have an index, sorted by step."""
    paths = list_files(folder, rf"{re.escape(PREFIX)}-[0-9]+\.index")
    return sorted((path.removesuffix(".index") for path in paths), key=checkpoint_step)


def missing_parts(path):
    """Returns a description of a checkpoint's missing files, or "" if its index and all data files exist."""
    folder, name = os.path.split(path)
    if not exists(f"{path}.index"):
        return "its index"
    shards = [_DATA.fullmatch(file) for file in list_files(folder, rf"{re.escape(name)}\.data-.*")]
    numbers = {int(shard[2]) for shard in shards if shard}
    count = max((int(shard[3]) for shard in shards if shard), default=1)
    return "" if numbers >= {*range(count)} else "a data file"


def parts_of_checkpoints(folder):
    """Returns the sorted names of all files that belong to a `model.ckpt`, except files of unfinished saves."""
    names = map(os.path.basename, list_files(folder, rf"{re.escape(PREFIX)}.*"))
    return [name for name in names if not re.search(r"_temp$|tempstate\d*$", name)]


def read_list(folder):
    """Reads a folder's list of checkpoints and returns it as a `Listed`.

    A list that cannot be read is treated as missing, since the list is only a hint.
    """
    path = os.path.join(folder, LIST)
    try:
        text = read_bytes(path, _MOST_BYTES_OF_A_LIST).decode(errors="replace")
    except (UserError, Failure):
        return Listed({}, 0.0, "")

    def values(key, pattern):
        return re.findall(rf"^{key}: {pattern}\s*$", text, re.MULTILINE)

    in_quotes, number = r'"(?:[^"\n]*/)?([^"\n/]+)"', r"(\d+(?:\.\d*)?(?:e\+?\d+)?)"
    names, newest = values("all_model_checkpoint_paths", in_quotes), values("model_checkpoint_path", in_quotes)
    last = float((values("last_preserved_timestamp", number) or [0])[0])
    times = [float(time) for time in values("all_model_checkpoint_timestamps", number)]
    if len(times) != len(names):
        times = [last] * len(names)
    return Listed(dict(zip(names, times, strict=True)), last, newest[0] if newest else "")


def write_list(folder, times, last_preserved=0.0):
    """Writes a folder's list of checkpoints in TensorFlow's format.

    `times` is {checkpoint's name: time}, the newest last.
    """
    lines = [f'model_checkpoint_path: "{[*times][-1]}"']
    lines += [f'all_model_checkpoint_paths: "{name}"' for name in times]
    lines += [f"all_model_checkpoint_timestamps: {time!r}" for time in times.values()]
    lines.append(f"last_preserved_timestamp: {last_preserved!r}\n")
    write_bytes(os.path.join(folder, LIST), "\n".join(lines).encode())


def newest_checkpoint(folder):
    """Returns the newest checkpoint of a folder, without suffix, or None.

    This is the checkpoint with the highest step or, if no name has a step, the newest checkpoint in the folder's
    list.
    """
    if paths := list_checkpoints(folder):
        return paths[-1]
    listed = read_list(folder).newest
    path = os.path.join(folder, listed)
    return path if listed and exists(f"{path}.index") else None


def check_can_be_placed(folder, has_settings, saved_before):
    """Raises `UserError` if a run would start from the beginning in a folder that contains checkpoints.

    Args:
        folder: str, an output_dir.
        has_settings: bool, whether the folder has an `hparams.json`.
        saved_before: bool, whether the run's log records a saved checkpoint, or None if the log is missing.
    """
    parts, listed = parts_of_checkpoints(folder), read_list(folder).newest
    complete = [path for path in list_checkpoints(folder) if not missing_parts(path)]
    advice = "Copy the run again, or choose another output_dir for a new run."
    shown_names = several(parts, 3)
    if parts and not has_settings:
        raise UserError(
            f"{folder}: holds {shown_names}, but no hparams.json, which names the model of these checkpoints. {advice}"
        )
    # If the very first save was killed, the log records no checkpoint.
    if not complete and (listed or (parts and saved_before is not False)):
        here = f"holds {shown_names}, but no complete checkpoint" if parts else "holds no checkpoint"
        by_list = f"; its list {LIST!r} names {listed}" if listed else ""
        raise UserError(f"{folder}: {here}{by_list}. {advice}")
