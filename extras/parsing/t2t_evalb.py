"""Scores predicted trees against gold trees by labelled bracketing F1, with evalb's rules and COLLINS.prm.

    t2t-evalb --gold=wsj_23.mrg --predicted=trees.txt

The gold file holds bracketed trees, which may span several lines. The predicted file has one tree per line, as written
by t2t-decoder for a parsing problem. Both files are UTF-8, plain or compressed (.gz, .bz2, .xz, .zst). Function labels,
traces and the outer bracket are removed. A blank line is skipped. A line counts as an error if it is not a tree, or
if its words differ from those of the gold tree. As in evalb, skipped lines and errors are counted but left out of the
scores.
"""

import sys

from t2t_lite.bin import _app
from t2t_lite.cli.commands import require
from t2t_lite.errors import UserError, counted

_SHOWN = 10  # number of errors to print; evalb stops after the same number


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_path("gold", None, "The file of gold trees.")
    flags.DEFINE_path("predicted", None, "The file of predicted trees, one per line.")
    flags.DEFINE_integer("cutoff", 40, "Maximum number of words per sentence in the second block of scores.", 1, 10**6)


def check(flags):
    """Raises `UserError` if --gold or --predicted is missing."""
    require(flags, "gold", "predicted")


def run(flags):
    """Prints the scores."""
    from t2t_lite.extras.parsing import evalb, trees

    gold = [tree for tree, _ in trees.read_trees(flags.gold)]
    predicted = evalb.read_predictions(flags.predicted)
    if len(gold) != len(predicted):
        raise UserError(
            f"{flags.gold} has {counted(len(gold), 'tree')}, but {flags.predicted} has "
            f"{counted(len(predicted), 'line')}. Expected one line per tree."
        )
    total, short, problems = evalb.score_trees(gold, predicted, flags.cutoff)
    for problem in problems[:_SHOWN]:
        print(f"{flags.predicted}, {problem}", file=sys.stderr)
    if len(problems) > _SHOWN:
        print(f"{flags.predicted}: {len(problems) - _SHOWN:,} more problems", file=sys.stderr)
    _show("All", total)
    print()
    _show(f"len<={flags.cutoff}", short)


def _show(title, result):
    """Prints a summary with evalb's names."""
    print(f"-- {title} --")
    for name, value, digits in (
        ("Number of sentence", result.sentences, 0),
        ("Number of Error sentence", result.errors, 0),
        ("Number of Skip  sentence", result.skipped, 0),
        ("Number of Valid sentence", result.valid, 0),
        ("Other punctuation tags", result.unmatched_punctuation, 0),
        ("Bracketing Recall", result.recall, 2),
        ("Bracketing Precision", result.precision, 2),
        ("Bracketing FMeasure", result.f1, 2),
        ("Complete match", result.complete_match, 2),
        ("Tagging accuracy", result.tagging_accuracy, 2),
    ):
        print(f"{name:25} = {value:6.{digits}f}")


main = _app.command("t2t-evalb", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
