"""Translates lines: a file into a file, or a stream into a stream. As many lines come out as went in, in order."""

import contextlib
import logging
import os
import re

import tensorflow as tf

from t2t_lite.data.corpora import read_lines
from t2t_lite.errors import UserError

_LOGGER = logging.getLogger("t2t_lite")

# Lines translated at a time: enough to sort by length, and what is finished need not wait for the rest of a huge file.
_CHUNK = 20_000
_LINE_ENDS = re.compile(r"[\t\n\r]")


def input_lines(path):
    """Returns the lines of a file as a list of str.

    Lines end at LF or CR LF and nowhere else. Nothing is translated before all of them are known to be text.

    Raises:
        UserError: no such file, not readable, damaged, or not UTF-8 (the line is named). An empty file has no lines.
    """
    if _is_device(path):
        with open(path, "rb") as file:
            return [line for lines in stream_lines(file.fileno(), path) for line in lines]
    with contextlib.suppress(tf.errors.OpError):
        if not tf.io.gfile.isdir(path) and tf.io.gfile.stat(path).length == 0:
            return []
    return list(read_lines(path))


def output_line(translation, settings):
    """Returns what is written for one line, without its end.

    Args:
        translation: Translation.
        settings: DecodeHParams: return_beams, write_beam_scores and identity_output are used.
    """
    fields = []
    for hypothesis in translation.hypotheses:
        text = " ".join(map(str, hypothesis.ids)) if settings.identity_output else hypothesis.text
        fields.append(_LINE_ENDS.sub(" ", text))  # a byte of the vocabulary may be one of these
        if settings.write_beam_scores:
            fields.append(f"{hypothesis.score:.2f}")
    return "\t".join(fields)


def translate_lines(translator, lines, settings, write, progress=None):
    """Translates lines and hands them to `write` in order.

    Args:
        translator: Translator.
        lines: list of str.
        settings: DecodeHParams.
        write: function that takes a str, one line with its end.
        progress: None, or a function that is told how many more are translated.

    Returns:
        The numbers (from 1) of the lines that were too long and cut off.
    """
    cut = []
    longest = None if settings.max_input_size == -1 else settings.max_input_size
    options = vars(settings.search_options())
    for start in range(0, len(lines), _CHUNK):
        chunk = lines[start : start + _CHUNK]
        translations = translator.translate(chunk, max_input_length=longest, on_progress=progress, **options)
        for number, (line, translation) in enumerate(zip(chunk, translations, strict=True), start + 1):
            output = output_line(translation, settings)
            write(output + "\n")
            if settings.log_results:
                _LOGGER.info("INPUT: %s\nOUTPUT: %s", line, output)
            if translation.truncated:
                cut.append(number)
    return cut


@contextlib.contextmanager
def output_file(path):
    """Opens a file for writing text. It appears under its name when all is written; on an error it does not appear.

    Raises:
        UserError: the file cannot be written; before anything else is done.
    """
    if _is_device(path):  # renaming would replace it
        with open(path, "wb") as file:
            yield lambda text: file.write(text.encode("utf-8"))
        return
    temporary = path + ".incomplete"
    try:
        if tf.io.gfile.isdir(path):
            raise UserError(f"{path}: is a folder. Expected a file to write.")
        file = tf.io.gfile.GFile(temporary, "wb")
        file.write(b"")  # opens it
        file.flush()
    except tf.errors.OpError as error:
        raise UserError(f"{path}: cannot be written: {str(error).splitlines()[0]}") from None
    try:
        with file:
            yield lambda text: file.write(text.encode("utf-8"))
        tf.io.gfile.rename(temporary, path, overwrite=True)
    except BaseException:
        with contextlib.suppress(tf.errors.OpError):
            tf.io.gfile.remove(temporary)
        raise


def _is_device(path):
    """Whether it is a pipe, a terminal or the like: neither a file nor a folder."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def stream_lines(descriptor, name):
    """Yields lists of the complete lines that are there, as they come: single ones from a slow writer, many otherwise.

    Args:
        descriptor: int, the file descriptor to read from.
        name: str, what to call it in errors.

    Raises:
        UserError: a line that is not UTF-8; the lines before it have been yielded.
    """
    number, rest, ended = 0, b"", False
    while not ended:
        block = os.read(descriptor, 1 << 20)
        ended = not block
        *complete, rest = (rest + block).split(b"\n")
        if ended and rest:
            complete.append(rest)
        lines, error = [], None
        if number == 0 and complete:
            complete[0] = complete[0].removeprefix(b"\xef\xbb\xbf")  # byte order mark
        for raw in complete:
            number += 1
            try:
                lines.append(raw.removesuffix(b"\r").decode("utf-8"))
            except UnicodeDecodeError as wrong:
                error = UserError(
                    f"{name}, line {number}: byte 0x{raw[wrong.start]:02x} at position {wrong.start} is not UTF-8. "
                    "Convert the text, for example: iconv -f latin1 -t utf-8"
                )
                break
        if lines:
            yield lines
        if error:
            raise error
