"""Searches whose runs are made up: each writes a train.log with given evaluations, and trains nothing."""

import os

from t2t_lite.extras.autotune.ranged_hparams import RangedHParams
from t2t_lite.extras.autotune.search import Search
from t2t_lite.extras.autotune.study import Objective, Study
from t2t_lite.runs.log import RunLog
from t2t_lite.training.monitor import history

LOSS = Objective("loss", maximize=False)


def ranges():
    made = RangedHParams()
    made.set_float("learning_rate_constant", 0.01, 10.0, scale=made.LOG_SCALE)
    made.set_float("optimizer_adam_beta2", 0.9, 0.999, scale=made.REVERSE_LOG_SCALE)
    made.set_float("label_smoothing", 0.0, 0.2)
    made.set_int("num_hidden_layers", 1, 4)
    made.set_discrete("batch_size", [256, 512])
    made.set_categorical("optimizer", ["adam", "adafactor"])
    return made


def study(folder, objective=LOSS, seed=1, train_steps=8, **facts):
    folder.mkdir(exist_ok=True)
    return Study(str(folder), ranges(), objective, facts, train_steps, seed)


class Runs:
    """Stands for training.

    Args:
        curves: function of the number of calls that returns {step: loss, or a dict of metrics}, how the run ended, a
            str, or an exception.
    """

    def __init__(self, curves):
        self.curves, self.calls = curves, []

    def __call__(self, output_dir, changes, random_seed, stop_when):
        self.calls.append((output_dir, changes, random_seed))
        curve = self.curves(len(self.calls) - 1)
        if isinstance(curve, BaseException):
            raise curve
        if isinstance(curve, str):
            return curve
        os.makedirs(output_dir, exist_ok=True)
        log = RunLog(output_dir)
        for step, found in curve.items():
            log.write("evaluation", step, **(found if isinstance(found, dict) else {"loss": found}))
            if stop_when and stop_when(history(log)):
                return "early_stopping"
        return "train_steps"


def search(folder, curves, **arguments):
    """Returns (Search, its Runs)."""
    runs = Runs(curves)
    return Search(study(folder, **arguments), str(folder), runs, 429459), runs
