"""Whole files through `tf.io.gfile`, written so that a reader never sees half of one."""

import atexit
import contextlib
import errno
import functools
import io
import json
import os
import re
import shutil
import tempfile

from t2t_lite.data.safe_json import parse_json
from t2t_lite.errors import UserError

MOST_BYTES_OF_A_VOCABULARY = 2**28
INCOMPLETE = ".t2t_lite_incomplete"  # ends the names of files while they are written; no file of a user's has it
_MOST_BYTES_OF_JSON = 2**28


def read_bytes(path, most=None):
    """Returns a file's bytes. Raises `UserError` when it is missing, a folder, not readable, or larger than `most`."""
    import tensorflow as tf

    try:
        if tf.io.gfile.isdir(path):
            raise UserError(f"{path}: is a folder. Expected a file.")
        with tf.io.gfile.GFile(path, "rb") as file:
            found = file.read() if most is None else file.read(most + 1)
    except tf.errors.NotFoundError:
        raise UserError(f"{path}: no such file. Check the path.") from None
    except tf.errors.PermissionDeniedError:
        raise UserError(f"{path}: no permission to read it. Change its permissions.") from None
    except tf.errors.OpError as error:
        raise UserError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
    if most is not None and len(found) > most:
        raise UserError(f"{path}: more than {most:,} bytes, which no such file has.")
    return found


def list_files(folder, pattern):
    """Returns the sorted paths in a folder whose names match a regular expression as a whole; [] without that folder.

    Unlike in TensorFlow's globs, no character of the folder's own name has a meaning.
    """
    import tensorflow as tf

    try:
        names = [name.rstrip("/") for name in tf.io.gfile.listdir(folder)]
    except (tf.errors.NotFoundError, tf.errors.FailedPreconditionError):  # FailedPrecondition: it is a file
        return []
    return sorted(os.path.join(folder, name) for name in names if re.fullmatch(pattern, name))


def plain_folder(folder):
    """Returns a path of the same folder that TensorFlow does not take for a pattern.

    Its readers of checkpoints, and its `CheckpointManager` where it deletes them, look for a path by a glob, which has
    no way to quote: in a folder `run [v1]` they find nothing, and in `run[1]` they find the files of `run1`. Such a
    folder is reached through a link, which lasts as long as this process.
    """
    if "://" in folder or not set(os.path.abspath(folder)) & set("*?[\\"):
        return folder
    return _linked(os.path.abspath(folder))


def plain_path(path):
    """Returns a path of the same checkpoint in the `plain_folder` of its folder."""
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
    """Opens a local file to append text, which no other process can until this one closes it or ends; None: one has.

    Raises:
        OSError: it cannot be opened.
    """
    file = open(path, "a")  # noqa: SIM115  (held as long as the lock)
    try:
        import fcntl
    except ImportError:  # on Windows nothing is locked
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def open_stream(path):
    """Returns a buffered, seekable binary file for reading; any file system that `tf.io.gfile` knows.

    Opening never fails: what is wrong with the file is raised by TensorFlow (`tf.errors`) at the first read.
    """
    return io.BufferedReader(_GFileReader(path), buffer_size=1 << 20)


class _GFileReader(io.RawIOBase):
    """A `tf.io.gfile` file for Python's own buffered and unpacking readers."""

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
            raise OSError(errno.EINVAL, "before the file's beginning") from None
        return self._file.tell()

    def tell(self):
        return self._file.tell()

    def close(self):
        self._file.close()
        super().close()


def write_bytes(path, data):
    """Writes a file under a temporary name, then renames it: on a failure the old file is whole."""
    import tensorflow as tf

    temporary = path + INCOMPLETE
    with removed_on_failure(temporary):
        with tf.io.gfile.GFile(temporary, "wb") as file:
            file.write(data)
        tf.io.gfile.rename(temporary, path, overwrite=True)


def write_picture(path, figure):
    """Writes a matplotlib Figure as PNG, as `write_bytes` does."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    write_bytes(path, picture.getvalue())


@contextlib.contextmanager
def removed_on_failure(path):
    """Context that removes a file which it could not finish."""
    import tensorflow as tf

    try:
        yield
    except BaseException:
        with contextlib.suppress(tf.errors.OpError):
            tf.io.gfile.remove(path)
        raise


def read_json(path, schema=dict):
    """Returns the JSON value of a file.

    Args:
        path: str.
        schema: what it must be, see `safe_json.check_schema`; default: any object.

    Raises:
        UserError: it is missing, no JSON or not of that schema.
    """
    return parse_json(read_bytes(path, _MOST_BYTES_OF_JSON), path, _MOST_BYTES_OF_JSON, schema)


def write_json(path, value):
    """Writes indented JSON under a temporary name, then renames it."""
    write_bytes(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def make_folder(path):
    """Makes a folder and its parents. Raises `UserError` when a file is in the way or permission lacks."""
    import tensorflow as tf

    try:
        tf.io.gfile.makedirs(path)
        if not tf.io.gfile.isdir(path):
            raise UserError(f"{path}: is a file. Expected a folder.")
    except tf.errors.PermissionDeniedError:
        raise UserError(f"{path}: no permission to make this folder. Choose another.") from None
    except (tf.errors.FailedPreconditionError, tf.errors.AlreadyExistsError):
        raise UserError(f"{path}: a file is in the way. Expected a folder.") from None
    except tf.errors.NotFoundError:
        raise UserError(f"{path}: this folder cannot be made. Choose another.") from None


def check_writable(path):
    """Raises `UserError` when no file can be written into the folder `path`: before hours of work, not after."""
    import tensorflow as tf

    probe = path.rstrip("/") + "/.t2t_lite_probe"
    try:
        with tf.io.gfile.GFile(probe, "wb") as file:
            file.write(b"0")
        tf.io.gfile.remove(probe)
    except tf.errors.PermissionDeniedError:
        raise UserError(f"{path}: no permission to write here. Choose another folder.") from None
    except tf.errors.ResourceExhaustedError:
        raise OSError(errno.ENOSPC, "No space left on device", path) from None
