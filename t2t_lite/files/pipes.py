"""Supports pipes, terminals, devices and links in place of files, such as `--decode_from_file=<(zcat a.gz)`."""

import contextlib
import os
import re
import stat
import threading

from t2t_lite.errors import LOGGER, UserError
from t2t_lite.files.file_errors import translated
from t2t_lite.files.file_system import is_remote

# Seconds to wait until the other end of a named pipe is opened, as documented in docs/decoding.md.
SECONDS_FOR_THE_OTHER_END = 30
_SHARE_IN_SILENCE = 1 / 30  # fraction of `SECONDS_FOR_THE_OTHER_END` to wait before logging a message


def is_device(path):
    """Returns whether a path is a pipe, a terminal, a similar device or an open descriptor (never a folder).

    /dev/stdout is a file if the shell redirects it with `> file`. This file is written in place, because a new file
    would not replace the file that the shell has opened.
    """
    if is_remote(path) or not os.path.exists(path) or os.path.isdir(path):
        return False
    return not os.path.isfile(path) or descriptor(path) is not None


def open_device(path, mode):
    """Opens a pipe or a device. For a named pipe, waits until the other end has been opened.

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
                return open(path, "ab")  # not "wb", which would delete the file's contents
        if not stat.S_ISFIFO(os.stat(path).st_mode):
            return open(path, mode)
        return _open_pipe(path, mode)


def _open_again(number):
    """Opens a descriptor of this process for writing. Opening the file by its path would truncate the file."""
    os.write(number, b"")  # raises an error if the descriptor is open for reading only
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
            LOGGER.info(f"{path}: waiting at most {SECONDS_FOR_THE_OTHER_END} s for a command that {does} this pipe")
            thread.join((1 - _SHARE_IN_SILENCE) * SECONDS_FOR_THE_OTHER_END)
    finally:
        if is_waiting := thread.is_alive():
            _end_waiting(path, mode, thread, results)
    if is_waiting:
        raise UserError(
            f"{path}: no command {'wrote to' if mode == 'rb' else 'read from'} this pipe within "
            f"{SECONDS_FOR_THE_OTHER_END} s. Start the other command first, or name a file."
        )
    (result,) = results
    if isinstance(result, OSError):
        raise result
    return result


def _end_waiting(path, mode, thread, results):
    """Opens the other end of a pipe for a moment, so that the thread waiting for it finishes."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, (os.O_WRONLY if mode == "rb" else os.O_RDONLY) | os.O_NONBLOCK))
        thread.join(1)
    for result in results:
        if not isinstance(result, OSError):
            result.close()


_DESCRIPTORS = re.compile(r"/proc/([0-9]+)(?:/task/[0-9]+)?/fd")
_MOST_LINKS = 40  # the number of links that Linux follows


def descriptor(path):
    """Finds the open descriptor of a process to which /dev/stdout, /dev/fd/3 or a link to such a path leads.

    Returns:
        (process id, number of the descriptor), or None for any other path.
    """
    for _ in range(_MOST_LINKS):
        if not os.path.islink(path):  # a descriptor is itself a link
            return None
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        if match := _DESCRIPTORS.fullmatch(folder):
            return int(match[1]), int(name)
        path = os.path.join(folder, os.readlink(path))
    return None


def written_path(path):
    """Returns the path to write. For a link this is its target, so that the link is kept."""
    return os.path.realpath(path) if os.path.islink(path) and not descriptor(path) else path
