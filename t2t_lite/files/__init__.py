"""Reads and atomically writes whole files, and checks paths.

Python opens local files. `tf.io.gfile` opens addresses such as gs://bucket/file, and TensorFlow is imported only for
such an address.
"""

import atexit
import contextlib
import errno
import functools
import io
import json
import os
import re
import shutil
import stat
import tempfile

from t2t_lite.errors import UserError
from t2t_lite.files.file_errors import check_name, translated
from t2t_lite.files.file_system import (
    create,
    exists,
    is_folder,
    is_remote,
    list_names,
    make_folders,
    remove_if_there,
    rename,
)
from t2t_lite.files.file_system import find_files as find_files
from t2t_lite.files.file_system import remove as remove
from t2t_lite.files.file_system import size as size
from t2t_lite.files.pipes import written_path
from t2t_lite.files.safe_json import parse_json

PACKERS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}  # {extension: decompressor}
MOST_BYTES_OF_A_VOCABULARY = 2**28
INCOMPLETE = ".t2t_lite_incomplete"  # suffix of files that are being written; users' files do not have this suffix
_MOST_BYTES_OF_JSON = 2**28
# Lustre mounted without -o flock, NFS without a lock service, and some FUSE file systems.
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP}


class NoLocks(UserError):
    """A file system does not support locks."""


def read_bytes(path, most=None):
    """Returns a file's bytes. Raises `UserError` if the file cannot be read or is larger than `most`."""
    with translated(path), open_stream(path) as file:
        parts, size = [], 0
        while (most is None or size <= most) and (part := file.read(2**20)):  # `read(most)` would allocate `most` bytes
            parts.append(part)
            size += len(part)
    if most is not None and size > most:
        raise UserError(f"{path}: the file is larger than {most:,} bytes, the limit for a file of this kind.")
    return b"".join(parts)


def list_files(folder, pattern):
    """Returns the sorted paths in a folder whose names fully match a regular expression; [] if it is missing.

    Unlike in TensorFlow's globs, the folder's name is never treated as a pattern.
    """
    try:
        names = list_names(check_name(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [os.path.join(folder, name) for name in names if re.fullmatch(pattern, name)]


def plain_folder(folder):
    """Returns `folder`, or another path to this folder if TensorFlow would treat `folder` as a pattern.

    TensorFlow's checkpoint readers, and `CheckpointManager` when it deletes files, treat paths as unquoted globs. For
    a folder `run [v1]` they find no files, and for `run[1]` they find the files of `run1`. Such a folder is accessed
    through a link that exists until the process ends.
    """
    return _linked(os.path.abspath(folder)) if is_pattern(folder) else folder


def is_pattern(path):
    """Returns whether TensorFlow's checkpoint readers treat a path as a pattern."""
    return "://" not in path and not set(os.path.abspath(path)).isdisjoint("*?[\\")


def plain_path(path):
    """Returns the path of a checkpoint, with its folder replaced by the folder's `plain_folder`."""
    folder, name = os.path.split(path)
    return os.path.join(plain_folder(folder), name)


@functools.cache
def _linked(folder):
    links = tempfile.mkdtemp(prefix="t2t_lite_")
    atexit.register(shutil.rmtree, links, ignore_errors=True)
    link = os.path.join(links, "folder")
    os.symlink(folder, link)
    return link


def lock_file(path):
    """Opens a local text file for appending and locks it, or returns None if another process holds the lock.

    Raises:
        NoLocks: the file system does not support locks.
        OSError: the file cannot be opened.
    """
    file = open(path, "a")  # noqa: SIM115  (an open file holds the lock)
    try:
        import fcntl
    except ImportError:  # files are not locked on Windows
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if isinstance(error, BlockingIOError):
            return None
        if error.errno in _NO_LOCKS:
            text = f"{path}: this file system does not support locks. Choose a folder on another disk."
            raise NoLocks(text) from None
        raise
    return file


def open_stream(path):
    """Opens a file on any file system that `tf.io.gfile` supports, and returns a buffered, seekable binary stream.

    Raises:
        UserError: the path is missing or unreadable, or is a folder, pipe, socket or device. For a remote address,
            the first read may raise one of `tf.errors` instead.
    """
    with translated(path):
        if is_remote(path):
            return io.BufferedReader(_GFileReader(path), buffer_size=1 << 20)
        if kind := _KINDS.get(stat.S_IFMT(os.stat(path).st_mode)):
            raise UserError(
                f"{path}: is a {kind}. Expected a regular file, because the command reads it more than once."
            )
        return open(path, "rb", buffering=1 << 20)


_KINDS = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


class _GFileReader(io.RawIOBase):
    """Wraps a `tf.io.gfile` file as a raw stream for Python's buffered and decompressing readers."""

    def __init__(self, path):
        import tensorflow as tf

        self._file = tf.io.gfile.GFile(path, "rb")

    def readable(self):
        return True

    def seekable(self):
        return True

    def readinto(self, buffer):
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset, whence=io.SEEK_SET):
        import tensorflow as tf

        try:
            self._file.seek(offset, whence)
        except tf.errors.InvalidArgumentError:
            raise OSError(errno.EINVAL, "the position is before the beginning of the file") from None
        return self._file.tell()

    def tell(self):
        return self._file.tell()

    def close(self):
        self._file.close()
        super().close()


@contextlib.contextmanager
def replacing(path):
    """Context manager that yields a temporary path; renames the file there to `path`, or removes it after an error.

    A reader therefore never sees a partial file, and a failure leaves the old file intact.
    """
    temporary = check_name(path) + INCOMPLETE
    try:
        yield temporary
        with translated(path, "write"):
            rename(temporary, path)
    except BaseException:
        remove_if_there(temporary)
        raise


def write_bytes(path, data, seconds=None):
    """Writes a whole file atomically: see `replacing`.

    Args:
        path: str.
        data: bytes.
        seconds: float, the modification time to set for a local file, in seconds since 1970, or None for the current
            time.

    Raises:
        UserError: the file cannot be written.
        Failure: the disk is full or has failed.
    """
    with translated(path, "write"), replacing(path) as temporary:
        with create(temporary) as file:
            file.write(data)
        if seconds is not None and not is_remote(path):
            os.utime(temporary, (seconds, seconds))


def copy_files(paths, folder):
    """Copies files into a folder, each atomically.

    Args:
        paths: {path of the copy, relative to `folder`: path of the original}.
        folder: str, an existing folder.
    """
    for name, path in paths.items():
        copy = os.path.join(folder, name)
        if os.path.dirname(name):
            make_folder(os.path.dirname(copy))
        write_bytes(copy, read_bytes(path))


def read_json(path, schema=dict, most=_MOST_BYTES_OF_JSON):
    """Returns the JSON value of a file.

    Args:
        path: str.
        schema: the value's expected form, see `safe_json.check_schema`; by default any object.
        most: int, the largest number of bytes.

    Raises:
        UserError: the file is missing, is too large, is not JSON, or does not match the schema.
    """
    return parse_json(read_bytes(path, most), path, schema)


def write_json(path, value):
    """Writes a value as indented JSON, atomically."""
    write_bytes(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def make_folder(path):
    """Creates a folder and its parents. Raises `UserError` if a file is in the way or permission is missing."""
    with translated(path, "write"):
        try:
            make_folders(path)
        except (FileExistsError, NotADirectoryError):
            raise _in_the_way(path) from None


def check_is_no_file(path):
    """Raises `UserError` if the path of an output folder is a file."""
    if exists(path) and not is_folder(path):
        raise _in_the_way(path)


def _in_the_way(path):
    return UserError(f"{path}: a file is in the way. Expected a folder. Rename the file, or choose another folder.")


def check_writable(path):
    """Raises `UserError` if files cannot be written into the folder `path`. Call it before a long computation."""
    probe = path.rstrip("/") + "/.t2t_lite_probe"
    try:
        with translated(path, "write"), create(probe) as file:
            file.write(b"0")
    finally:
        remove_if_there(probe)


def check_outputs(inputs, outputs):
    """Raises `UserError` if an output is a folder, or would replace an input or another output.

    Call this function before any work. Two paths count as the same if they lead to the same file, even through links,
    hard links or different spellings. Pipes, terminals, /dev/null and inputs may occur more than once.

    Args:
        inputs: {name in messages, such as "--source" or "standard input": path, or list of paths}. None and "" are
            ignored; "-" is standard input.
        outputs: the same for the outputs, where "-" is standard output. `<path>.t2t_lite_incomplete` and
            `<path>.t2t_lite_incomplete.json`, which are used while an output is written, must not be inputs either.
    """
    input_names = {}
    for name, path in _named_paths(inputs):
        with translated(path):
            input_names.setdefault(_identity(path, 0), _title(name, path))
    output_names = {}
    for name, path in _named_paths(outputs):
        if path != "-" and is_folder(path):
            raise UserError(f"{path}: is a folder. Expected a file to write.")
        for suffix in ("",) if path == "-" else ("", INCOMPLETE, f"{INCOMPLETE}.json"):
            with translated(path, "write"):
                identity = _identity(path if path == "-" else written_path(path) + suffix, 1)
            if identity is None:  # a pipe, terminal or other device, which cannot overwrite a file
                break
            through = f", which uses {path}{suffix} while it is written," if suffix else ""
            if identity in input_names:
                raise UserError(
                    f"{_title(name, path)}{through} would overwrite {input_names[identity]}, which is an input. Choose "
                    "another output."
                )
            if identity in output_names:
                raise UserError(
                    f"{_title(name, path)}{through} is the same file as {output_names[identity]}. Expected one file "
                    "for each output."
                )
            output_names[identity] = _title(name, path)


def _title(name, path):
    return f"{name}={path}" if name.startswith("--") else name if path == "-" else f"{name} {path}"


def _named_paths(paths):
    for name, value in paths.items():
        yield from ((name, path) for path in ([value] if isinstance(value, str) else value or ()) if path)


def _identity(path, stream):
    """Returns a value that is equal for all paths to the same file or folder; None if a path may occur repeatedly."""
    if is_remote(path):
        return path
    try:
        status = os.fstat(stream) if path == "-" else os.stat(check_name(path))
    except OSError:
        return None if path == "-" else os.path.realpath(path)
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return status.st_dev, status.st_ino
    return "-" if path == "-" and stream == 1 else None
