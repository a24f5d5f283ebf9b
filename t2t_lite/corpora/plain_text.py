"""Plain text with one sentence per line, in two parallel files or in one file of two columns.

A line ends at LF (or CR LF) and nowhere else, so U+2028 and the like do not split lines. Control characters become
spaces. Files ending in `.gz`, `.bz2` and `.xz` are decompressed while reading. Every path goes through `tf.io.gfile`. A
source is the path of a file, or a member of an archive (`archives.Member`).
"""

import codecs
import contextlib
import itertools
import lzma
import os
import re
import zlib

from t2t_lite import files
from t2t_lite.corpora import archives
from t2t_lite.errors import UserError
from t2t_lite.files.file_errors import translated

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_BYTE_ORDER_MARK = "\ufeff"
_PART = 2**16  # bytes of a long line that are read at once
LONGEST_LINE = 2**24  # bytes; a line is held in memory, and a small archive can contain a huge one


def read_lines(path, on_bad_line=None):
    """Yields the lines of a text file, without line ends.

    Args:
        path: path of the file, or another source with an `open()` like that of `archives.Member`.
        on_bad_line: None, or a function that gets a message about each line that is not UTF-8; such a line is yielded
            as "".

    Raises:
        UserError: the file does not exist, is unreadable, empty or damaged, or is not UTF-8 (the message names the
            line).
    """
    number = 0
    with _naming_errors(path), open_binary(path) as file:
        for number, raw in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
            if len(raw) > LONGEST_LINE:
                raise too_long(path, number)
            try:
                line = raw.rstrip(b"\n").removesuffix(b"\r").decode("utf-8")
            except UnicodeDecodeError as error:
                message = not_utf8(path, number, error)
                if on_bad_line is None:
                    raise UserError(message) from None
                on_bad_line(message)
                line = ""
            yield line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
    if not number:
        raise UserError(f"{path}: the file is empty. Expected one sentence per line.")


def read_text(path):
    """Yields the text of a file: its lines with their ends, very long ones in parts; CR LF becomes LF.

    Raises:
        UserError: as `read_lines`, but a line may have any length.
    """
    number, decoder, text, held = 1, codecs.getincrementaldecoder("utf-8")(), "", b""
    begin = 0  # of the part, in bytes of its line
    with _naming_errors(path), open_binary(path) as file:
        for raw in itertools.chain(iter(lambda: file.readline(_PART), b""), [b""]):
            part = held + raw
            held = b"\r" if raw.endswith(b"\r") else b""  # the LF may be in the next part
            part = part.removesuffix(held)
            first = begin - len(decoder.getstate()[0])  # with what there is of a character
            try:
                line = decoder.decode(part.replace(b"\r\n", b"\n"), final=not raw)
            except UnicodeDecodeError as error:
                raise UserError(not_utf8(path, number, error, first)) from None
            if line:
                yield line.removeprefix("" if text else _BYTE_ORDER_MARK)
            begin = 0 if raw.endswith(b"\n") else begin + len(part)
            number, text = number + raw.endswith(b"\n"), text or line
    if not text:
        raise UserError(f"{path}: the file is empty. Expected text.")


def too_long(name, number):
    """Returns the error for line `number` of the text `name`, which has more than `LONGEST_LINE` bytes."""
    return UserError(f"{name}, line {number}: more than {LONGEST_LINE:,} bytes. Expected one sentence per line.")


def not_utf8(name, number, error, begin=0):
    """Returns the message for line `number` of the text `name` and the UnicodeDecodeError of its bytes from `begin`."""
    at = error.start
    return (
        f"{name}, line {number}: byte 0x{error.object[at]:02x} at position {begin + at} is not UTF-8. "
        "Convert the text, for example: iconv -f latin1 -t utf-8"
    )


def clean(line):
    """Returns the line with control characters and line separators as spaces, and without surrounding spaces."""
    # Most lines are printable, which is ten times as fast to test.
    return line.strip() if line.isprintable() else CONTROL.sub(" ", line).strip()


def read_pairs(inputs_path, targets_path):
    """Yields {"inputs": str, "targets": str} from two parallel files.

    Raises:
        UserError: as `read_lines`, or if one file has more lines; the message gives both counts.
    """
    sides = read_lines(inputs_path), read_lines(targets_path)
    for number, (inputs, targets) in enumerate(itertools.zip_longest(*sides), 1):
        if inputs is None or targets is None:
            raise unequal(inputs_path, targets_path, inputs is None, number, sides)
        yield {"inputs": clean(inputs), "targets": clean(targets)}


def unequal(inputs_path, targets_path, is_inputs_shorter, number, sides, unit="lines"):
    """Returns the error for two files of which one ends before line `number`; counts the rest of the other."""
    longer, shorter = (targets_path, inputs_path) if is_inputs_shorter else (inputs_path, targets_path)
    count = number + sum(1 for _ in sides[is_inputs_shorter])
    return UserError(
        f"{longer} has {count:,} {unit}, {shorter} has {number - 1:,}. Expected equally many, each the "
        "translation of the one with the same number."
    )


def read_tsv(path, inputs_column=0, targets_column=1, num_columns=2):
    """Yields {"inputs": str, "targets": str} from two tab-separated columns.

    Args:
        path: path of the file.
        inputs_column: index of the inputs' column, from 0.
        targets_column: index of the targets' column, from 0.
        num_columns: required number of columns per line; None: any number that includes the two.

    Blank lines are skipped.

    Raises:
        UserError: as `read_lines`, or if a line has another number of columns.
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
    """Yields the pairs of one `.tsv` file, which may be compressed, or of two parallel files."""
    return read_tsv(*paths) if len(paths) == 1 else read_pairs(*paths)


def without_packing(path):
    """Returns the path without `.gz`, `.bz2` or `.xz`."""
    base, extension = os.path.splitext(path)
    return base if extension in files.PACKERS else path


def open_binary(source):
    """Returns a binary file, a context manager, that reads a source decompressed."""
    if not isinstance(source, str):
        return source.open()
    file = files.open_stream(source)
    packing = os.path.splitext(source)[1]
    return archives.unpacked(file, packing) if packing in files.PACKERS else file


@contextlib.contextmanager
def _naming_errors(path):
    """Turns the errors of reading into `UserError`s that name the file."""
    try:
        with translated(str(path)):
            yield
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        packing = os.path.splitext(str(path))[1][1:]
        raise UserError(f"{path}: damaged or not {packing} ({error}). Copy it again.") from None
