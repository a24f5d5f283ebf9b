"""The files that an encoder predicts of: lines, CoNLL's columns for tags, SQuAD's JSON for answers."""

from t2t_lite.corpora import plain_text
from t2t_lite.corpora.labelled_files import read_conll, read_squad
from t2t_lite.decoding.jobs import text_files
from t2t_lite.errors import UserError


def reader(path, task):
    """Returns the function that reads a file, or a shard of it, as a list of what `LinePredictor` takes as a line.

    It takes a path, a delimiter and what is told of bad lines, as `text_files.input_lines` does.

    Args:
        path: str, the name of the whole file: .conll of a tagger and .json of a model that answers questions, without
            or with .gz or the like, are columns and SQuAD's format.
        task: str.
    """
    ending = plain_text.without_packing(path).rpartition(".")[2]
    return {("conll", "tagging"): _sentences, ("json", "spans"): _questions}.get((ending, task), text_files.input_lines)


def _sentences(path, delimiter, on_bad_line):
    return [sentence.words for sentence in read_conll(path, with_tags=False)]


def _questions(path, delimiter, on_bad_line):
    found = read_squad(path, with_answers=False)
    lines = [{"id": one.id, "question": one.question, "context": one.context} for one in found]
    if not lines:
        raise UserError(f"{path}: has no question. Expected one at least.")
    return lines
