"""Pipes, terminals and other devices used in place of files, `--decode_from_file=<(zcat a.gz)`, and links to files."""

import contextlib
import logging
import os
import re
import stat
import threading

from t2t_lite.errors import UserError
from t2t_lite.files.file_errors import translated
from t2t_lite.files.file_system import is_remote

_LOGGER = logging.getLogger("t2t_lite")
# How long the other end of a named pipe may take to be opened; docs/decoding.md states it.
SECONDS_FOR_THE_OTHER_END = 30
_SHARE_IN_SILENCE = 1 / 30  # of that time passes before a message


def is_device(path):
    """Returns whether a path is a pipe, a terminal or a similar device, or an open descriptor; never a folder.

    /dev/stdout may be a file, through the shell's `> file`. It is written in place, because a new file would not be the
    one that the shell has opened.
    """
    if is_remote(path) or not os.path.exists(path) or os.path.isdir(path):
        return False
    return not os.path.isfile(path) or descriptor(path) is not None


def open_device(path, mode):
    """Opens a pipe or a device; waits until the other end of a named pipe is open too.

    Args:
        path: str.
        mode: "rb" or "wb".

    Raises:
        UserError: the other end of a pipe was not opened in time, or permission is missing.
    """
    with translated(path, "read" if mode == "rb" else "write"):
        if mode == "wb" and (target := descriptor(path)):
            process, number = target
            if process == os.getpid():
                return _open_again(number)
            if os.path.isfile(path):
                return open(path, "ab")  # keeps its contents
        if not stat.S_ISFIFO(os.stat(path).st_mode):
            return open(path, mode)
        return _open_pipe(path, mode)


def _open_again(number):
    """Opens a descriptor of this process for writing; opened by its path, a file would be overwritten."""
    os.write(number, b"")  # raises an error if it is open for reading only
    return os.fdopen(os.dup(number), "wb")


def _open_pipe(path, mode):
    results = []

    def open_it():
        try:
            results.append(open(path, mode))  # noqa: SIM115  (the caller closes it)
        except OSError as error:
            results.append(error)

    thread = threading.Thread(target=open_it, daemon=True)
    thread.start()
    try:
        thread.join(_SHARE_IN_SILENCE * SECONDS_FOR_THE_OTHER_END)
        if thread.is_alive():
            does = "writes to" if mode == "rb" else "reads from"
            _LOGGER.info(f"{path}: waiting at most {SECONDS_FOR_THE_OTHER_END} s for a command that {does} this pipe")
            thread.join((1 - _SHARE_IN_SILENCE) * SECONDS_FOR_THE_OTHER_END)
    finally:
        if is_waiting := thread.is_alive():
            _end_waiting(path, mode, thread, results)
    if is_waiting:
        raise UserError(
            f"{path}: no command {'writes to' if mode == 'rb' else 'reads from'} this pipe within "
            f"{SECONDS_FOR_THE_OTHER_END} s. Start the other command first, or name a file."
        )
    (result,) = results
    if isinstance(result, OSError):
        raise result
    return result


def _end_waiting(path, mode, thread, results):
    """Opens the other end for a moment, so that the thread finishes."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, (os.O_WRONLY if mode == "rb" else os.O_RDONLY) | os.O_NONBLOCK))
        thread.join(1)
    for result in results:
        if not isinstance(result, OSError):
            result.close()


_DESCRIPTORS = re.compile(r"/proc/([0-9]+)(?:/task/[0-9]+)?/fd")
_MOST_LINKS = 40  # as in Linux


def descriptor(path):
    """Returns the open descriptor of a process that a path names: /dev/stdout, /dev/fd/3, or a link to one.

    Returns:
        (id of the process, number of the descriptor), or None for any other path.
    """
    for _ in range(_MOST_LINKS):
        if not os.path.islink(path):  # a descriptor is a link itself
            return None
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        if match := _DESCRIPTORS.fullmatch(folder):
            return int(match[1]), int(name)
        path = os.path.join(folder, os.readlink(path))
    return None


def written_path(path):
    """Returns the path under which a file is written: the target of a link, so that the link remains."""
    return os.path.realpath(path) if os.path.islink(path) and not descriptor(path) else path
