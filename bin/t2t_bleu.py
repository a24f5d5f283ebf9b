"""Scores a translation, and prints with each score what others need to reproduce it.

    t2t-bleu --translation=test.out.de --reference=test.de
    t2t-bleu --translation=test.out.de --reference=test.de --baseline=old.out.de --by_length --worst=5 --source=test.en

Prints tensor2tensor's BLEU_uncased and BLEU_cased (mteval-v14's international tokenization), then sacreBLEU's scores
(cased) with their signatures, the figures to publish. All files are UTF-8 text, one sentence per line, or WMT's test
sets, .sgm and .xml; plain or packed (.gz, .bz2, .xz, .zst).
"""

import json
import logging
import sys

from t2t_lite.bin import _app
from t2t_lite.bin._setting_flags import check_score_flags, define_score_flags, ter_options
from t2t_lite.cli import commands
from t2t_lite.cli.commands import Mode, check_mode, chosen_mode
from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import COUNT

_LOGGER = logging.getLogger("t2t_lite")


def modes():
    """Returns {what is scored: Mode}, with those of extras."""
    return commands.modes("t2t-bleu", _MODES)


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_path("translation", None, "File of translations; - is standard input.")
    define_score_flags(flags, "that of the language that the reference's name ends in, as in test.zh; else 13a")
    flags.DEFINE_enum("bleu_variant", "both", ["cased", "uncased", "both"], "Which of tensor2tensor's lines to print.")
    flags.DEFINE_path("baseline", None, "Another translation of the same text, for a test of significance.")
    flags.DEFINE_bool("by_length", False, "Also score short and long sentences separately.")
    flags.DEFINE_integer("worst", 0, "Show this many of the worst sentences.", limits=COUNT)
    flags.DEFINE_string("worst_by", "chrf", "The score by which --worst ranks sentences, one of those of --metrics.")
    flags.DEFINE_path("source", None, "File of sources, which --worst shows.")
    flags.DEFINE_bool("json", False, "Print JSON: one object; of a folder, one in each line.")


def check(flags):
    """Raises `UserError` for flags that are missing or contradict each other."""
    check_mode(flags, chosen_mode(flags, modes()), modes())
    inputs = [flags.translation, *flags.reference, flags.baseline, flags.source]
    if inputs.count("-") > 1:
        raise UserError("standard input (-): can be read once. Expected at most one file of that name.")


def run(flags):
    """Prints the scores."""
    from t2t_lite.evaluation import score_files, scores
    from t2t_lite.evaluation.tokenizations import tokenization_of_file

    check_score_flags(flags)
    scores.check_metrics([flags.worst_by], "--worst_by")
    if flags.source and not flags.worst:
        _LOGGER.warning("--source has no effect without --worst: the scores do not look at the source.")
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
    of_parts = {"by_length": flags.by_length, "worst": flags.worst, "worst_by": flags.worst_by}
    scores_report = score_report.make_report(paths, references, **texts, **how, **of_parts)
    print(
        json.dumps(scores_report, ensure_ascii=False, indent=1)
        if flags.json
        else "\n".join(score_report.as_text(scores_report))
    )


_OF_A_FILE = ("translation", "baseline", "by_length", "worst")
_MODES = {"file": Mode("--translation", _OF_A_FILE, ("translation", "reference"), _score_file)}


main = _app.command("t2t-bleu", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
