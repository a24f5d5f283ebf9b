"""Declares the flags of t2t-trainer, converts them to settings, and recalls the flags that a run remembers."""

import shlex

from t2t_lite.bin import _app
from t2t_lite.bin._setting_flags import define_evaluation_flags, define_settings, read_settings
from t2t_lite.decoding.command.decode_hparams import evaluation_search
from t2t_lite.errors import UserError, nearest
from t2t_lite.settings.ranges import SEED
from t2t_lite.training.settings import (
    EARLY,
    CheckpointSettings,
    DeviceSettings,
    EarlyStopping,
    EvaluationSettings,
    LengthSettings,
    LogSettings,
    RememberedFlags,
)

# Settings of t2t-trainer that a run remembers, but that are not settings of the `Trainer`.
_THREADS = ("inter_op_parallelism_threads", "intra_op_parallelism_threads")
_COMMAND_FLAGS = ("export_saved_model", *_THREADS)
# {schedule: description}; the names are tensor2tensor's (utils/trainer_lib.py).
TRAINING_SCHEDULES = {
    "continuous_train_and_eval": "train, and evaluate at every checkpoint",
    "train_and_evaluate": "another name of continuous_train_and_eval",
    "train": "train without evaluating",
    "train_eval_and_decode": "train, evaluate, and translate the whole dev set into decode/",
    "test": "one training step and one evaluation batch",
}
EVALUATING_SCHEDULES = {
    "evaluate": "evaluate the newest checkpoint once",
    "evaluate_on_train_data": "evaluate the newest checkpoint once, on the first training shard",
    "continuous_eval": "evaluate each checkpoint as it appears, as t2t-eval does",
    "continuous_eval_on_train_data": "evaluate each checkpoint as it appears, on the first training shard",
}
_EACH = "for c in {output_dir}/model.ckpt-*.index; do t2t-decoder --checkpoint_path=${{c%.index}} {files}; done"
_DEV = "t2t-trainer --schedule=train_eval_and_decode translates the dev set at each evaluation; for any text: "
_FILES = "--decode_from_file={source} --decode_to_file=$c.decodes"
# The commands that replace some schedules of tensor2tensor.
_ELSEWHERE = {
    "decode": "t2t-decoder --output_dir={output_dir} --decode_from_file={source}",
    "continuous_decode": _DEV + _EACH.replace("{files}", _FILES),
    "continuous_decode_on_eval_data": _DEV + _EACH.replace("{files}", _FILES),
    "continuous_decode_on_train_data": _EACH.replace("{files}", _FILES),
    "continuous_decode_from_file": _EACH.replace("{files}", _FILES),
    "run_std_server": "the same t2t-trainer command on each machine, with the TF_CONFIG that t2t-make-tf-configs "
    "prints for it; there are no parameter servers",
}


def define_flags(flags):
    """Declares the command's flags."""
    _app.define_common_flags(flags)
    schedules = "; ".join(f"{name}: {what}" for name, what in (TRAINING_SCHEDULES | EVALUATING_SCHEDULES).items())
    flags.DEFINE_string("schedule", "continuous_train_and_eval", f"What to do ({schedules}).")
    for settings in (LengthSettings, CheckpointSettings, EvaluationSettings, LogSettings, DeviceSettings):
        define_settings(flags, settings)
    define_settings(flags, EarlyStopping, EARLY)
    define_evaluation_flags(flags)
    flags.DEFINE_bool(
        "export_saved_model", False, "At the end of training, export the best model to export/best/1, 2, …."
    )
    flags.DEFINE_bool("dbgprofile", False, "The same as --profile.")
    flags.DEFINE_bool("gpu_automatic_mixed_precision", False, "Train a new run in bfloat16 (dtype_policy).")
    flags.DEFINE_path("warm_start_from", None, "Begin a new run with the weights of this checkpoint or output_dir and, "
                      "unless --hparams_set is given, also with its settings.")  # fmt: skip
    flags.DEFINE_bool(
        "allow_hparams_change", False, "Continue a run with other hyperparameters; the change is noted in its log."
    )
    flags.DEFINE_integer(
        "random_seed", None, "Seed for weights, data order and dropout. Default: the seed in the hyperparameter set.",
        limits=SEED,
    )  # fmt: skip
    flags.DEFINE_integer(
        "inter_op_parallelism_threads", 0, "Number of operations that run in parallel; 0: automatic.", 0, 1024
    )
    flags.DEFINE_integer("intra_op_parallelism_threads", 0, "Number of threads per operation; 0: automatic.", 0, 1024)
    flags.DEFINE_bool("generate_data", False, "Run t2t-datagen first, into --data_dir.")
    flags.DEFINE_path("tmp_dir", "/tmp/t2t_datagen", "Folder for the downloads of --generate_data.")
    flags.DEFINE_pairs("hp_", into="hparams")
    flags.DEFINE_path("decode_from_file", "", "Only for t2t-decoder.")
    _app.define_tf1_flags(flags)


def trainer_settings(flags):
    """Returns the settings of a `Trainer` that the flags describe, as a dict of arguments."""
    evaluation = read_settings(
        flags, EvaluationSettings, eval_steps=1 if flags.schedule == "test" else flags.eval_steps,
        early_stopping=read_settings(flags, EarlyStopping, EARLY), search=evaluation_search(flags.decode_hparams),
        translate_all=flags.schedule == "train_eval_and_decode",
    )  # fmt: skip
    return {
        "evaluation": None if flags.schedule == "train" else evaluation,
        "checkpoints": read_settings(flags, CheckpointSettings),
        "devices": read_settings(flags, DeviceSettings),
        "log": read_settings(flags, LogSettings, profile=flags.profile or flags.dbgprofile),
    }


def also_asked(flags):
    """Returns a dict of the remembered flags that `trainer_settings` lacks, or None if all have their defaults."""
    values = {name: flags[name] for name in _COMMAND_FLAGS if flags[name].present or flags[name].value}
    return {name: flag.value for name, flag in values.items()} or None


def inexact_flags(flags):
    """Returns a list of str that name the flags whose values affect the last bits of the results, with the reason."""
    return [f"--{name}: the order of additions depends on it" for name in _THREADS if flags[name].value]


def recall(flags, output_dir, earlier):
    """Sets each flag that is not on the command line to its last value in the run in output_dir.

    Args:
        flags: absl's FlagValues, modified in place.
        output_dir: str.
        earlier: dict, the `hparams.json` of that run, or {}.

    Raises:
        UserError: a remembered value is invalid for its flag, or contradicts a given flag.
    """
    remembered = RememberedFlags(output_dir or "", earlier.get("plan", {}))
    remembered.restore(flags, _COMMAND_FLAGS)
    check_early_stopping(flags)


def check_schedule_name(flags):
    """Raises `UserError` for unknown schedules; the message may name the command to use instead."""
    name = flags.schedule
    if name in _ELSEWHERE:
        folder, source = flags.output_dir or "OUTPUT_DIR", flags.decode_from_file or "FILE"
        instead = _ELSEWHERE[name].format(output_dir=shlex.quote(folder), source=shlex.quote(source))
        raise UserError(f"--schedule={name}: t2t-trainer does not support this schedule. Type instead: {instead}")
    available = (*TRAINING_SCHEDULES, *EVALUATING_SCHEDULES)
    if name not in available:
        raise UserError(
            f"--schedule={name}: not available. {nearest(name, (*available, *_ELSEWHERE), end=' ')}"
            f"Expected one of {', '.join(available)}."
        )


def check_early_stopping(flags):
    """Raises `UserError` if early stopping is requested with a schedule that does not evaluate."""
    if flags.schedule == "train" and flags["eval_early_stopping_steps"].present and flags.eval_early_stopping_steps:
        raise UserError("--eval_early_stopping_steps: --schedule=train does not evaluate. Remove one of the two flags.")
