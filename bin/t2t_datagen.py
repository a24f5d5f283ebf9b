"""Writes the vocabulary and the records of a problem, which the trainer reads.

    t2t-datagen --problem=translate_ende_phrasebook --data_dir=data
    t2t-datagen --problem=translate_own --data_dir=data --train_files=a.en,a.de --dev_files=b.en,b.de --vocab_size=8000
    t2t-datagen --inspect --problem=translate_own --data_dir=data --hparams_set=transformer_big

Over finished data it does nothing. The same command resumes a run that was stopped. --inspect generates
nothing: it shows what is there.
"""

import os
import sys

from t2t_lite.bin import _app
from t2t_lite.bin._setting_flags import define_settings, read_settings
from t2t_lite.cli.modes import Mode, check_mode, require
from t2t_lite.data.generation_settings import GenerationSettings
from t2t_lite.errors import UserError
from t2t_lite.problems.own_settings import own_flags

OWN_FLAGS = own_flags()

_MODES = {
    "inspect": Mode("--inspect", ("hparams_set", "hparams")),
    "generate": Mode("generation", (*OWN_FLAGS, "skip_bad_lines")),
}


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_string("problem", None, "What to generate: a name, a comma list, or a prefix ending in *.")
    flags.DEFINE_path("data_dir", None, "Folder to write vocabulary and records to.")
    flags.DEFINE_path("tmp_dir", "/tmp/t2t_datagen", "Folder of downloads and source files.")
    define_settings(flags, OWN_FLAGS)
    flags.DEFINE_bool(
        "inspect",
        False,
        "Generate nothing; show finished data: counts, examples, vocabulary, lengths (also as <problem>-lengths.png), "
        "and the batches that --hparams_set makes of them.",
    )
    flags.DEFINE_string("hparams_set", "transformer_base", "With --inspect: name of the hyperparameter set.")
    flags.DEFINE_string("hparams", "", "With --inspect: changes to the set: name=value,name=value.")
    flags.DEFINE_list("exclude_problems", [], "Leave out problems whose name contains one of these.")
    flags.DEFINE_bool("only_list", False, "Print the names of the selected problems and stop.")
    define_settings(flags, GenerationSettings)
    flags.DEFINE_string("runner", None, "Use Apache Beam: DirectRunner, FlinkRunner, SparkRunner, DataflowRunner.")
    flags.DEFINE_string("beam_pipeline_options", "", "Beam's own options: name=value,name=value; a name for a switch.")
    flags.DEFINE_path("t2t_usr_dir", None, "Your own folder with an __init__.py, imported for what it registers.")
    flags.DEFINE_bool("registry_help", False, "Print every registered model, hyperparameter set and problem, and stop.")
    flags.not_yet("num_shards", 0, "Set dataset_splits in the problem.")
    for name in ("task_id", "task_id_start", "task_id_end"):
        flags.not_yet(name, -1, "A problem is generated as a whole.")
    flags.no_effect("num_concurrent_processes", "use --num_workers")


def check(flags):
    """Raises `UserError` for mistakes that can be seen without imports."""
    require(flags, "problem", *(["data_dir"] if not flags.only_list else []))
    check_mode(flags, _MODES["inspect" if flags.inspect else "generate"], _MODES)
    if flags.beam_pipeline_options and not flags.runner:
        raise UserError("--beam_pipeline_options: only with --runner, which says who runs the pipeline.")


def run(flags):
    """Generates the selected problems, one after the other, or shows their data."""
    from t2t_lite.data.named_problems import generate_problems, select_problems
    from t2t_lite.extras.beam.beam_pipeline import parse_options

    beam = parse_options(flags.runner, flags.beam_pipeline_options) if flags.runner else None
    names = select_problems(flags.problem, flags.exclude_problems, keeps_suffix=flags.inspect)
    if flags.only_list:
        print("\n".join(names))
        return
    data_dir = os.path.normpath(flags.data_dir) if "://" not in flags.data_dir else flags.data_dir
    if flags.inspect:
        return _inspect(names, data_dir, flags)
    generate_problems(
        names,
        data_dir,
        flags.tmp_dir,
        {name: flags[name].value for name in OWN_FLAGS if flags[name].present},
        read_settings(flags, GenerationSettings),
        beam,
    )


def _inspect(names, data_dir, flags):
    from t2t_lite import registry

    hparams = registry.hparams(flags.hparams_set).parse(flags.hparams)
    for name in names:
        registry.problem(name).open_encoders(data_dir)  # raises if there are none
    from t2t_lite.extras.inspection.inspection import inspect_data

    set_name = flags.hparams_set + (f" with {flags.hparams}" if flags.hparams else "")
    for name in names:
        for paragraph in inspect_data(registry.problem(name), data_dir, hparams, set_name):
            print(f"{paragraph}\n", flush=True)


main = _app.command("t2t-datagen", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
