"""The files that an encoder predicts of: lines, or what its task reads, such as CoNLL's columns or SQuAD's JSON."""

from t2t_lite import registry
from t2t_lite.corpora import plain_text
from t2t_lite.decoding.jobs import text_files


def reader(path, problem, folder):
    """Returns the function that reads a file, or a shard of it, as a list of what `LinePredictor` takes as a line.

    It takes a path, a delimiter and what is told of bad lines, as `text_files.input_lines` does.

    Args:
        path: str, the name of the whole file, of which the ending counts, without .gz or the like.
        problem: Problem.
        folder: str, where the problem's configuration is.
    """
    ending = plain_text.without_packing(path).rpartition(".")[2].lower()
    task = registry.task_of(problem)
    read = task.file_reader(ending, problem, folder) if task.answered_by == "Predictor" else None
    return text_files.input_lines if read is None else lambda path, delimiter, on_bad_line: read(path)
