"""Reads plain text, one sentence per line, from single or parallel files, and reports unreadable lines.

A line ends at LF (or CR LF) and nowhere else, so U+2028 and similar characters do not split lines. Control characters
become spaces. Files compressed with gzip, bzip2, xz or zstd are decompressed while reading, whatever their names. All
paths may be on any file system that `tf.io.gfile` supports. A source is the path of a file, or a member of an archive
(`archives.Member`).
"""

import codecs
import contextlib
import itertools
import lzma
import os
import re
import zlib

from t2t_lite import files
from t2t_lite.corpora import archives, encodings
from t2t_lite.errors import LOGGER, UserError
from t2t_lite.files.file_errors import translated
from t2t_lite.files.pipes import is_device, open_device

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Matches a byte that "surrogateescape" has decoded, and half of a surrogate pair, which UTF-8 cannot encode.
SURROGATE = re.compile("[\ud800-\udfff]")
_BYTE_ORDER_MARK = "\ufeff"
_AT_END = object()
_PART = 2**16  # number of bytes of a line that are read at a time
# maximum length of a line in bytes, since a small archive can contain a line that does not fit into memory
LONGEST_LINE = 2**24
_SHOWN = 5
REASON = "bad lines"


def read_lines(path, on_bad_line=None, keeps_bad=False):
    """Yields the lines of a text file, without line ends.

    Args:
        path: path of the file, or another source with an `open()` method, such as `archives.Member`.
        on_bad_line: None, or a function called with a message about each line that is not UTF-8; such a line is yielded
            as None.
        keeps_bad: bool, whether such a line is yielded without a message instead, so that the caller reports what it is
            part of. Each byte that is not UTF-8 becomes a character that `SURROGATE` matches.

    Raises:
        UserError: the file does not exist, is unreadable, empty or damaged, or is not UTF-8 (the message names the
            line, and says whether the whole file has another encoding: see `encodings`).
    """
    number = valid = bad = 0
    errors = "surrogateescape" if on_bad_line and keeps_bad else "strict"
    with naming_errors(path), open_binary(path) as file:
        encodings.check_head(path, file.peek(encodings.HEAD))
        for number, raw in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
            if len(raw) > LONGEST_LINE:
                raise too_long(path, number)
            try:
                line = raw.rstrip(b"\n").removesuffix(b"\r").decode("utf-8", errors)
            except UnicodeDecodeError as error:
                _answer_bad_line(on_bad_line, encodings.not_utf8(path, number, error), bad, valid, file)
                bad += 1
                yield None
                continue
            valid += not raw.isascii()
            yield line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
    if not number:
        raise UserError(f"{path}: the file is empty. Expected one sentence per line.")


def read_text(path, on_bad_line=None, keeps_bad=False):
    """Yields the lines of a file with their line ends (CR LF becomes LF), and very long lines in parts.

    Args:
        path: see `read_lines`.
        on_bad_line: None, or a function called with a message about each line that is not UTF-8. Such a line is
            skipped. If the line is very long, the parts before the one with the first invalid byte are still yielded.
        keeps_bad: see `read_lines`.

    Raises:
        UserError: see `read_lines`, except that lines may have any length.
    """
    errors = "surrogateescape" if on_bad_line and keeps_bad else "strict"
    number, decoder, text, carriage_return = 1, codecs.getincrementaldecoder("utf-8")(errors), "", b""
    valid = bad = 0
    begin, rest = 0, None  # `begin`: a part's offset in its line; `rest`: what replaces the rest of a bad line
    with naming_errors(path), open_binary(path) as file:
        encodings.check_head(path, file.peek(encodings.HEAD))
        for raw in itertools.chain(iter(lambda: file.readline(_PART), b""), [b""]):
            part = carriage_return + raw
            carriage_return = b"\r" if raw.endswith(b"\r") else b""  # an LF after this CR may be in the next part
            part = part.removesuffix(carriage_return)
            # the bytes to decode begin with an incomplete character from the previous part, if there is one
            first = begin - len(decoder.getstate()[0])
            line = ""
            try:
                if rest is None:
                    line = decoder.decode(part.replace(b"\r\n", b"\n"), final=not raw)
            except UnicodeDecodeError as error:
                _answer_bad_line(on_bad_line, encodings.not_utf8(path, number, error, first), bad, valid, file)
                bad += 1
                decoder.reset()
                rest, text = "\n" if begin else "", text or "\n"
            valid += not raw.isascii()
            ends = raw.endswith(b"\n")
            if rest and ends:
                line = rest
            if line:
                yield line.removeprefix("" if text else _BYTE_ORDER_MARK)
            begin = 0 if ends else begin + len(part)
            number, text, rest = number + ends, text or line, None if ends else rest
    if not text:
        raise UserError(f"{path}: the file is empty. Expected text.")


def _answer_bad_line(on_bad_line, message, bad, valid, file):
    """Reports a line that is not UTF-8, with advice for the first such line; raises if `on_bad_line` is None."""
    if not bad:
        following = file.peek(1).split(b"\n")[:-1]  # the last line in the buffer may be incomplete
        message = f"{message} {encodings.advice(valid, following)}"
    report(message, on_bad_line)


def too_long(name, number):
    """Returns the error for a line of more than `LONGEST_LINE` bytes; `number` is the line's number."""
    return UserError(f"{name}, line {number}: more than {LONGEST_LINE:,} bytes. Expected one sentence per line.")


def clean(line):
    """Replaces control characters and line separators in a line with spaces, and strips surrounding spaces."""
    # Most lines contain only printable characters. This test is ten times as fast as the replacement.
    return line.strip() if line.isprintable() else CONTROL.sub(" ", line).strip()


def read_pairs(inputs_path, targets_path, on_bad_line=None):
    """Returns an iterator of {"inputs": str, "targets": str} from two parallel files: see `numbered_pairs`."""
    return (pair for _, pair in numbered_pairs(inputs_path, targets_path, on_bad_line))


def numbered_pairs(inputs_path, targets_path, on_bad_line=None):
    """Yields (line number, {"inputs": str, "targets": str}) from two parallel files.

    Args:
        inputs_path, targets_path: see `read_lines`.
        on_bad_line: None, or a function called with a message about each line that is not UTF-8; the pair is skipped.

    Raises:
        UserError: see `read_lines`; also if one file has more lines than the other (the message gives both counts).
    """
    sides = read_lines(inputs_path, on_bad_line), read_lines(targets_path, on_bad_line)
    for number, inputs, targets in numbered(sides, (inputs_path, targets_path)):
        if inputs is not None and targets is not None:
            yield number, {"inputs": clean(inputs), "targets": clean(targets)}


def numbered(sides, paths, unit="lines"):
    """Yields (number, item of the inputs, item of the targets). Raises `UserError` if one side has more items.

    Args:
        sides: two iterators, over the items of the inputs file and of the targets file.
        paths: the files, for the message, which gives both counts.
        unit: str, what the items are called.
    """
    for number, items in enumerate(itertools.zip_longest(*sides, fillvalue=_AT_END), 1):
        if _AT_END in items:
            shorter = items.index(_AT_END)
            count = number + sum(1 for _ in sides[1 - shorter])
            raise UserError(
                f"{paths[1 - shorter]} has {count:,} {unit}, but {paths[shorter]} has {number - 1:,}. Expected the "
                "same number in both files, where each line translates the line with the same number."
            )
        yield number, *items


def without_packing(path):
    """Returns the path without `.gz`, `.bz2`, `.xz` or `.zst`, ignoring case."""
    base, extension = os.path.splitext(path)
    return base if extension.lower() in files.PACKERS else path


def kind(source):
    """Returns the lower-case extension of a source's name, without the extension of its compression."""
    return os.path.splitext(without_packing(str(source)))[1].lower()


def open_binary(source):
    """Opens a path or archive member as a buffered binary file (a context manager), decompressed if necessary.

    The compression is detected from the first bytes, regardless of the name. A path may also be that of a pipe, such as
    one from bash's <(zcat file), which can be read only once.
    """
    if not isinstance(source, str):
        return source.open()
    file = open_device(source, "rb") if is_device(source) else files.open_stream(source)
    return archives.unpacked_if_packed(file, source)


@contextlib.contextmanager
def naming_errors(path):
    """Context manager that turns errors while reading a file into `UserError`s that name the file."""
    try:
        with translated(str(path)):
            yield
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        packing = os.path.splitext(str(path))[1].lower()
        # the first bytes show that the file is compressed
        other_cause = f" or not {packing[1:]}" if packing in files.PACKERS else ""
        raise UserError(f"{path}: damaged{other_cause} ({error}). Copy it again.") from None


def as_field(text):
    """Makes a model's output fit one field of a line: control characters and line separators become spaces.

    A byte piece of the vocabulary may be a tab or a line end, and some programs treat characters such as U+2028 as line
    ends.
    """
    return CONTROL.sub(" ", text)


def report(message, on_bad_line):
    """Passes a message to a reader's `on_bad_line`; raises it as a `UserError` if the callback is None."""
    if on_bad_line is None:
        raise UserError(message) from None
    on_bad_line(message)


class FewWarnings:
    """Logs the first few of many warnings, each only once, even if a file is read several times.

    Args:
        last: str, the final warning, which says that further warnings are not shown.
    """

    def __init__(self, last):
        self._last, self._shown = last, set()

    def __call__(self, message):
        """Logs a message unless it was logged before or the limit is reached."""
        if message not in self._shown and len(self._shown) < _SHOWN:
            self._shown.add(message)
            LOGGER.warning(message)
            if len(self._shown) == _SHOWN:
                LOGGER.warning(self._last)


class BadLines:
    """An `on_bad_line` callback that counts every bad line and logs a warning for the first few.

    Args:
        removed: Counter in which bad lines are counted.
    """

    def __init__(self, removed):
        self._removed, self._warn = removed, FewWarnings("further skipped lines are only counted")

    def __call__(self, message):
        """Counts a bad line; `message` says which line it is and what is wrong with it."""
        self._removed[REASON] += 1
        self._warn(f"{message} Left out.")
