"""Keeps a run's best checkpoint by a metric of the dev set, in a folder that every other command accepts."""

import logging
import math
import os
import re
import time

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.evaluation.metrics import lower_is_better
from t2t_lite.files import copy_files, list_files, remove
from t2t_lite.runs.checkpoint_files import PREFIX, checkpoint_step, newest_checkpoint, write_list
from t2t_lite.runs.checkpoints import average_checkpoints
from t2t_lite.runs.log import lineage
from t2t_lite.runs.run_config import write_run_config

_LOGGER = logging.getLogger("t2t_lite")
FOLDER = "best"


def default_metric(names):
    """Returns the metric that decides which checkpoint is best: BLEU, or one registered to do so, else the loss."""
    deciding = [name for name in registry.list_metrics() if registry.metric(name).decides]
    return next((name for name in names if name in deciding), "loss")


def best_evaluation(evaluations, metric):
    """Returns the best evaluation by a metric; of equal ones that with the lowest loss, then the first.

    Args:
        evaluations: list of (step, {metric: value}), as `monitor.history` returns it.
        metric: str.

    Returns:
        One of the list, or None if none has the metric.
    """
    sign = 1 if lower_is_better(metric) else -1
    return min(
        (evaluation for evaluation in evaluations if metric in evaluation[1]),
        key=lambda evaluation: (sign * evaluation[1][metric], evaluation[1].get("loss", math.inf), evaluation[0]),
        default=None,
    )


class BestCheckpoint:
    """Keeps a copy of the best checkpoint's model in `<output_dir>/best`.

    The best one depends only on the run's evaluations, so a restarted run gives the same result. A new copy is written
    beside the previous one, and replaces it when the list `checkpoint` is replaced by a rename.

    Args:
        context: RunContext.
        metric: str, a metric of the run's evaluations; see `best_evaluation`.
    """

    def __init__(self, context, metric):
        self._context = context
        self._output_dir, self._log = context.output_dir, context.log
        self._folder = os.path.join(context.output_dir, FOLDER)
        self._metric = metric

    @property
    def step(self):
        """The step of the model in the folder, or None."""
        path = best_checkpoint(self._output_dir)
        return checkpoint_step(path) if path else None

    def update(self, history):
        """Copies the best checkpoint, if it is another one than before.

        Args:
            history: list of (step, {metric: value}), as `monitor.history` returns it. Steps whose checkpoints have
                been deleted do not count, except the one in the folder.
        """
        kept = self.step
        if kept not in [line["best_step"] for line in lineage(self._log.read()) if line["event"] == "best"]:
            kept = None  # of a run that was begun anew, or goes on from an earlier step
        there = [
            (step, metrics)
            for step, metrics in history
            if step == kept or tf.io.gfile.exists(f"{self._source(step)}.index")
        ]
        best = best_evaluation(there, self._metric)
        if best is None or best[0] == kept:
            return
        step, value = best[0], best[1][self._metric]
        self._take(step)
        _LOGGER.info(f"best so far: step {step:,}, {self._metric} {value:.4f}: {self._folder}")
        self._log.write("best", history[-1][0], best_step=step, metric=self._metric, value=value)

    def _source(self, step):
        return os.path.join(self._output_dir, f"{PREFIX}-{step}")

    def _take(self, step):
        tf.io.gfile.makedirs(self._folder)
        copy = os.path.join(self._folder, f"{PREFIX}-{step}")
        copy_files(self._context.data.encoder_files, self._folder)
        write_run_config(self._folder, self._context.config)
        # After these: once it is there, a restarted run takes the folder for complete.
        average_checkpoints([self._source(step)], copy)  # the mean of one is its model, without the optimizer
        write_list(self._folder, {f"{PREFIX}-{step}": time.time()})
        for path in list_files(self._folder, rf"{re.escape(PREFIX)}-.*"):
            if not os.path.basename(path).startswith((f"{PREFIX}-{step}.", f"{PREFIX}-{step}_")):
                remove(path)


def best_checkpoint(output_dir):
    """Returns the path of the best checkpoint of a run, without suffix, or None."""
    return newest_checkpoint(os.path.join(output_dir, FOLDER))
