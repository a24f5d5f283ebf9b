"""Equivalents of `tf.io.gfile` that need TensorFlow only for addresses such as gs://bucket/file.

Local paths are handled by Python. For local paths and addresses alike, a missing file raises Python's
`FileNotFoundError`.
"""

import collections
import contextlib
import errno
import os
import shutil

from t2t_lite.files.file_errors import translated

Status = collections.namedtuple("Status", "size modified_ns is_folder")
Status.__doc__ = (
    "A file's size in bytes, the time of its last change in nanoseconds since 1970, and whether it is a folder."
)


def is_remote(path):
    """Returns whether a path is an address, such as gs://bucket/file, that only TensorFlow can open."""
    return "://" in path


def _gfile():
    import tensorflow as tf

    return tf.io.gfile


def exists(path):
    """Returns whether a file or a folder exists at a path."""
    if not is_remote(path):
        return os.path.exists(path)
    with translated(path):
        return _gfile().exists(path)


def is_folder(path):
    """Returns whether a folder exists at a path."""
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def status(path):
    """Returns the `Status` of a file or folder."""
    if not is_remote(path):
        stat = os.stat(path)
        return Status(stat.st_size, stat.st_mtime_ns, os.path.isdir(path))
    with _missing_as_in_python(path):
        stat = _gfile().stat(path)
    return Status(stat.length, stat.mtime_nsec, stat.is_directory)


def size(path):
    """Returns a file's size in bytes. Raises `UserError` if the file is missing."""
    with translated(path):
        return status(path).size


def list_names(folder):
    """Returns the names of the files and folders in a folder. Raises `OSError` if there is no such folder."""
    if not is_remote(folder):
        return sorted(os.listdir(folder))
    with _missing_as_in_python(folder):
        return sorted(name.rstrip("/") for name in _gfile().listdir(folder))


def walk(folder):
    """Yields (folder, names of its subfolders, names of its files) for a folder and those below it; follows links."""
    return _gfile().walk(folder) if is_remote(folder) else os.walk(folder, followlinks=True)


def find_files(folder, endings):
    """Returns the sorted paths of the files in a folder, at any depth, whose names have one of the given endings.

    Names that begin with a dot are skipped. Links to folders are followed, except from inside the linked folder.
    """
    paths, above = [], {folder: [_real(folder)]}  # real paths of the folder and of its parent folders
    with translated(folder):
        for where, folders, names in walk(folder):
            way = above.get(where, [])
            inside = {name: _real(os.path.join(where, name)) for name in folders if not name.startswith(".")}
            folders[:] = [name for name in folders if name in inside and inside[name] not in way]
            above |= {os.path.join(where, name): [*way, inside[name]] for name in folders}
            paths += [os.path.join(where, name) for name in names if not name.startswith(".")]
    return sorted(path for path in paths if path.lower().endswith(tuple(endings)))


def _real(path):
    return path if is_remote(path) else os.path.realpath(path)


def create(path, mode="wb"):
    """Opens a binary file for writing ("wb") or appending ("ab"). Raises the errors of Python or TensorFlow."""
    if not is_remote(path):
        return open(path, mode)
    file = _gfile().GFile(path, mode)
    file.write(b"")  # TensorFlow opens the file only now
    file.flush()
    return file


def make_folders(path):
    """Creates a folder and its parents, unless they exist. Raises the errors of Python or TensorFlow."""
    try:
        _gfile().makedirs(path) if is_remote(path) else os.makedirs(path, exist_ok=True)
    except RecursionError:  # Python's makedirs calls itself once per parent folder
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path) from None


def rename(path, new_path):
    """Renames a file, replacing any file of that name. Raises the errors of Python or TensorFlow."""
    if is_remote(path):
        _gfile().rename(path, new_path, overwrite=True)
    else:
        os.replace(path, new_path)


def copy(path, new_path):
    """Copies a file, replacing any file of that name. Raises the errors of Python or TensorFlow."""
    if is_remote(path) or is_remote(new_path):
        _gfile().copy(path, new_path, overwrite=True)
    else:
        shutil.copyfile(path, new_path)


def remove_if_there(path):
    """Removes a file if it exists and can be removed."""
    with contextlib.suppress(OSError):
        if not is_remote(path):
            os.remove(path)
            return
        import tensorflow as tf

        with contextlib.suppress(tf.errors.OpError):
            tf.io.gfile.remove(path)


def remove(path):
    """Removes a file, or a folder with its contents. Raises the errors of Python or TensorFlow."""
    if not is_remote(path):
        (shutil.rmtree if os.path.isdir(path) and not os.path.islink(path) else os.remove)(path)
        return
    with _missing_as_in_python(path):
        (_gfile().rmtree if _gfile().isdir(path) else _gfile().remove)(path)


@contextlib.contextmanager
def _missing_as_in_python(path):
    import tensorflow as tf

    try:
        yield
    except (tf.errors.NotFoundError, tf.errors.FailedPreconditionError) as error:  # FailedPrecondition: not a folder
        code = errno.ENOENT if isinstance(error, tf.errors.NotFoundError) else errno.ENOTDIR
        raise OSError(code, os.strerror(code), path) from None
