"""Trains a model, with an evaluation every --local_eval_frequency steps.

Running the same command again continues from the last checkpoint in --output_dir; --train_steps counts from the start
of the run. A run remembers its problem, model and hyperparameters, so that they need not be given again; the name of
its set means the hyperparameters that the run has. Contradicting them is an error. A run also remembers flags such as
--train_steps, --keep_checkpoint_max or --best_checkpoint_metric; they may be given again with other values.

--random_seeds=1,2,3 trains a run for each, in --output_dir/seed_1, …, and prints their mean and standard deviation.

--hp_NAME VALUE changes one hyperparameter, as --hparams=NAME=VALUE does.
"""

import os
import sys

from t2t_lite.bin import _app
from t2t_lite.bin.trainer.training_flags import define_flags
from t2t_lite.bin.trainer.training_modes import check, modes
from t2t_lite.cli.commands import chosen_mode


def run(flags):
    """Trains, or evaluates and prints the metrics, according to the flags; returns the exit status."""
    return chosen_mode(flags, modes()).run(flags)


def main(argv=None):
    """Runs the command; returns its exit status."""
    in_cluster = argv is None and os.environ.get("TF_CONFIG")
    what = _run_in_cluster if in_cluster else run
    return _app.main("t2t-trainer", define_flags, what, argv, check=check)


def _run_in_cluster(flags):
    """Calls `run`; a failure exits at once, since TensorFlow's shutdown would wait for machines that may be gone."""
    try:
        return run(flags)
    except Exception as error:
        status = _app.report("t2t-trainer", error)
        if status is None:
            raise
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
