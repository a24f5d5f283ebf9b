"""Evaluates every checkpoint of a run, also while a trainer is at work there.

    t2t-eval --output_dir=train --data_dir=data                       # each new one, until none came for four hours
    t2t-eval --output_dir=train --data_dir=data --eval_timeout_mins=0 # those that are there
    t2t-eval --output_dir=train --data_dir=data --eval_use_test_set

A line for each checkpoint goes to standard output, metrics to TensorBoard (eval/, eval_test/) and to eval.log, from
which another t2t-eval sees what is done. What the model is, the run's folder says.
"""

import sys

from t2t_lite.bin import _app, _evaluating
from t2t_lite.ranges import GPUS

_TRAINING = (
    "schedule", "train_steps", "local_eval_frequency", "eval_throttle_seconds", "save_checkpoints_secs",
    "keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps", "random_seed", "tmp_dir",
)  # fmt: skip


def define_flags(flags):
    """Declares the command's flags."""
    _app.define_common_flags(flags)
    _evaluating.define_flags(flags)
    flags.DEFINE_integer("worker_gpu", 1, "0: evaluate on the CPU, beside a trainer on the GPU.", limits=GPUS)
    for name in _TRAINING:
        flags.no_effect(name, "it is a setting of training")
    _app.define_tf1_flags(flags)


def check(flags):
    """Raises `UserError` for flags that are missing."""
    _app.require(flags, "output_dir", "data_dir")


def run(flags):
    """Evaluates and prints."""
    _evaluating.evaluate(flags)


def main(argv=None):
    """Runs the command; returns its exit status."""
    return _app.main("t2t-eval", define_flags, run, argv, check=check)


if __name__ == "__main__":
    sys.exit(main())
