"""The flags of t2t-trainer, the resulting settings, and those that a run remembers."""

import os

from t2t_lite.bin import _app
from t2t_lite.bin._setting_flags import define_evaluation_flags, define_settings, read_settings
from t2t_lite.bin.trainer import schedules
from t2t_lite.decoding.command.decode_hparams import evaluation_search
from t2t_lite.errors import located
from t2t_lite.settings.ranges import SEED
from t2t_lite.training.settings import (
    EARLY,
    CheckpointSettings,
    DeviceSettings,
    EarlyStopping,
    EvaluationSettings,
    LengthSettings,
    LogSettings,
)

# Remembered settings that belong to this command, not to the Trainer.
_OF_COMMAND = ("export_saved_model", "inter_op_parallelism_threads", "intra_op_parallelism_threads")


def define_flags(flags):
    """Declares the command's flags."""
    _app.define_common_flags(flags)
    flags.DEFINE_string("schedule", "continuous_train_and_eval", f"What to do ({schedules.help_string()}).")
    for settings in (LengthSettings, CheckpointSettings, EvaluationSettings, LogSettings, DeviceSettings):
        define_settings(flags, settings)
    define_settings(flags, EarlyStopping, EARLY)
    define_evaluation_flags(flags)
    flags.DEFINE_bool("export_saved_model", False, "At the end export the best model, to export/best/1, 2, ….")
    flags.DEFINE_bool("dbgprofile", False, "The same as --profile.")
    flags.DEFINE_bool("gpu_automatic_mixed_precision", False, "Train a new run in bfloat16 (dtype_policy).")
    flags.DEFINE_path(
        "warm_start_from",
        None,
        "Begin a new run with the weights (without --hparams_set also the settings) of this checkpoint or output_dir.",
    )
    flags.DEFINE_bool("allow_hparams_change", False, "Continue a run with other hyperparameters; noted in its log.")
    flags.DEFINE_integer(
        "random_seed", None, "Seed of weights, data order and dropout; default: the set's.", limits=SEED
    )
    flags.DEFINE_integers(
        "random_seeds", [], "Train a run for each, in output_dir/seed_N; print their mean and deviation.", SEED
    )
    flags.DEFINE_integer("inter_op_parallelism_threads", 0, "Operations run at once; 0: automatic.", 0, 1024)
    flags.DEFINE_integer("intra_op_parallelism_threads", 0, "Threads of an operation; 0: automatic.", 0, 1024)
    flags.DEFINE_bool("generate_data", False, "Run t2t-datagen first, into --data_dir.")
    flags.DEFINE_path("tmp_dir", "/tmp/t2t_datagen", "Downloads of --generate_data.")
    flags.DEFINE_pairs("hp_", into="hparams")
    flags.not_yet("decode_to_file", "", "Use t2t-decoder.")
    flags.not_yet("decode_reference", "", "Use t2t-decoder.")
    flags.DEFINE_path("decode_from_file", "", "Only for t2t-decoder.")
    _app.define_tf1_flags(flags)


def trainer_settings(flags):
    """Returns the settings of a `Trainer` with the values of the flags, a dict of arguments."""
    evaluation = read_settings(
        flags,
        EvaluationSettings,
        eval_steps=1 if flags.schedule == "test" else flags.eval_steps,
        early_stopping=read_settings(flags, EarlyStopping, EARLY),
        search=evaluation_search(flags.decode_hparams),
        translate_all=flags.schedule == "train_eval_and_decode",
    )
    return {
        "evaluation": None if flags.schedule == "train" else evaluation,
        "checkpoints": read_settings(flags, CheckpointSettings),
        "devices": read_settings(flags, DeviceSettings),
        "log": read_settings(flags, LogSettings, profile=flags.profile or flags.dbgprofile),
    }


def also_asked(flags):
    """Returns the flags that a run remembers in addition to `trainer_settings`, a dict, or None if all are defaults."""
    values = {name: flags[name] for name in _OF_COMMAND if flags[name].present or flags[name].value}
    return {name: flag.value for name, flag in values.items()} or None


def recall(flags, output_dir, earlier):
    """Sets flags that were not given to the last values of the run in output_dir.

    Args:
        flags: absl's FlagValues, modified in place.
        output_dir: str.
        earlier: dict, the `hparams.json` of that run, or {}.

    Raises:
        UserError: a remembered value is invalid for its flag, or contradicts those that were given.
    """
    from t2t_lite.training.plan import UNTOLD, plan_of, warn_of_no_plan

    plan = dict(earlier.get("plan", {}))
    if not flags["train_steps"].present:
        warn_of_no_plan(output_dir, earlier, flags.train_steps)
    if "search" in plan:
        plan["decode_hparams"] = ",".join(f"{name}={value}" for name, value in (plan.pop("search") or {}).items())
    if flags["worker_gpu"].present:
        plan.pop("logical_cpus", None)  # they would replace GPUs
    with located(os.path.join(output_dir or "", "hparams.json")):
        for name in {*plan_of(0, **UNTOLD), "decode_hparams", *_OF_COMMAND} & plan.keys():
            flags[name].recall(plan[name])
    schedules.check_early_stopping(flags)
