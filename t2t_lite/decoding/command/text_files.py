"""Reads the lines to translate from a file or a stream, and formats the output lines."""

import contextlib
import functools
import itertools
import json
import os
import re
import sys

from t2t_lite import files, registry
from t2t_lite.cli import console
from t2t_lite.corpora import encodings, plain_text, wmt_files
from t2t_lite.corpora.cells import CSV, JSON_LINES
from t2t_lite.errors import LOGGER, UserError
from t2t_lite.files.file_errors import translated
from t2t_lite.files.pipes import is_device, open_device, written_path

# Characters that some programs treat as line ends, although JSON does not escape them.
_NOT_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES_AHEAD = 256
_BLOCK = 2**20  # bytes per read


def input_lines(path, delimiter="\n", on_bad_line=None, side=wmt_files.SOURCE):
    """Reads a file's lines as a list of str, which is [] for an empty text file.

    In WMT's test sets (.sgm, .xml), each segment is a line. In text files, lines end only at LF or CR LF. If another
    delimiter is given, records end at the delimiter, and an empty record at the end is dropped. All lines are checked
    before any line is translated.

    Args:
        path: str.
        delimiter: str.
        on_bad_line: None, or a function that is called with a message for each line that is not UTF-8. In the list,
            such a line is None.
        side: str, the side of a test set to read, see `wmt_files`.

    Raises:
        UserError: the file is missing, unreadable or damaged, or a line is not UTF-8 (the message gives the
            line's number).
    """
    if wmt_files.is_test_set(path):
        return wmt_files.read_side(path, side, on_bad_line)
    if plain_text.kind(path) in (CSV, *JSON_LINES):
        LOGGER.warning(f"{path}: its rows are read as plain text. Expected a file with one text per line.")
    with plain_text.naming_errors(path), plain_text.open_binary(path) as file:
        blocks = iter(functools.partial(file.read, _BLOCK), b"")
        return list(itertools.chain.from_iterable(_records(blocks, path, delimiter, on_bad_line)))


def output_line(translation, settings):
    """Returns the output line of a translation, without its line end.

    Args:
        translation: Translation.
        settings: DecodeHParams; write_beam_scores, identity_output and delimiter are used.
    """
    fields = []
    for hypothesis in translation.hypotheses:
        text = " ".join(map(str, hypothesis.ids)) if settings.identity_output else hypothesis.text
        fields.append(as_field(text, settings.delimiter))
        if settings.write_beam_scores:
            fields.append(f"{hypothesis.score:.2f}")
    return "\t".join(fields)


def as_field(text, delimiter):
    """Makes a text fit one field of a record: control characters, line separators and delimiters become spaces."""
    return plain_text.as_field(text).replace(delimiter, " ")


def described(hypothesis, has_ids=False):
    """Returns a `Hypothesis` as a JSON object, with its ids if `has_ids` is True."""
    return {
        "text": hypothesis.text,
        "score": round(hypothesis.score, 6),
        "ended": hypothesis.ended,
        **({"ids": hypothesis.ids} if has_ids else {}),
        "tokens": hypothesis.tokens,
        "token_scores": [round(score, 6) for score in hypothesis.token_scores or ()],
        **({"lost": hypothesis.lost} if hypothesis.lost else {}),
    }


def json_line(number, line, translation, describe=described):
    """Returns one line of JSON with the line's number, its text, and all hypotheses with their tokens and scores.

    Args:
        number: int, from 1.
        line: str, the input, or None if it is not UTF-8.
        translation: LineAnswer.
        describe: function that returns a hypothesis as a JSON object.
    """
    fields = {"line": number, "input": line}
    if translation.parts != 1:
        fields |= {"parts": translation.parts} if translation.parts else {"skipped": True}
    fields |= {"truncated": True} if translation.truncated else {}
    fields |= {"short": True} if translation.is_short else {}
    fields["hypotheses"] = list(map(describe, translation.hypotheses))
    return json_text(fields)


def json_text(value):
    """Returns a value as JSON without characters that a program may treat as a line end."""
    return _NOT_ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def rounded(value):
    """Rounds all floats in a JSON value to six decimals."""
    match value:
        case float():
            return round(value, 6)
        case dict():
            return {key: rounded(one) for key, one in value.items()}
        case list() | tuple():
            return [rounded(one) for one in value]
    return value


@contextlib.contextmanager
def output_file(path):
    """Opens a file for writing text. The file appears only when it is complete, and never after an error.

    Args:
        path: str, where - is standard output, which is flushed after every text. If the path is a link, its target is
            written.

    Yields:
        A function that writes a text to the file.

    Raises:
        UserError: the file cannot be written (raised on entry).
    """
    if path == "-":
        yield _print
        return
    path = written_path(path)
    is_open_device = is_device(path)  # renaming a file would replace the link or device
    with contextlib.nullcontext() if is_open_device else files.replacing(path) as temporary:
        with translated(path, "write"):
            if os.path.isdir(path):
                raise UserError(f"{path}: is a folder. Expected the name of a file to write.")
            file = open_device(path, "wb") if is_open_device else files.create(temporary)

        def write(text):
            data = text.encode("utf-8")
            with translated(path, "write"):
                file.write(data)
                if is_open_device:  # flush, since a reader may be waiting for this text
                    file.flush()

        try:
            yield write
            with translated(path, "write"):
                file.close()
        finally:
            with contextlib.suppress(OSError):  # on a full disk, closing the file fails again
                file.close()


def _print(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def stdin_lines(delimiter="\n", on_bad_line=None):
    """Yields (number of the first line, lines) from standard input: all available lines, at most 256 at a time.

    With 256 lines, batches are full but waiting times are short. For arguments and errors see `stream_lines`.
    """
    first = 1
    for lines in stream_lines(console.descriptor(), "standard input", delimiter, on_bad_line):
        for start in range(0, len(lines), _LINES_AHEAD):
            yield first + start, lines[start : start + _LINES_AHEAD]
        first += len(lines)


def stream_lines(descriptor, name, delimiter="\n", on_bad_line=None):
    """Yields lists of complete lines as they become available: single lines from a slow writer, many from a fast one.

    Args:
        descriptor: int, the file descriptor to read from.
        name: str, the name of the input in error messages.
        delimiter: str, the end of a line; a CR before LF is removed with it.
        on_bad_line: see `input_lines`.

    Raises:
        UserError: a line is not UTF-8; all lines before it have been yielded.
    """

    def read():
        with translated(name):
            return os.read(descriptor, _BLOCK)

    return _records(iter(read, b""), name, delimiter, on_bad_line)


def _records(blocks, name, delimiter, on_bad_line):
    """Yields a list of records for each block of bytes in which a record ends: see `stream_lines`."""
    number = valid = bad = 0
    first = next(blocks, b"")
    encodings.check_head(name, first, has_lines=delimiter == "\n")
    blocks = itertools.chain([first], blocks)
    blocks = blocks if "\r" in delimiter else _with_lf(blocks)
    for complete in _complete(blocks, name, delimiter.encode()):
        lines, error = [], None
        if number == 0:
            complete[0] = complete[0].removeprefix(_BYTE_ORDER_MARK)
        for at, raw in enumerate(complete, 1):
            number += 1
            try:
                lines.append(raw.decode("utf-8"))
                valid += not raw.isascii()
            except UnicodeDecodeError as wrong:
                message = encodings.not_utf8(name, number, wrong)
                if not bad:
                    message += f" {encodings.advice(valid, complete[at:])}"
                try:
                    plain_text.report(message, on_bad_line)
                except UserError as raised:
                    error = raised
                    break
                bad += 1
                lines.append(None)
        if lines:
            yield lines
        if error:
            raise error


def _with_lf(blocks):
    """Yields blocks of bytes in which CR LF has been replaced by LF. No block ends in CR."""
    held = b""
    for block in blocks:
        block = held + block
        held = b"\r" if block.endswith(b"\r") else b""  # the LF may be in the next block
        yield block.removesuffix(held).replace(b"\r\n", b"\n")


def _complete(blocks, name, end):
    """Yields, for each block of bytes, the list of records (bytes) that end in it."""
    number, rest = 0, b""
    for block in blocks:
        *complete, rest = (rest + block).split(end)
        number += len(complete)
        if len(rest) > plain_text.LONGEST_LINE:
            raise plain_text.too_long(name, number + 1)
        if complete:
            yield complete
    if rest.strip() if end != b"\n" else rest:
        yield [rest.removesuffix(b"\n")]  # the last record, if it does not end in the delimiter


def reader(path, problem, folder, encoders):
    """Returns a function that reads a file, or a shard of it, as a list of lines for `Lines`.

    Like `input_lines`, the returned function takes a path, a delimiter and a callback for bad lines.

    Args:
        path: str, the path of the whole file, whose extension (ignoring .gz and the like) selects the function; or the
            path of a folder of files that one of `Problem.readers` can read.
        problem: Problem.
        folder: str, the folder of the problem's configuration.
        encoders: function that returns {feature: encoder}, which is only called for `Problem.readers`.
    """
    ending = _ending_inside(path, problem) if files.is_folder(path) else _ending(path)
    if read := problem.readers.get(ending):
        return lambda path, delimiter, on_bad_line: read(path, encoders())
    task = registry.task_of(problem)
    read = task.file_reader(ending, problem, folder) if task.answered_by == "Predictor" else None
    return input_lines if read is None else lambda path, delimiter, on_bad_line: read(path)


def writer(path, problem):
    """Returns the function of `Problem.writers` for a path's extension, or None if lines of text are to be written."""
    return problem.writers.get(_ending(path)) if path else None


def converted(write, path, inputs, lines, encoders):
    """Converts a model's outputs to files in the problem's format, {path: bytes}.

    Args:
        write: function of `Problem.writers`.
        path: str.
        inputs: list of the inputs that were read.
        lines: list of str, one per input: the ids of its outputs, with spaces between ids and tabs between outputs.
        encoders: {feature: encoder}.
    """
    answers = [[[int(i) for i in ids.split()] for ids in line.split("\t")] for line in lines]
    return write(path, list(zip(inputs, answers, strict=True)), encoders)


def _ending(path):
    return plain_text.kind(path).removeprefix(".")


def _ending_inside(folder, problem):
    """Returns the extension that a folder's files share; raises `UserError` unless `Problem.readers` has it."""
    shared = {*map(_ending, files.find_files(folder, ("",)))} & {*problem.readers}
    if len(shared) != 1:
        endings = [f".{ending}" for ending in problem.readers]
        expected = f"a folder of files with the same extension, one of {', '.join(endings)}" if endings else "a file"
        raise UserError(f"--decode_from_file={folder} is a folder. Expected {expected}.")
    return shared.pop()
