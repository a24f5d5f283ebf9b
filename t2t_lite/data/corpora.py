"""Plain text in lines: one sentence a line, two files that go together or one of two columns.

A line ends at LF (or CR LF), and nowhere else: U+2028 and its like do not split one. Control characters become blanks.
Files ending in `.gz`, `.bz2` and `.xz` are unpacked while reading; every path goes through `tf.io.gfile`.
"""

import bz2
import contextlib
import gzip
import io
import itertools
import lzma
import os
import re
import zlib

from t2t_lite.errors import UserError

_UNPACK = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_BYTE_ORDER_MARK = "\ufeff"


def read_lines(path):
    """Yields the lines of a text file, without their ends.

    Raises:
        UserError: no such file, not readable, empty, damaged, or not UTF-8 (the line is named).
    """
    number = 0
    with _naming_errors(path), _open(path) as file:
        for number, raw in enumerate(file, 1):
            try:
                line = raw.rstrip(b"\n").removesuffix(b"\r").decode("utf-8")
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{path}, line {number}: byte 0x{error.object[error.start]:02x} at position {error.start} is not "
                    "UTF-8. Convert the file, for example: iconv -f latin1 -t utf-8"
                ) from None
            yield line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
    if not number:
        raise UserError(f"{path}: the file is empty. Expected one sentence a line.")


def clean(line):
    """Returns the line with control characters and line separators as blanks, and none at its ends."""
    return _CONTROL.sub(" ", line).strip() if _CONTROL.search(line) else line.strip()


def read_pairs(inputs_path, targets_path):
    """Yields {"inputs": str, "targets": str} from two files whose lines go together.

    Raises:
        UserError: as `read_lines`; or one file has more lines: both counts are named.
    """
    sides = read_lines(inputs_path), read_lines(targets_path)
    for number, (inputs, targets) in enumerate(itertools.zip_longest(*sides), 1):
        if inputs is None or targets is None:
            longer, shorter = (targets_path, inputs_path) if inputs is None else (inputs_path, targets_path)
            count = number + sum(1 for _ in sides[inputs is None])
            raise UserError(
                f"{longer} has {count:,} lines, {shorter} has {number - 1:,}. Expected as many: each line of one is "
                "the translation of the same line of the other."
            )
        yield {"inputs": clean(inputs), "targets": clean(targets)}


def read_tsv(path, inputs_column=0, targets_column=1, num_columns=2):
    """Yields {"inputs": str, "targets": str} from two tab-separated columns.

    Args:
        path: of the file.
        inputs_column: number of the column, from 0.
        targets_column: number of the column, from 0.
        num_columns: how many each line must have; None: any number that reaches the two.

    Raises:
        UserError: as `read_lines`; or a line with another number of columns. Blank lines are left out.
    """
    needed = max(inputs_column, targets_column) + 1
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if not line.strip():
            continue
        if len(columns) < needed or len(columns) != (num_columns or len(columns)):
            raise UserError(
                f"{path}, line {number}: {len(columns)} column{'s' * (len(columns) != 1)}. "
                f"Expected {num_columns or f'at least {needed}'}, separated by one tab."
            )
        yield {"inputs": clean(columns[inputs_column]), "targets": clean(columns[targets_column])}


def read_corpus(paths):
    """Yields the pairs of one `.tsv` file (packed or not), or of two files of lines."""
    return read_tsv(*paths) if len(paths) == 1 else read_pairs(*paths)


def read_members(folder, members, url=""):
    """Yields the pairs of one entry of tensor2tensor's `source_data_files`.

    Args:
        folder: where the files are looked for, under their own names.
        members: (inputs file, targets file), or ("tsv", inputs column, targets column, file).
        url: where the files come from; named in the error when they are missing.

    Raises:
        UserError: a file is not there, or as `read_pairs` and `read_tsv`.
    """
    import tensorflow as tf

    is_tsv = members[0] == "tsv"
    paths = [os.path.join(folder, name) for name in (members[3:] if is_tsv else members)]
    missing = [path for path in paths if not tf.io.gfile.exists(path)]
    if missing:
        origin = f" Get it from {url} and unpack it there." if url else ""
        raise UserError(f"{missing[0]}: no such file.{origin}")
    return read_tsv(paths[0], int(members[1]), int(members[2]), None) if is_tsv else read_pairs(*paths)


def without_packing(path):
    """Returns the path without `.gz`, `.bz2` or `.xz`."""
    base, extension = os.path.splitext(path)
    return base if extension in _UNPACK else path


class _GFileReader(io.RawIOBase):
    """A `tf.io.gfile` file for Python's own buffered and unpacking readers."""

    def __init__(self, path):
        import tensorflow as tf

        self._file = tf.io.gfile.GFile(path, "rb")

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self):
        self._file.close()
        super().close()


def _open(path):
    file = io.BufferedReader(_GFileReader(path), buffer_size=1 << 20)
    unpack = _UNPACK.get(os.path.splitext(path)[1])
    return contextlib.closing(unpack(file, "rb")) if unpack else file


@contextlib.contextmanager
def _naming_errors(path):
    """Turns the many ways in which reading fails into `UserError`s that name the file."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.NotFoundError:
        raise UserError(f"{path}: no such file. Check the path.") from None
    except tf.errors.PermissionDeniedError:
        raise UserError(f"{path}: no permission to read it. Change its permissions.") from None
    except tf.errors.FailedPreconditionError:
        raise UserError(f"{path}: is a folder. Expected a file.") from None
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise UserError(f"{path}: damaged or not {os.path.splitext(path)[1][1:]} ({error}). Copy it again.") from None
