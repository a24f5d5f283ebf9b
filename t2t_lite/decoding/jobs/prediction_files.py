"""The files that an encoder predicts of: lines, CoNLL's columns for tags, SQuAD's JSON for answers."""

import functools

from t2t_lite.corpora import conll, plain_text
from t2t_lite.corpora.conll import read_conll
from t2t_lite.corpora.squad import read_squad
from t2t_lite.decoding.jobs import text_files
from t2t_lite.errors import UserError


def reader(path, problem, folder):
    """Returns the function that reads a file, or a shard of it, as a list of what `LinePredictor` takes as a line.

    It takes a path, a delimiter and what is told of bad lines, as `text_files.input_lines` does.

    Args:
        path: str, the name of the whole file: .conll or .conllu of a tagger and .json of a model that answers
            questions, without or with .gz or the like, are columns and SQuAD's format.
        problem: Problem, whose task counts, and for the user's own tags the column of the words.
        folder: str, where the problem's configuration is.
    """
    ending = plain_text.without_packing(path).rpartition(".")[2].lower()
    if ending in ("conll", "conllu") and problem.task == "tagging":
        if hasattr(problem, "read_config"):
            problem.read_config(folder)
        return functools.partial(_sentences, getattr(problem, "layout", conll.LAYOUT))
    return _questions if (ending, problem.task) == ("json", "spans") else text_files.input_lines


def _sentences(layout, path, delimiter, on_bad_line):
    return [sentence.words for sentence in read_conll(path, with_tags=False, layout=layout)]


def _questions(path, delimiter, on_bad_line):
    found = read_squad(path, with_answers=False)
    lines = [{"id": one.id, "question": one.question, "context": one.context} for one in found]
    if not lines:
        raise UserError(f"{path}: has no question. Expected one at least.")
    return lines
