"""Finds all files that a problem's encoders read, so that a run or an export with copies of them is complete."""

import copy
import logging
import os
import re
import tempfile

from t2t_lite import files
from t2t_lite.errors import UserError, first_line

_LOGGER = logging.getLogger("t2t_lite")


def encoder_files(problem, folder):
    """Returns the files of a folder that a problem's encoders read.

    `Problem.vocabulary_files` names those that the encoders know. Other files that `feature_encoders` reads, such as a
    list of labels, are found by calling it with a folder that contains only the known ones. A file elsewhere cannot be
    copied, which is logged.

    Args:
        problem: Problem.
        folder: str, a data folder or that of a run.

    Returns:
        {path relative to the folder: path}.

    Raises:
        UserError: a file is missing, or copies of all these files do not give the same encoders.
    """
    paths = {}
    for path in problem.vocabulary_files(folder):
        if (name := _relative(path, folder)) is None:
            _LOGGER.warning(
                f"{path}: {problem.name} reads it outside of {folder}, so the run will need it there, too. Expected it "
                f"in {folder}, from where it is copied."
            )
        else:
            paths[name] = path
    expected = _fingerprints(problem.open_encoders(folder))
    with tempfile.TemporaryDirectory() as copies:
        while True:
            files.copy_files(paths, copies)
            try:
                encoders = copy.copy(problem).open_encoders(copies)  # a copy, as a problem may remember the folder
            except Exception as error:  # the user's code may raise anything
                name = _named_in(str(error), copies)
                if name is None or name in paths or not files.exists(os.path.join(folder, name)):
                    reason = first_line(error).replace(copies, folder)
                    raise _incomplete(problem, folder, paths, f"it makes none: {reason}") from error
                paths[name] = os.path.join(folder, name)
                continue
            if _fingerprints(encoders) != expected:
                raise _incomplete(problem, folder, paths, "it makes other encoders")
            return paths


def _incomplete(problem, folder, paths, what):
    return UserError(
        f"{problem.name}: feature_encoders reads more of {folder} than {', '.join(paths) or 'no file'}: of copies of "
        f"that alone {what}. Expected vocabulary_files to return the paths of all files that it reads."
    )


def _fingerprints(encoders):
    return {feature: getattr(encoder, "fingerprint", None) for feature, encoder in encoders.items()}


def _relative(path, folder):
    """Returns a path relative to the folder that it is in, or None if it is elsewhere."""
    path, folder = (part if files.is_remote(part) else os.path.abspath(part) for part in (path, folder))
    folder = folder.rstrip("/") + "/"
    return path.removeprefix(folder) if path.startswith(folder) else None


def _named_in(message, folder):
    """Returns the path of a file in a folder that an error message names, relative to the folder, or None."""
    match = re.search(re.escape(folder) + r"/([^:;\n'\"]+)", message)
    return match[1] if match and ".." not in match[1].split("/") else None
