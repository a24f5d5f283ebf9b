"""Reads files in requests with the problem's readers, and converts outputs to files with its writers."""

import base64
import binascii
import mimetypes
import os
import tempfile

from t2t_lite import files
from t2t_lite.errors import UserError, counted, printable

FILE = {"name": str, "data": str}  # a file in a request: a name whose ending tells the format, and base64 data
LONGEST_FILE = 150_000  # maximum size in bytes, so that the base64 data fit into a request
MOST_GIVEN = 4096  # maximum number of ids in a file, all of which are scored in one batch


def endings_read(problem):
    """Returns a list of the file name endings that a problem can read; [] if the problem is None."""
    return [] if problem is None else sorted(problem.readers)


def types_written(problem):
    """Returns {ending: media type} of the files that a problem's writers create, one ending for each writer."""
    writers = {} if problem is None else problem.writers
    endings = {write: ending for ending, write in reversed(writers.items())}
    types = {ending: mimetypes.guess_type(f"output.{ending}")[0] for ending in reversed(endings.values())}
    return {ending: kind or "application/octet-stream" for ending, kind in types.items()}


def read_file(problem, encoders, file):
    """Returns the prompt in a request's file, as a text or a list of ids.

    Args:
        problem: Problem, or None.
        encoders: {feature: encoder}.
        file: dict, see `FILE`.

    Raises:
        UserError: the problem cannot read files with this ending, the data are damaged or too long, or the file
            contains several inputs.
    """
    name = printable(file["name"])[-80:]
    ending, known = _ending(name), endings_read(problem)
    if ending not in known:
        expected = f"Expected a name that ends in .{', .'.join(known)}." if known else "This model reads only text."
        raise UserError(f"{name}: this model cannot read such a file. {expected}")
    try:
        data = base64.b64decode(file["data"], validate=True)
    except (binascii.Error, ValueError):
        raise UserError(f"{name}: the data are not valid base64.") from None
    if len(data) > LONGEST_FILE:
        raise UserError(f"{name}: {len(data):,} bytes. Expected at most {LONGEST_FILE:,}.")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"given.{ending}")
        files.write_bytes(path, data)
        try:
            inputs = problem.readers[ending](path, encoders)
        except UserError as error:
            raise UserError(str(error).replace(path, name)) from None
    if len(inputs) != 1:
        raise UserError(f"{name}: contains {counted(len(inputs), 'input')}. Expected one.")
    given = inputs[0]
    if not isinstance(given, str) and len(given) > MOST_GIVEN:
        raise UserError(f"{name}: {len(given):,} ids. Expected at most {MOST_GIVEN:,}. Shorten the file.")
    return given


def write_files(problem, encoders, ending, given, ids):
    """Converts an output to files with the given ending. Returns a list of {"name", "type", "data" in base64}.

    Args:
        problem, encoders: see `read_file`.
        ending: str, one of `types_written`.
        given: str or list of int, the input to which the output belongs.
        ids: list of int, the output.

    Raises:
        UserError: the problem cannot write files with this ending, or the writer raises an error.
    """
    types = types_written(problem)
    if ending not in types:
        raise UserError(f"ending={ending[:80]!r} cannot be written. Possible endings: {', '.join(types) or 'none'}.")
    contents = problem.writers[ending](f"output.{ending}", [(given, [ids])], encoders)
    return [
        {"name": os.path.basename(path), "type": types[ending], "data": base64.b64encode(content).decode()}
        for path, content in contents.items()
        if _ending(path) == ending
    ]


def picture_file(name, picture):
    """Converts a `Drawing` or `Plot` to a PNG in the format of `write_files`."""
    return {"name": f"{name}.png", "type": "image/png", "data": base64.b64encode(picture.content("png")).decode()}


def _ending(name):
    return os.path.splitext(name)[1].removeprefix(".").lower()
