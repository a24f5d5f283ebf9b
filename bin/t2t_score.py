"""Scores predicted labels, numbers, tags or answers against a labelled file, with confidence intervals.

    t2t-score --task=classification --predictions=dev.out.tsv --reference=dev.tsv
    t2t-score --task=tagging --predictions=dev.out.conll --reference=dev.conll --baseline=old.out.conll
    t2t-score --task=spans --predictions=answers.json --reference=dev.json --json

The predictions are a file written by t2t-decoder. The reference is a labelled file in the format that problems such as
classify_own, regress_own, tag_own or qa_own read. Both files are UTF-8, plain or compressed (.gz, .bz2, .xz, .zst). The
numbers in brackets are a 95 % confidence interval, computed from bootstrap resamples of the texts, sentences or
questions. With --baseline, the scores of another system's predictions are computed on the same resamples and compared.
"""

import json
import sys

from t2t_lite.bin import _app
from t2t_lite.cli.commands import require
from t2t_lite.errors import UserError


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_string(
        "task",
        None,
        "What was predicted: labels (classification), numbers (regression), tags of words (tagging), parts of texts "
        "(spans), or a task of --t2t_usr_dir.",
    )
    flags.DEFINE_path("t2t_usr_dir", None, "Your own folder with an __init__.py that registers tasks.")
    flags.DEFINE_path("predictions", None, "File of predictions: a table whose first column is the label or number, a "
                      "CoNLL file, or a JSON object {id: answer}.")  # fmt: skip
    flags.DEFINE_path("reference", None, "Labelled file: a table whose first column is the label or number, a CoNLL "
                      "file, or a JSON file in SQuAD's format.")  # fmt: skip
    flags.DEFINE_list(
        "columns",
        [],
        "Columns of the reference, by number from 1 or by name in the first line: the column of the label or number "
        "(default: the first), or the columns of word and tag (default: the first and the last).",
    )
    flags.DEFINE_bool("header", None, "Whether the reference's first line names its columns. By default, a first line "
                      "that looks like names is an error.")  # fmt: skip
    flags.DEFINE_path("baseline", None, "Predictions of another system, to test whether the difference is significant.")
    flags.DEFINE_list(
        "metrics", "", "Metrics to compute. Default: all metrics of the task that suit these labels or tags."
    )
    flags.DEFINE_integer("resamples", 1000, "Number of bootstrap samples for the intervals.", 10, 10**6)
    flags.DEFINE_bool("json", False, "Print one JSON object.")


def check(flags):
    """Raises `UserError` for flags that are missing or contradict each other."""
    require(flags, "task", "predictions", "reference")
    _app.refuse_two_stdins(flags.predictions, flags.reference, flags.baseline)


def run(flags):
    """Prints the scores."""
    from t2t_lite.evaluation import answer_scores

    task = answer_scores.scored_task(flags.task)
    if not task.columns and (flags.columns or flags.header is not None):
        raise UserError(f"--columns, --header: the reference of --task={flags.task} has no columns. Remove the flags.")
    reference = answer_scores.read_reference(flags.reference, flags.task, flags.columns, flags.header)
    predicted = answer_scores.read_predictions(flags.predictions, reference)
    baseline = answer_scores.read_predictions(flags.baseline, reference) if flags.baseline else None
    answers = [*reference.answers, *predicted, *(baseline or ())]
    names = answer_scores.metric_names(flags.task, answers, flags.metrics)
    report = answer_scores.make_report(flags.task, names, reference.answers, predicted, baseline, flags.resamples)
    print(json.dumps(report, indent=1) if flags.json else "\n".join(answer_scores.as_text(report)))


main = _app.command("t2t-score", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
