"""Files whose names end in a step, in the order of their steps, also while more of them appear."""

import collections
import os
import re
import time

from t2t_lite.errors import UserError

CHECKPOINTS = r"(model\.ckpt-(\d+))\.index"
TRANSLATIONS = r"([^.].*(?<!-of)-(\d+))"  # as t2t-translate-all names them; no part of many, …-00000-of-00010
POLL_SECONDS = 10  # as tensor2tensor's utils/bleu_hook.py

StepFile = collections.namedtuple("StepFile", "step path seconds")
StepFile.__doc__ = (
    "One of them: its step, its path as the pattern's first group has it, its time in seconds since 1970."
)


def follow(folder, pattern, min_steps=0, wait_minutes=0, missing=lambda file: ""):
    """Yields each `StepFile` once, by step.

    Args:
        folder: path; it may appear only while it is waited for.
        pattern: `CHECKPOINTS` or `TRANSLATIONS`.
        min_steps: int, files of fewer steps are left out.
        wait_minutes: goes on until so many have passed without another file.
        missing: function of a `StepFile` that says what it lacks, for an error message; "" when it is whole. It is
            asked again until it is, before any file of a later step.

    Raises:
        UserError: no such folder, two files of one step, or one that lacks something when the time is over.
    """
    import tensorflow as tf

    least, since = min_steps, time.monotonic()
    while True:
        lacking = "" if tf.io.gfile.isdir(folder) else f"{folder}: no such folder. Check the path."
        for file in find(folder, pattern, least):
            lacking = missing(file)
            if lacking:
                break
            yield file
            least, since = file.step + 1, time.monotonic()
        if time.monotonic() - since >= 60 * wait_minutes:
            if lacking:
                raise UserError(lacking)
            return
        time.sleep(POLL_SECONDS)


def find(folder, pattern, min_steps=0):
    """Returns the `StepFile`s that are there, by step. Raises `UserError` for two of one step."""
    import tensorflow as tf

    found = {}
    for name in sorted(tf.io.gfile.listdir(folder)) if tf.io.gfile.isdir(folder) else ():
        match = re.fullmatch(pattern, name)
        if not match or int(match[2]) < min_steps:
            continue
        try:
            status = tf.io.gfile.stat(os.path.join(folder, name))
        except tf.errors.NotFoundError:  # gone meanwhile
            continue
        if status.is_directory:
            continue
        file = StepFile(int(match[2]), os.path.join(folder, match[1]), status.mtime_nsec / 1e9)
        if file.step in found:
            other = os.path.basename(found[file.step].path)
            raise UserError(f"{folder}: {other} and {match[1]} are both of step {file.step}. Expected one file a step.")
        found[file.step] = file
    return [found[step] for step in sorted(found)]
