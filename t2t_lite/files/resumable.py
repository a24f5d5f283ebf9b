"""Writes files in parts, so that a killed command can resume, and finds files whose names contain a step.

While `out` is written, `out.t2t_lite_incomplete` holds the finished part, and `out.t2t_lite_incomplete.json` records
the part's length and everything on which the contents depend. The same command resumes after this part, or starts again
from the beginning if any of these dependencies has changed.
"""

import collections
import contextlib
import json
import os
import re
import time

from t2t_lite import files
from t2t_lite.errors import LOGGER, UserError
from t2t_lite.files import INCOMPLETE
from t2t_lite.files.file_errors import explain, translated
from t2t_lite.files.file_system import is_folder, list_names, status
from t2t_lite.files.pipes import is_device, open_device, written_path
from t2t_lite.files.request import Request
from t2t_lite.files.safe_json import check_schema

_RECORD = {"made_from": dict, "done": int, "sizes": [int], "state": dict | list | None}
CHECKPOINTS = r"(model\.ckpt-([0-9]+))\.index"
TRANSLATIONS = r"([^.].*(?<!-of)-([0-9]+))"  # files of t2t-translate-all, not shards such as x-00000-of-00010
_MOST_STEPS = 2**63 - 1
POLL_SECONDS = 10  # as in tensor2tensor's utils/bleu_hook.py
StepFile = collections.namedtuple("StepFile", "step path seconds")
StepFile.__doc__ = (
    "A file whose name contains a step: the step, the path without an ending such as .index, and the modification time "
    "in seconds since 1970."
)


class ResumableFiles:
    """Output files that are written together, part by part, so that a killed command can resume.

    Args:
        paths: list of str; the record of progress is named after the first path. If a path is a link, its target is
            written.
        made_from: dict of JSON values, everything on which the contents depend.

    Attributes:
        done: int, the number of lines (or other units) written.
        state: the state passed to the last `write`, {str: int} or a list of such dicts, or None.

    Raises:
        UserError: a file cannot be written, or another process is writing it (in which case no file is changed).
    """

    def __init__(self, paths, made_from):
        self._paths = list(map(written_path, paths))
        self._made_from = json.loads(json.dumps(made_from))
        self._record = f"{self._paths[0]}{INCOMPLETE}.json"
        self._can_resume = not any(map(is_device, self._paths))
        self._lock = self._locked()
        self.done, self.state, sizes = self._read_record() if self._can_resume else (0, None, None)
        self._files, self._is_finished = [], False
        try:
            for at, path in enumerate(self._paths):
                self._files.append(_File(path, sizes and sizes[at]))
        except BaseException:
            self.close()
            raise

    def write(self, texts, count, state=None):
        """Appends texts to the files and records the progress.

        Args:
            texts: list of str, one per file.
            count: int, the number of lines in each text.
            state: {str: int} or a list of such dicts, which a resumed command finds in the attribute `state`.
        """
        for file, text in zip(self._files, texts, strict=True):
            file.write(text)
        self.done += count
        if self._can_resume:
            sizes = [file.size for file in self._files]
            files.write_json(
                self._record, {"made_from": self._made_from, "done": self.done, "sizes": sizes, "state": state}
            )

    def finish(self):
        """Renames the files to their final names."""
        for file in self._files:
            file.finish()
        files.remove_if_there(self._record)
        self._is_finished = True
        self._lock.close()

    def close(self):
        """Closes unfinished files. Files that are not empty are kept, so that the same command can resume."""
        if self._is_finished:
            return
        for file in self._files:
            try:
                file.close()
            except Exception as error:
                if explain(error) is None:  # `write` has already raised an error such as a full disk
                    raise
        if not self.done and self._can_resume:
            for file in self._files:
                file.remove()
            files.remove_if_there(self._record)
        elif self._can_resume:
            LOGGER.info(
                f"{self._paths[0]}{INCOMPLETE}: {self.done:,} lines are finished. Run the same command again to resume"
            )
        self._lock.close()

    def _locked(self):
        """Returns a context manager that locks these files against other processes, if locks are supported."""
        path = self._paths[0]
        if not self._can_resume or files.is_remote(path) or os.path.isdir(path):
            return contextlib.ExitStack()
        try:
            lock = files.lock_file(f"{path}{INCOMPLETE}")
        except (OSError, files.NoLocks):
            return contextlib.ExitStack()  # `_File` will raise the `OSError`
        if lock is None:
            raise UserError(
                f"{path}: another process is writing this file. Wait for the process, stop it, or choose another file."
            )
        return lock

    def _read_record(self):
        """Returns (number of lines written, state, file sizes), or (0, None, None) to start from the beginning."""
        if not files.exists(self._record):
            return 0, None, None
        sources, done, state, sizes = {}, 0, None, None
        try:
            record = files.read_json(self._record, _RECORD)
            states = record["state"] if isinstance(record["state"], list) else [record["state"] or {}]
            check_schema(states, [{str: int}], f"{self._record}: 'state'")
            sources, done, state, sizes = (record[key] for key in ("made_from", "done", "state", "sizes"))
            written = [files.size(f"{path}{INCOMPLETE}") for path in self._paths]
            fits = len(sizes) == len(written) and all(0 <= a <= b for a, b in zip(sizes, written, strict=True))
            is_intact = done >= 0 and fits
        except UserError:
            is_intact = False
        differing = Request(sources, self._made_from).changes
        if is_intact and not differing:
            LOGGER.info(f"{self._paths[0]}{INCOMPLETE}: resuming after {done:,} lines")
            return done, state, sizes
        why = f"was made with a different {', '.join(differing)}" if is_intact else "is damaged"
        LOGGER.warning(f"{self._paths[0]}{INCOMPLETE}: {why}. Starting again from the beginning.")
        return 0, None, None


class _File:
    """An output that is being written: a file under a temporary name, or a pipe or terminal."""

    def __init__(self, path, size):
        self._path = path
        self._temporary = path if is_device(path) else f"{path}{INCOMPLETE}"
        self.size = size or 0
        with translated(path, "write"):
            if os.path.isdir(path):
                raise UserError(f"{path}: is a folder. Expected a file to write.")
            if is_device(path):
                self._file = open_device(path, "wb")
            else:
                if size is not None and files.size(self._temporary) > size:
                    self._cut()
                self._file = files.create(self._temporary, "wb" if size is None else "ab")

    def _cut(self):
        """Truncates the file to the length in the record of progress."""
        if not files.is_remote(self._temporary):
            os.truncate(self._temporary, self.size)  # truncate in place, to keep the lock
            return
        with files.open_stream(self._temporary) as file:
            data = file.read(self.size)
        files.write_bytes(self._temporary, data)

    def write(self, text):
        data = text.encode("utf-8")
        with translated(self._path, "write"):
            self._file.write(data)
            self._file.flush()
        self.size += len(data)

    def close(self):
        self._file.close()

    def finish(self):
        with translated(self._path, "write"):
            self._file.close()
            if self._temporary != self._path:
                files.rename(self._temporary, self._path)

    def remove(self):
        files.remove_if_there(self._temporary)


def follow(folder, pattern, min_steps=0, wait_minutes=0, missing=lambda file: ""):
    """Yields each `StepFile` in a folder once, in order of steps, and waits for new files.

    Args:
        folder: path of a folder that need not exist yet.
        pattern: `CHECKPOINTS` or `TRANSLATIONS`.
        min_steps: int; files of earlier steps are skipped.
        wait_minutes: float, the number of minutes without a new file after which the function returns.
        missing: function that takes a `StepFile` and returns an error message if the file is incomplete, otherwise "".
            It is called repeatedly until the file is complete; only then are files of later steps considered.

    Raises:
        UserError: there is no such folder, two files have the same step, a step is too large, or a file is still
            incomplete after `wait_minutes`.
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


def step_of(digits, path):
    """Returns the step of a file. Raises `UserError` if the step is too large for TensorFlow and TensorBoard.

    Args:
        digits: str, the step in the file's name.
        path: str, the file's path.
    """
    if (step := int(digits)) > _MOST_STEPS:
        raise UserError(f"{path}: step {digits} exceeds the largest step, {_MOST_STEPS:,}. Rename the file.")
    return step


def find(folder, pattern, min_steps=0):
    """Returns a folder's `StepFile`s, sorted by step. Raises `UserError` if a step occurs twice or is too large."""
    files_by_step = {}
    for name in list_names(folder) if is_folder(folder) else ():
        match = re.fullmatch(pattern, name)
        if not match or int(match[2]) < min_steps:
            continue
        try:
            file_status = status(os.path.join(folder, name))
        except FileNotFoundError:  # deleted since the folder was listed
            continue
        if file_status.is_folder:
            continue
        step = step_of(match[2], os.path.join(folder, name))
        file = StepFile(step, os.path.join(folder, match[1]), file_status.modified_ns / 1e9)
        if file.step in files_by_step:
            other = os.path.basename(files_by_step[file.step].path)
            raise UserError(f"{folder}: {other} and {match[1]} both have step {file.step}. Expected one file per step.")
        files_by_step[file.step] = file
    return [files_by_step[step] for step in sorted(files_by_step)]
