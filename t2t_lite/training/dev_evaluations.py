"""Uses the dev set in training: evaluates, keeps the best model, stops early."""

import os
import time

import tensorflow as tf

from t2t_lite.errors import UserError, nearest
from t2t_lite.files import write_bytes
from t2t_lite.training.evaluation import metric_names


class DevEvaluations:
    """The evaluations of a training run, and their consequences.

    These depend only on the log, so a restarted run continues like one that was never stopped.

    Args:
        evaluations: Evaluations, or None if this run, or this machine of several, does not evaluate.
        best: BestCheckpoint, or None to keep no model.
        early_stopping: EarlyStopping.
        throttle_seconds: float, minimum time between the starts of two evaluations, except the last.
        replicas: Replicas, whose first machine decides for all.
    """

    def __init__(self, evaluations, best, early_stopping, throttle_seconds, replicas):
        self._evaluations = evaluations
        self._best = best
        self._early_stopping = early_stopping
        self._throttle_seconds = throttle_seconds
        self._replicas = replicas
        self._started = -float("inf")
        self._sum = tf.function(replicas.sum, autograph=False)

    def evaluate(self, step, is_last):
        """Evaluates the current model, unless it is too soon; returns the metrics, or {}."""
        if self._evaluations is None:
            return {}
        if not is_last and time.monotonic() - self._started < self._throttle_seconds:
            return {}
        self._started = time.monotonic()
        metrics = self._evaluations.evaluate(step)
        self._update_best()
        return metrics

    def catch_up(self, step, is_due):
        """Completes what a killed run missed after its last checkpoint.

        Args:
            step: int, the checkpoint's step.
            is_due: bool, whether this step has an evaluation.

        Returns:
            dict, the metrics of this step, or {}.
        """
        if self._evaluations is None:
            return {}
        logged = self._evaluations.at(step)
        if logged is None and is_due:
            return self.evaluate(step, is_last=True)
        self._update_best()
        return logged or {}

    def reason_to_stop(self):
        """Returns the reason to stop early, a str, or None. All machines of a run must call it at the same steps."""
        if not self._early_stopping.steps:
            return None
        why = self._early_stopping.reason(self._evaluations.history()) if self._evaluations else None
        if self._replicas.cluster and float(self._sum(tf.constant(float(why is not None)))) > 0:
            why = why or "the first worker's log says why"
        return why

    def _update_best(self):
        if self._best:
            self._best.update(self._evaluations.history())


def check_metrics(problem, hparams, early_stopping, best_metric, evaluates):
    """Raises `UserError` for metrics that a run's evaluations do not compute.

    Args:
        problem: Problem.
        hparams: HParams.
        early_stopping: EarlyStopping.
        best_metric: str, or None or "none".
        evaluates: bool, whether the run evaluates.
    """
    if early_stopping.steps and not evaluates:
        raise UserError(
            "--eval_early_stopping_steps: needs evaluations, and --schedule=train makes none. Leave one of them out."
        )
    names = metric_names(problem, hparams)
    early_stopping.check(names)
    if best_metric not in (*names, None, "none"):
        raise UserError(
            f"--best_checkpoint_metric={best_metric}: not a metric of this run's evaluations. "
            f"{nearest(best_metric, names)} Expected one of {', '.join(names)}, or none."
        )


def write_translations(output_dir, step, texts):
    """Writes `<output_dir>/decode/dev-<step>.inputs`, `.decodes` and `.targets`, one line per example.

    Args:
        output_dir: str.
        step: int.
        texts: list of (input, output, reference).
    """
    folder = os.path.join(output_dir, "decode")
    tf.io.gfile.makedirs(folder)
    for name, lines in zip(("inputs", "decodes", "targets"), zip(*texts, strict=True), strict=True):
        text = "".join(f"{' '.join(line.split())}\n" for line in lines)
        write_bytes(os.path.join(folder, f"dev-{step}.{name}"), text.encode())
