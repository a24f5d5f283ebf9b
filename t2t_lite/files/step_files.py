"""Lists files whose names end in a step, in the order of steps, including those that appear later."""

import collections
import os
import re
import time

from t2t_lite.errors import UserError
from t2t_lite.files.file_system import is_folder, list_names, status

CHECKPOINTS = r"(model\.ckpt-(\d+))\.index"
TRANSLATIONS = r"([^.].*(?<!-of)-(\d+))"  # t2t-translate-all's names, but not shards, …-00000-of-00010
POLL_SECONDS = 10  # as tensor2tensor's utils/bleu_hook.py

StepFile = collections.namedtuple("StepFile", "step path seconds")
StepFile.__doc__ = (
    "One of them: its step, its path as the pattern's first group has it, its time in seconds since 1970."
)


def follow(folder, pattern, min_steps=0, wait_minutes=0, missing=lambda file: ""):
    """Yields each `StepFile` once, by step.

    Args:
        folder: path; it need not exist yet.
        pattern: `CHECKPOINTS` or `TRANSLATIONS`.
        min_steps: int, files with fewer steps are skipped.
        wait_minutes: stops after this many minutes without a new file.
        missing: function of a `StepFile` that returns what it lacks, for an error message, or "" if it is complete. It
            is called until the file is complete, before any file of a later step is considered.

    Raises:
        UserError: there is no such folder, two files have the same step, or a file is still incomplete after that time.
    """
    least, since = min_steps, time.monotonic()
    while True:
        lacking = "" if is_folder(folder) else f"{folder}: no such folder. Check the path."
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
    """Returns the existing `StepFile`s, by step. Raises `UserError` if two have the same step."""
    files_by_step = {}
    for name in list_names(folder) if is_folder(folder) else ():
        match = re.fullmatch(pattern, name)
        if not match or int(match[2]) < min_steps:
            continue
        try:
            found = status(os.path.join(folder, name))
        except FileNotFoundError:  # deleted meanwhile
            continue
        if found.is_folder:
            continue
        file = StepFile(int(match[2]), os.path.join(folder, match[1]), found.modified_ns / 1e9)
        if file.step in files_by_step:
            other = os.path.basename(files_by_step[file.step].path)
            raise UserError(f"{folder}: {other} and {match[1]} are both of step {file.step}. Expected one file a step.")
        files_by_step[file.step] = file
    return [files_by_step[step] for step in sorted(files_by_step)]
