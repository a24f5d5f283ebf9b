"""Runs all steps in one command: data, a small Transformer, translations, BLEU, a SavedModel.

    t2t-quickstart                               # on the embedded phrasebook: about ten minutes on two CPU cores
    t2t-quickstart --train_files=a.en,a.de --minutes=30

The second command uses your own pairs, in any format of t2t-datagen's translate_own; for pairs in one file, such as
pairs.tsv, add --languages=en,de. The vocabulary, the hyperparameters and the number of steps are chosen for these
pairs, this machine and the time limit. Both commands print the commands that they run, and write to --output_dir.
Existing results are reused, so a stopped run can continue; delete the folder to start over.
"""

import os
import sys

from t2t_lite.bin import _app
from t2t_lite.bin._setting_flags import define_settings
from t2t_lite.cli.commands import Mode, check_mode
from t2t_lite.errors import UserError
from t2t_lite.problems.own_settings import TABLES, own_flags
from t2t_lite.process.lazy import extras
from t2t_lite.process.quiet_import import import_tensorflow
from t2t_lite.settings.ranges import COUNT, Range

_STEPS = Range(1, COUNT.most)
_MINUTES = Range(5, 100_000)
_CORPUS = ("train_files", "dev_files", "languages", *TABLES)  # the flags that t2t-datagen gets
_MODES = {
    "phrasebook": Mode("the phrasebook", ("train_steps", "local_eval_frequency")),
    "own": Mode("--train_files", (*_CORPUS, "minutes")),
}


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_path("output_dir", None, "Folder to write to. Default: quickstart, or translator with --train_files.")
    flags.DEFINE_paths("train_files", [], "Your own training pairs, as for t2t-datagen: a.en,a.de.")
    flags.DEFINE_paths("dev_files", [], "Pairs to evaluate on. Default: 1,000 of the training pairs, or a "
                       "tenth of them if that is fewer.")  # fmt: skip
    flags.DEFINE_list("languages", [], "Languages of inputs and targets: en,de. Default: the extensions of the files.")
    flags.DEFINE_integer("minutes", 30, "With --train_files: approximate total time in minutes.", limits=_MINUTES)
    define_settings(flags, own_flags(), names=TABLES)
    flags.DEFINE_integer("train_steps", 1500, "Number of training steps on the phrasebook.", limits=_STEPS)
    flags.DEFINE_integer(
        "local_eval_frequency", 150, "Steps between checkpoints; the last five are averaged.", limits=_STEPS
    )


def check(flags):
    """Raises `UserError` if flags contradict each other, or an export of another command would be replaced."""
    if not flags.train_files and "phrasebook" not in extras():
        raise UserError(
            "without --train_files, t2t-quickstart needs the extra phrasebook, which is not installed. Use your own "
            "pairs: --train_files=a.en,a.de"
        )
    check_mode(flags, _MODES["own" if flags.train_files else "phrasebook"], _MODES)
    export, train = (os.path.join(_output_dir(flags), name) for name in ("export", "train"))
    if os.path.exists(export) and not os.path.exists(train):
        raise UserError(
            f"--output_dir={_output_dir(flags)} contains export/, but not the corresponding train/. Choose a new "
            "folder, or one that t2t-quickstart created."
        )


def _output_dir(flags):
    return flags.output_dir or ("translator" if flags.train_files else "quickstart")


def run(flags):
    """Runs the quickstart on the user's pairs or on the phrasebook."""
    if flags.train_files:
        import_tensorflow()
        from t2t_lite.extras.quickstart.own_files import run_own_files

        run_own_files(_output_dir(flags), {name: flags[name].value for name in _CORPUS}, flags.minutes)
    else:
        from t2t_lite.extras.quickstart.phrasebook_job import run_phrasebook

        run_phrasebook(_output_dir(flags), flags.train_steps, flags.local_eval_frequency)


main = _app.command("t2t-quickstart", define_flags, run, check, tensorflow=False)


if __name__ == "__main__":
    sys.exit(main())
