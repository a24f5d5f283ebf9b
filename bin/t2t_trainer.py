"""Trains a model and evaluates it every --local_eval_frequency steps.

Running the same command again continues from the last checkpoint in --output_dir; --train_steps counts from the start
of the run. A run remembers its problem, model and hyperparameters, so these flags can be omitted when the run is
continued; giving them different values is an error. If --hparams_set is given again, the run keeps the values that were
stored when it began. A run also remembers flags such as --train_steps, --keep_checkpoint_max or
--best_checkpoint_metric, but their values may be changed.

--hp_NAME VALUE changes one hyperparameter, as --hparams=NAME=VALUE does.
"""

import os
import sys

from t2t_lite.bin import _app
from t2t_lite.bin.trainer.training_flags import define_flags
from t2t_lite.bin.trainer.training_modes import check, modes
from t2t_lite.cli.commands import chosen_mode


def run(flags):
    """Trains a model, or evaluates it and prints the metrics, as the flags request; returns the exit status."""
    return chosen_mode(flags, modes()).run(flags)


def main(argv=None):
    """Runs the command; returns its exit status."""
    in_cluster = argv is None and os.environ.get("TF_CONFIG")
    function = _run_in_cluster if in_cluster else run
    return _app.main("t2t-trainer", define_flags, function, argv, check=check)


def _run_in_cluster(flags):
    """Calls `run`; exits immediately on failure, since TensorFlow's shutdown may wait for machines that are gone."""
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
