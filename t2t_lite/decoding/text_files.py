"""Reads the lines to translate, from a file or a stream, and forms the lines that are written."""

import contextlib
import json
import os
import re
import sys

from t2t_lite import files, streams
from t2t_lite.corpora import plain_text
from t2t_lite.errors import UserError
from t2t_lite.files.file_errors import translated
from t2t_lite.files.pipes import is_device, open_device

# What JSON does not escape by itself, and some programs take for the end of a line.
_NOT_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES_AHEAD = 256


def input_lines(path, delimiter="\n", on_bad_line=None):
    """Returns the lines of a file as a list of str.

    Lines end at LF or CR LF and nowhere else; with another delimiter, records end there, and a last one that is empty
    does not count. Nothing is translated before all of them are known to be text.

    Args:
        path: str.
        delimiter: str.
        on_bad_line: None, or a function that is told, in a message, of each line that is not UTF-8 and comes as "".

    Raises:
        UserError: no such file, not readable, damaged, or not UTF-8 (the line is named). An empty file has no lines.
    """
    if is_device(path):
        with open_device(path, "rb") as file:
            return [line for lines in stream_lines(file.fileno(), path, delimiter, on_bad_line) for line in lines]
    with translated(path), files.open_stream(path) as file:
        if not file.peek(1):
            return []
    lines = list(plain_text.read_lines(path, on_bad_line))
    if delimiter == "\n":
        return lines
    records = "\n".join(lines).split(delimiter)
    return records if records[-1].strip() else records[:-1]


def output_line(translation, settings):
    """Returns what is written for one line, without its end.

    Args:
        translation: Translation.
        settings: DecodeHParams: write_beam_scores and identity_output are used.
    """
    fields = []
    for hypothesis in translation.hypotheses:
        text = " ".join(map(str, hypothesis.ids)) if settings.identity_output else hypothesis.text
        fields.append(as_field(text))
        if settings.write_beam_scores:
            fields.append(f"{hypothesis.score:.2f}")
    return "\t".join(fields)


def as_field(text):
    """Returns an output as a field of a line, with control characters and line separators as spaces.

    A byte of the vocabulary may be a tab or end a line; some programs take U+2028 and its like for the end of one.
    """
    return plain_text.CONTROL.sub(" ", text)


def json_line(number, line, translation):
    """Returns one line of JSON: the line's number, its text, and all hypotheses with their tokens and scores.

    Args:
        number: int, from 1.
        line: str, the input.
        translation: LineTranslation.
    """
    found = {"line": number, "input": line}
    found |= {"parts": translation.parts} if translation.parts != 1 else {}
    found |= {"truncated": True} if translation.truncated else {}
    found["hypotheses"] = [
        {
            "text": hypothesis.text,
            "score": round(hypothesis.score, 6),
            "ended": hypothesis.ended,
            "tokens": hypothesis.tokens,
            "token_scores": [round(score, 6) for score in hypothesis.token_scores or ()],
        }
        for hypothesis in translation.hypotheses
    ]
    return _NOT_ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(found, ensure_ascii=False))


@contextlib.contextmanager
def output_file(path):
    """Opens a file for writing text. It appears under its name when all is written; on an error it does not appear.

    Args:
        path: str; - is standard output, of which every text is flushed.

    Yields:
        function that writes a text.

    Raises:
        UserError: the file cannot be written; before anything else is done.
    """
    if path == "-":
        yield _print
        return
    is_there_already = is_device(path)  # renaming would replace it
    with contextlib.nullcontext() if is_there_already else files.replacing(path) as temporary:
        with translated(path, "write"):
            if os.path.isdir(path):
                raise UserError(f"{path}: is a folder. Expected a file to write.")
            file = open_device(path, "wb") if is_there_already else files.create(temporary)

        def write(text):
            data = text.encode("utf-8")
            with translated(path, "write"):
                file.write(data)
                if is_there_already:  # somebody is reading
                    file.flush()

        try:
            yield write
            with translated(path, "write"):
                file.close()
        finally:
            with contextlib.suppress(OSError):  # of a full disk, a second time
                file.close()


def _print(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def stdin_lines(delimiter="\n", on_bad_line=None):
    """Yields (number of the first, lines) of standard input: what is there, at most 256 lines, before more is read.

    So many are enough for full batches, and few enough for a short wait. Arguments and errors: as of `stream_lines`.
    """
    first = 1
    for lines in stream_lines(streams.descriptor(), "standard input", delimiter, on_bad_line):
        for start in range(0, len(lines), _LINES_AHEAD):
            yield first + start, lines[start : start + _LINES_AHEAD]
        first += len(lines)


def stream_lines(descriptor, name, delimiter="\n", on_bad_line=None):
    """Yields lists of the complete lines that are there, as they come: single ones from a slow writer, many otherwise.

    Args:
        descriptor: int, the file descriptor to read from.
        name: str, what to call it in errors.
        delimiter: str, what ends a line; before LF, a CR is left out too.
        on_bad_line: as in `input_lines`.

    Raises:
        UserError: a line that is not UTF-8; the lines before it have been yielded.
    """
    end, number, rest, ended = delimiter.encode(), 0, b"", False
    while not ended:
        with translated(name):
            block = os.read(descriptor, 1 << 20)
        ended = not block
        *complete, rest = (rest + block).split(end)
        if len(rest) > plain_text.LONGEST_LINE:
            raise plain_text.too_long(name, number + len(complete) + 1)
        if ended and (rest.strip() if delimiter != "\n" else rest):
            complete.append(rest)
        lines, error = [], None
        if number == 0 and complete:
            complete[0] = complete[0].removeprefix(_BYTE_ORDER_MARK)
        for raw in complete:
            number += 1
            try:
                lines.append((raw.removesuffix(b"\r") if end == b"\n" else raw).decode("utf-8"))
            except UnicodeDecodeError as wrong:
                message = plain_text.not_utf8(name, number, wrong)
                if on_bad_line is None:
                    error = UserError(message)
                    break
                on_bad_line(message)
                lines.append("")
        if lines:
            yield lines
        if error:
            raise error
