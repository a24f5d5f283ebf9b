"""Writes the vocabulary and the records of a problem, which the trainer reads.

    t2t-datagen --problem=translate_ende_phrasebook --data_dir=data
    t2t-datagen --problem=translate_own --data_dir=data --train_files=a.en,a.de --dev_files=b.en,b.de --vocab_size=8000

Over finished data it does nothing. The same command resumes a run that was stopped.
"""

import os
import sys

from t2t_lite.bin import _app
from t2t_lite.bin._setting_flags import define_settings, read_settings
from t2t_lite.cli.modes import Mode, all_modes, asked_modes, check_mode, require
from t2t_lite.data.generation_settings import GenerationSettings
from t2t_lite.problems.own_settings import OWN_FLAGS

READ = (*OWN_FLAGS, "skip_bad_lines")  # by all modes that generate
_GENERATE = Mode("generation", READ)


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_string("problem", None, "What to generate: a name, a comma list, or a prefix ending in *.")
    flags.DEFINE_path("data_dir", None, "Folder to write vocabulary and records to.")
    flags.DEFINE_path("tmp_dir", "/tmp/t2t_datagen", "Folder of downloads and source files.")
    define_settings(flags, OWN_FLAGS)
    flags.DEFINE_list("exclude_problems", [], "Leave out problems whose name contains one of these.")
    flags.DEFINE_bool("only_list", False, "Print the names of the selected problems and stop.")
    define_settings(flags, GenerationSettings)
    flags.DEFINE_path("t2t_usr_dir", None, "Your own folder with an __init__.py, imported for what it registers.")
    flags.DEFINE_bool("registry_help", False, "Print every registered model, hyperparameter set and problem, and stop.")
    flags.not_yet("num_shards", 0, "Set dataset_splits in the problem.")
    for name in ("task_id", "task_id_start", "task_id_end"):
        flags.not_yet(name, -1, "A problem is generated as a whole.")
    flags.no_effect("num_concurrent_processes", "use --num_workers")


def check(flags):
    """Raises `UserError` for mistakes that can be seen without imports."""
    require(flags, "problem", *(["data_dir"] if not flags.only_list else []))
    check_mode(flags, _chosen_mode(flags), _modes())


def run(flags):
    """Generates the selected problems, one after the other, or does what the mode of an extra does with them."""
    if flags.only_list:
        print("\n".join(selected(flags)))
    else:
        (_chosen_mode(flags).run or generate)(flags)


def generate(flags, **attributes):
    """Generates the selected problems; `attributes`: see `generate_problems`."""
    from t2t_lite.data.named_problems import generate_problems

    own = {name: flags[name].value for name in OWN_FLAGS if flags[name].present}
    settings = read_settings(flags, GenerationSettings)
    generate_problems(selected(flags), data_dir(flags), flags.tmp_dir, own, settings, **attributes)


def selected(flags, keeps_suffix=False):
    """Returns the names of the problems that the flags select, a list; see `select_problems`."""
    from t2t_lite.data.named_problems import select_problems

    return select_problems(flags.problem, flags.exclude_problems, keeps_suffix)


def data_dir(flags):
    """Returns --data_dir, in its shortest form."""
    return os.path.normpath(flags.data_dir) if "://" not in flags.data_dir else flags.data_dir


def _modes():
    return all_modes("t2t-datagen", {"generate": _GENERATE})


def _chosen_mode(flags):
    return [*asked_modes(flags, _modes()), _GENERATE][0]


main = _app.command("t2t-datagen", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
