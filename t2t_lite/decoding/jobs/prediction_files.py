"""The files that are decoded and written beside lines of text: a problem's own, such as PNG, and those of a task."""

from t2t_lite import files, registry
from t2t_lite.corpora import plain_text
from t2t_lite.decoding.jobs import text_files
from t2t_lite.errors import UserError


def reader(path, problem, folder, encoders):
    """Returns the function that reads a file, or a shard of it, as a list of what `Lines` take as a line.

    It takes a path, a delimiter and what is told of bad lines, as `text_files.input_lines` does.

    Args:
        path: str, the name of the whole file, of which the ending counts, without .gz or the like; or of a folder of
            files of one of `Problem.readers`.
        problem: Problem.
        folder: str, where the problem's configuration is.
        encoders: function that returns {feature: encoder}; called for `Problem.readers` alone.
    """
    ending = _ending(path)
    if files.is_folder(path):
        ending = _ending_inside(path, problem)
    if read := problem.readers.get(ending):
        return lambda path, delimiter, on_bad_line: read(path, encoders())
    task = registry.task_of(problem)
    read = task.file_reader(ending, problem, folder) if task.answered_by == "Predictor" else None
    return text_files.input_lines if read is None else lambda path, delimiter, on_bad_line: read(path)


def writer(path, problem):
    """Returns the function of `Problem.writers` for a path's ending, or None: lines of text are written."""
    return problem.writers.get(_ending(path)) if path else None


def converted(write, path, inputs, lines, encoders):
    """Returns the files {path: bytes} of answers.

    Args:
        write: function of `Problem.writers`.
        path: str.
        inputs: list of what was read.
        lines: list of str, of each input the ids of its outputs, separated by spaces, and the outputs by tabs.
        encoders: {feature: encoder}.
    """
    answers = [[[int(i) for i in ids.split()] for ids in line.split("\t")] for line in lines]
    return write(path, list(zip(inputs, answers, strict=True)), encoders)


def _ending(path):
    return plain_text.kind(path).removeprefix(".")


def _ending_inside(folder, problem):
    """Returns the ending that the files of a folder have. Raises `UserError` if it is none of `Problem.readers`."""
    found = {*map(_ending, files.find_files(folder, ("",)))} & {*problem.readers}
    if len(found) != 1:
        endings = ", ".join(f".{ending}" for ending in problem.readers)
        what = f"Expected files that all end in one of {endings}." if endings else "Expected a file."
        raise UserError(f"--decode_from_file={folder}: is a folder. {what}")
    return found.pop()
