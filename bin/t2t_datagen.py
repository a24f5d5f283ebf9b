"""Writes the vocabulary and the records of a problem, which the trainer reads.

    t2t-datagen --problem=translate_ende_phrasebook --data_dir=data
    t2t-datagen --problem=translate_own --data_dir=data --train_files=a.en,a.de --dev_files=b.en,b.de --vocab_size=8000

If the data is already complete, the command does nothing. If an earlier command was interrupted, this command continues
its work.
"""

import collections
import os
import sys

from t2t_lite.bin import _app
from t2t_lite.bin._setting_flags import define_settings
from t2t_lite.cli import commands
from t2t_lite.cli.commands import Mode, check_mode, chosen_mode, require
from t2t_lite.data.named_problems import GenerationSettings
from t2t_lite.problems.own_settings import own_flags
from t2t_lite.settings.ranges import settings_of

OWN_FLAGS = own_flags()


def modes():
    """Returns the command's modes, {name: Mode}; modes of extras come first."""
    return commands.modes(
        "t2t-datagen", {"generate": Mode("generation", (*OWN_FLAGS, "skip_bad_lines"), run=_generate)}
    )


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_string("problem", None, "Problems to generate: names separated by commas, or a prefix ending in *.")
    flags.DEFINE_path("data_dir", None, "Folder to write vocabulary and records to.")
    flags.DEFINE_path("tmp_dir", "/tmp/t2t_datagen", "Folder for downloads and source files.")
    define_settings(flags, OWN_FLAGS)
    flags.DEFINE_list("exclude_problems", [], "Skip problems whose names contain one of these words.")
    flags.DEFINE_bool("only_list", False, "Print the names of the selected problems and stop.")
    define_settings(flags, GenerationSettings)
    flags.DEFINE_path("t2t_usr_dir", None, "Your own folder with an __init__.py that registers problems.")
    flags.DEFINE_bool("registry_help", False, "Print every registered model, hyperparameter set and problem, and stop.")
    flags.no_effect("num_concurrent_processes", "use --num_workers")


def check(flags):
    """Raises `UserError` for mistakes that can be found without heavy imports."""
    require(flags, "problem", *(["data_dir"] if not flags.only_list else []))
    every = modes()
    check_mode(flags, chosen_mode(flags, every), every)
    for part in commands.parts("t2t-datagen"):
        if hasattr(part, "check"):
            part.check(flags)


def run(flags):
    """Generates the data of the selected problems one after another, lists the problems, or runs an extra's mode."""
    from t2t_lite.data.named_problems import select_problems

    mode = chosen_mode(flags, modes())
    names = select_problems(flags.problem, flags.exclude_problems, keeps_suffix=mode.run is not _generate)
    if flags.only_list:
        print("\n".join(names))
        return
    mode.run(flags, names, os.path.normpath(flags.data_dir) if "://" not in flags.data_dir else flags.data_dir)


def _generate(flags, names, data_dir):
    from t2t_lite.data.named_problems import generate_problems

    own_values, settings = (
        {name: flags[name].value for name in names_of if flags[name].present}
        for names_of in (OWN_FLAGS, settings_of(GenerationSettings))
    )
    attributes = [part.attributes(flags) for part in commands.parts("t2t-datagen") if hasattr(part, "attributes")]
    generate_problems(names, data_dir, flags.tmp_dir, own_values, dict(collections.ChainMap(settings, *attributes)))


main = _app.command("t2t-datagen", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
