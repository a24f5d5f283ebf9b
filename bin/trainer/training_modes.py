"""The modes of t2t-trainer, and functions that check their flags."""

import os
import shlex

from t2t_lite.bin.t2t_eval import evaluate
from t2t_lite.bin.trainer.idle_flags import warn_of_idle_flags
from t2t_lite.bin.trainer.training_flags import (
    EVALUATING_SCHEDULES,
    TRAINING_SCHEDULES,
    check_early_stopping,
    check_schedule_name,
    recall,
)
from t2t_lite.bin.trainer.training_run import check_run, earlier_run, train_run
from t2t_lite.cli import commands
from t2t_lite.cli.commands import Mode, check_mode, chosen_mode, require
from t2t_lite.errors import UserError

TRAINING = ("export_saved_model", "allow_hparams_change")


def modes():
    """Returns the command's modes, {name: Mode}; modes of extras come first."""
    return commands.modes("t2t-trainer", _MODES)


def check(flags):
    """Raises `UserError` for flags that are missing or contradict each other, and for unknown schedules."""
    chosen_mode(flags, modes()).check(flags)


def check_schedule(flags):
    """Returns whether a run may remember flags; raises `UserError` for an unknown schedule or a flag of t2t-decoder."""
    check_schedule_name(flags)
    if flags.decode_from_file:
        raise UserError(
            f"--decode_from_file: t2t-trainer does not translate files. Type instead: t2t-decoder "
            f"--output_dir={shlex.quote(flags.output_dir or 'OUTPUT_DIR')} "
            f"--decode_from_file={shlex.quote(flags.decode_from_file)}"
        )
    return bool(flags.output_dir) and ("://" in flags.output_dir or os.path.exists(_config(flags)))


def check_training(flags, several=None):
    """Checks the flags of the modes that train, as `check` does.

    Args:
        flags: absl's FlagValues.
        several: str, the flag that requests several runs in the output_dir, or None for one run.
    """
    remembers, every = check_schedule(flags), modes()
    mode = chosen_mode(flags, every)
    check_mode(flags, mode, every)
    check_early_stopping(flags)
    for other in every.values():
        if other.others and other is not mode:
            other.others(flags)
    if several:
        _check_several_runs(several, flags)
    may_train = flags.schedule in TRAINING_SCHEDULES and not remembers
    settings = ["problem"] if flags.warm_start_from else ["problem", "hparams_set"]
    require(flags, "data_dir", "output_dir", *(settings if may_train else []))


def _config(flags):
    return os.path.join(flags.output_dir or "", "hparams.json")


def _check_several_runs(flag, flags):
    """Raises `UserError` unless the flags describe several runs, each trained and evaluated on one machine."""
    if flags.schedule not in TRAINING_SCHEDULES or flags.schedule in ("train", "test"):
        raise UserError(f"{flag}: expected a schedule that trains and evaluates, not --schedule={flags.schedule}.")
    if os.environ.get("TF_CONFIG"):
        raise UserError(f"{flag}: several runs cannot use several machines. Unset TF_CONFIG.")
    if flags.output_dir and os.path.exists(_config(flags)):  # remote files are checked later
        raise UserError(
            f"{flag}: --output_dir={flags.output_dir} already holds a run. Expected a new folder for several runs."
        )


def train(flags):
    """Trains a run."""
    prepare(flags)
    from t2t_lite.training.distribution import set_threads

    set_threads(flags.inter_op_parallelism_threads, flags.intra_op_parallelism_threads)
    train_run(flags, flags.output_dir, flags.random_seed)


def evaluate_run(flags):
    """Evaluates the checkpoints that --schedule selects, and prints the metrics."""
    evaluate(flags, once=flags.schedule.startswith("evaluate"), on_train_data="on_train_data" in flags.schedule)


def prepare(flags):
    """Recalls remembered flags and makes all checks that do not need TensorFlow. Raises `UserError`."""
    earlier = earlier_run(flags, flags.output_dir)
    recall(flags, flags.output_dir, earlier)  # recalled flags affect the checks below
    check_run(flags)
    warn_of_idle_flags(flags, earlier)


_MODES = {
    "evaluate": Mode(
        "--schedule=evaluate", ("eval_use_test_set", "random_seed", *TRAINING), run=evaluate_run,
        selected_by=lambda flags: flags.schedule in EVALUATING_SCHEDULES, check=check_training,
    ),
    "train": Mode("training", ("random_seed", *TRAINING), run=train, check=check_training),
}  # fmt: skip
