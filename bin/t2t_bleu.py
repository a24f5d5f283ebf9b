"""Scores a translation, and prints each score with the signature that is needed to reproduce it.

    t2t-bleu --translation=test.out.de --reference=test.de
    t2t-bleu --translation=test.out.de --reference=test.de --baseline=old.out.de --by_length --worst=5 --source=test.en

Prints tensor2tensor's BLEU_uncased and BLEU_cased (mteval-v14's international tokenization), then sacreBLEU's scores
(cased) with their signatures. Publish sacreBLEU's scores. All files are UTF-8 text with one sentence per line, or test
sets of WMT (.sgm, .xml). They may be compressed (.gz, .bz2, .xz, .zst).
"""

import json
import sys

from t2t_lite.bin import _app
from t2t_lite.bin._setting_flags import check_score_flags, define_score_flags, ter_options
from t2t_lite.cli import commands
from t2t_lite.cli.commands import Mode, check_mode, chosen_mode
from t2t_lite.errors import LOGGER
from t2t_lite.settings.ranges import COUNT


def modes():
    """Returns the command's modes, including those that extras add, as {kind of input: Mode}."""
    return commands.modes("t2t-bleu", _MODES)


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_path("translation", None, "File of translations; - is standard input.")
    define_score_flags(flags, "depends on the reference's extension (13a for languages with spaces)")
    flags.DEFINE_enum(
        "bleu_variant", "both", ["cased", "uncased", "both"], "Which of tensor2tensor's two BLEU scores to print."
    )
    flags.DEFINE_path(
        "baseline", None, "Another translation of the same text, to test whether the difference is significant."
    )
    flags.DEFINE_bool("by_length", False, "Also score short and long sentences separately.")
    flags.DEFINE_integer("worst", 0, "Number of worst sentences to show.", limits=COUNT)
    flags.DEFINE_string("worst_by", "chrf", "The score by which --worst ranks sentences; one of --metrics.")
    flags.DEFINE_path("source", None, "File of source sentences, which --worst shows.")
    flags.DEFINE_bool("json", False, "Print one JSON object; for a folder, one object per line.")


def check(flags):
    """Raises `UserError` for flags that are missing or contradict each other."""
    check_mode(flags, chosen_mode(flags, modes()), modes())
    _app.refuse_two_stdins(flags.translation, *flags.reference, flags.baseline, flags.source)


def run(flags):
    """Prints the scores."""
    from t2t_lite.evaluation import score_files, scores
    from t2t_lite.evaluation.tokenizations import tokenization_of_file

    check_score_flags(flags, [flags.worst_by] if flags.worst else [])
    scores.check_metrics([flags.worst_by], "--worst_by")
    for name in ("source", "worst_by"):
        if flags[name].present and not flags.worst:
            LOGGER.warning(f"--{name} has no effect without --worst.")
    references = score_files.read_references(flags.reference)
    tokenize = flags.tokenization or tokenization_of_file(flags.reference[0], references[0])
    how = {"metrics": flags.metrics, "tokenize": tokenize, "ter": ter_options(flags), "variant": flags.bleu_variant}
    score_files.note_tensor2tensors_words(references[0])
    chosen_mode(flags, modes()).run(flags, references, how)


def _score_file(flags, references, how):
    from t2t_lite.corpora.wmt_files import SOURCE, TRANSLATION
    from t2t_lite.evaluation import score_files, score_report

    paths = {name: flags[name].value for name in ("translation", "baseline", "reference")}
    sources = {**paths, "source": flags.source if flags.worst else None, "reference": None}
    texts = {
        name: score_files.read_translation(
            path, flags.reference[0], len(references[0]), side=SOURCE if name == "source" else TRANSLATION
        )
        for name, path in sources.items()
        if path
    }
    part_options = {"by_length": flags.by_length, "worst": flags.worst, "worst_by": flags.worst_by}
    scores_report = score_report.make_report(paths, references, **texts, **how, **part_options)
    print(
        json.dumps(scores_report, ensure_ascii=False, indent=1)
        if flags.json
        else "\n".join(score_report.as_text(scores_report))
    )


_FILE_FLAGS = ("translation", "baseline", "by_length", "worst")
_MODES = {"file": Mode("--translation", _FILE_FLAGS, ("translation", "reference"), _score_file)}


main = _app.command("t2t-bleu", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
