"""What `tf.io.gfile` does, for local paths by Python: only addresses such as gs://bucket/file need TensorFlow; hashes.

A missing file is Python's `FileNotFoundError` for both.
"""

import collections
import contextlib
import errno
import functools
import hashlib
import itertools
import os
import shutil

import numpy as np

from t2t_lite import files
from t2t_lite.files.file_errors import translated

Status = collections.namedtuple("Status", "size modified_ns is_folder")
Status.__doc__ = "A file's size in bytes, the time of its last change in ns since 1970, and whether it is a folder."
_PARTS = 64
_BLOCK = 2**20


def is_remote(path):
    """Returns whether a path is an address, such as gs://bucket/file, that only TensorFlow can open."""
    return "://" in path


def _gfile():
    import tensorflow as tf

    return tf.io.gfile


def exists(path):
    """Returns whether there is a file or a folder."""
    if not is_remote(path):
        return os.path.exists(path)
    with translated(path):
        return _gfile().exists(path)


def is_folder(path):
    """Returns whether there is a folder at a path."""
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def status(path):
    """Returns the `Status` of a file or folder."""
    if not is_remote(path):
        found = os.stat(path)
        return Status(found.st_size, found.st_mtime_ns, os.path.isdir(path))
    with _missing_as_in_python(path):
        found = _gfile().stat(path)
    return Status(found.length, found.mtime_nsec, found.is_directory)


def size(path):
    """Returns a file's size in bytes. Raises `UserError` if it is missing."""
    with translated(path):
        return status(path).size


def list_names(folder):
    """Returns the names of the files and folders in a folder. Raises `OSError` where there is no such folder."""
    if not is_remote(folder):
        return sorted(os.listdir(folder))
    with _missing_as_in_python(folder):
        return sorted(name.rstrip("/") for name in _gfile().listdir(folder))


def walk(folder):
    """Yields (folder, names of its folders, names of its files) of a folder and of all in it, links too."""
    return _gfile().walk(folder) if is_remote(folder) else os.walk(folder, followlinks=True)


def find_files(folder, endings):
    """Returns the sorted paths of the files in a folder, at any depth, whose names end in one of some endings.

    Names that begin with a dot are hidden and left out. Links to folders are followed, except back to a folder on the
    way to them.
    """
    found, above = [], {folder: [_real(folder)]}  # the real paths of a folder and of those on the way to it
    with translated(folder):
        for where, folders, names in walk(folder):
            way = above.get(where, [])
            inside = {name: _real(os.path.join(where, name)) for name in folders if not name.startswith(".")}
            folders[:] = [name for name in folders if name in inside and inside[name] not in way]
            above |= {os.path.join(where, name): [*way, inside[name]] for name in folders}
            found += [os.path.join(where, name) for name in names if not name.startswith(".")]
    return sorted(path for path in found if path.lower().endswith(tuple(endings)))


def _real(path):
    return path if is_remote(path) else os.path.realpath(path)


def create(path, mode="wb"):
    """Opens a binary file for writing ("wb") or appending ("ab"). Raises the errors of Python or TensorFlow."""
    if not is_remote(path):
        return open(path, mode)
    file = _gfile().GFile(path, mode)
    file.write(b"")  # opens it
    file.flush()
    return file


def make_folders(path):
    """Creates a folder and its parents, unless they exist. Raises the errors of Python or TensorFlow."""
    try:
        _gfile().makedirs(path) if is_remote(path) else os.makedirs(path, exist_ok=True)
    except RecursionError:  # of Python: one call per parent folder
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
    except (tf.errors.NotFoundError, tf.errors.FailedPreconditionError) as error:  # FailedPrecondition: it is a file
        code = errno.ENOENT if isinstance(error, tf.errors.NotFoundError) else errno.ENOTDIR
        raise OSError(code, os.strerror(code), path) from None


@functools.lru_cache
def file_sha256(path, length, *times):
    """Returns the SHA-256 (hex) of a file; `length` and `times` are cache keys, so that it is read once per run."""
    digest = hashlib.sha256()
    with files.open_stream(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def hash64(text, purpose=""):
    """Returns a number from 0 to 2**64 - 1 that depends only on the text: the same on any machine.

    Args:
        text: str.
        purpose: str; the numbers for different purposes are independent.
    """
    return int.from_bytes(hashlib.blake2b(f"{purpose}\n{text}".encode(), digest_size=8).digest())


class SeenHashes:
    """A set of hashes that needs 8 bytes per hash, and up to 1/64 more while it merges.

    Hashes are split by value into 64 parts. A part consists of sorted arrays. A new array is merged with those that are
    not much larger, so the number of arrays is about the logarithm of the part's size (O'Neil et al. 1996, "The
    log-structured merge-tree").
    """

    def __init__(self):
        self._parts = [[] for _ in range(_PARTS)]
        self._begins = np.arange(1, _PARTS, dtype=np.uint64) << np.uint64(64 - _PARTS.bit_length() + 1)

    def __len__(self):
        return sum(map(len, itertools.chain.from_iterable(self._parts)))

    def add(self, hashes):
        """Adds uint64 [n]; returns bool [n], True for a hash that was added before or occurs earlier in `hashes`."""
        values, places = np.unique(hashes, return_index=True)  # index of each value's first occurrence
        is_new = np.ones(len(values), bool)
        bounds = [0, *np.searchsorted(values, self._begins), len(values)]
        for arrays, (begin, end) in zip(self._parts, itertools.pairwise(bounds), strict=True):
            for array in arrays:
                at = np.searchsorted(array, values[begin:end])
                is_new[begin:end] &= array[np.minimum(at, len(array) - 1)] != values[begin:end]
            _merge_in(arrays, values[begin:end][is_new[begin:end]])
        was_met = np.ones(len(hashes), bool)
        was_met[places[is_new]] = False
        return was_met


def _merge_in(arrays, values):
    """Adds sorted values to a list of sorted arrays, each of which stays at least twice as long as the next."""
    while arrays and len(arrays[-1]) < 2 * len(values):
        values = np.concatenate([arrays.pop(), values])
        values.sort(kind="stable")  # timsort merges the two sorted runs, which radix sort would not notice
    if len(values):
        arrays.append(values)
