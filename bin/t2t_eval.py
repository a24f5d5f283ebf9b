"""Evaluates every checkpoint of a run, even while the trainer is still running.

    t2t-eval --output_dir=train --data_dir=data                       # waits up to four hours for a new checkpoint
    t2t-eval --output_dir=train --data_dir=data --eval_timeout_mins=0 # evaluates only the existing checkpoints
    t2t-eval --output_dir=train --data_dir=data --eval_use_test_set   # evaluates the test records

The command prints one line per checkpoint to standard output, and writes the metrics for TensorBoard (eval/,
eval_test/) and to eval.log. A later t2t-eval skips the checkpoints that eval.log lists. Which model to evaluate is read
from the run's folder.
"""

import math
import sys

from t2t_lite.bin import _app
from t2t_lite.bin._setting_flags import define_evaluation_flags, define_settings, hparams_changes
from t2t_lite.cli.commands import require
from t2t_lite.errors import LOGGER
from t2t_lite.settings.ranges import GPUS
from t2t_lite.training.settings import EvaluationSettings

_TRAINING = (
    "schedule", "train_steps", "local_eval_frequency", "eval_throttle_seconds", "save_checkpoints_secs",
    "keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps", "random_seed", "random_seeds",
    "tmp_dir",
)  # fmt: skip


def define_flags(flags):
    """Declares the command's flags."""
    _app.define_common_flags(flags)
    define_settings(flags, EvaluationSettings, names=("eval_steps", "eval_stride"))
    define_evaluation_flags(flags)
    flags.DEFINE_integer(
        "worker_gpu", 1, "Number of GPUs; 0 evaluates on the CPU, e.g. while a trainer uses the GPU.", limits=GPUS
    )
    for name in _TRAINING:
        flags.no_effect(name, "this is a training setting")
    _app.define_tf1_flags(flags)


def check(flags):
    """Raises `UserError` for flags that are missing."""
    require(flags, "output_dir", "data_dir")


def run(flags):
    """Evaluates checkpoints and prints their metrics."""
    evaluate(flags)


def evaluate(flags, *, once=False, on_train_data=False):
    """Evaluates the newest checkpoint of --output_dir, or each checkpoint as it appears, and prints the metrics.

    Raises:
        UserError: a checkpoint or the records are missing, or a flag contradicts the run's training.
    """
    from t2t_lite import registry
    from t2t_lite.data.records import Records
    from t2t_lite.data.splits import DatasetSplit
    from t2t_lite.decoding.command.decode_hparams import evaluation_search
    from t2t_lite.runs.directory import check_known, check_names, parse_changes
    from t2t_lite.runs.locating import find_checkpoint
    from t2t_lite.runs.run_config import read_earlier_run

    split = DatasetSplit.TRAIN if on_train_data else DatasetSplit.TEST if flags.eval_use_test_set else DatasetSplit.EVAL
    changes, search = hparams_changes(flags), evaluation_search(flags.decode_hparams)
    if config := read_earlier_run(flags.output_dir, imports=not flags.t2t_usr_dir):
        check_names(config, flags.problem, flags.model, flags.hparams_set)
        check_known(config, changes=changes)
        _ = Records(registry.problem(config["problem"]), flags.data_dir, split).paths  # raises an error without records
    if once or not flags.eval_timeout_mins:  # otherwise a checkpoint may still appear
        find_checkpoint(flags.output_dir)
    from t2t_lite.training.checkpoint_evaluation import CheckpointEvaluation
    from t2t_lite.training.distribution import gpus_as_needed, hide_gpus
    from t2t_lite.training.settings import EvaluationSettings

    if flags.worker_gpu > 1:
        LOGGER.warning(f"--worker_gpu={flags.worker_gpu}: an evaluation uses only one device.")
    if flags.worker_gpu == 0:
        hide_gpus()
    else:
        gpus_as_needed()  # allocates GPU memory only as needed, which leaves the rest to a trainer
    settings = EvaluationSettings(flags.eval_steps, flags.eval_stride, search=search)
    evaluation = CheckpointEvaluation(
        flags.output_dir, flags.data_dir, split, settings, lambda trained: parse_changes(trained, changes)
    )
    if once:
        for name, value in evaluation.newest().items():
            print(f"{name} = {value:.4f}")
        return
    timeout = math.inf if flags.eval_timeout_mins < 0 else 60.0 * flags.eval_timeout_mins
    for path, metrics in evaluation.follow(timeout):
        print(path, *(f"{name} = {value:.4f}" for name, value in metrics.items()), sep="  ", flush=True)


main = _app.command("t2t-eval", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
