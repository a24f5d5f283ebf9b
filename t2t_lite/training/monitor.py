"""Monitors a training run on the dev set: evaluates, keeps the best model, and stops early.

The best checkpoint is kept in a folder that all other commands accept as a run.
"""

import functools
import json
import math
import os
import re
import time

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.corpora.plain_text import as_field
from t2t_lite.data.corruption import batch_features
from t2t_lite.errors import LOGGER, UserError, nearest
from t2t_lite.evaluation import tokenizations
from t2t_lite.evaluation.metrics import check_features, lower_is_better, metric_names, metrics_of, own_metrics
from t2t_lite.files import copy_files, list_files, remove, write_bytes
from t2t_lite.runs.checkpoint_files import PREFIX, checkpoint_step, newest_checkpoint, write_list
from t2t_lite.runs.checkpoints import average_checkpoints
from t2t_lite.runs.log import lineage
from t2t_lite.runs.run_config import write_run_config
from t2t_lite.training.evaluator import evaluate_and_log
from t2t_lite.training.objectives import further_losses

_MANY_ZEROS = 3  # a metric that has been 0 in this many evaluations is reported
BEST_FOLDER = "best"


class Monitor:
    """Evaluates a training run, keeps its best model, and decides when it stops early.

    Decisions depend only on the log, so a restarted run continues like a run that was never stopped.

    Args:
        context: RunContext. With several machines, the first machine decides for all machines.
        evaluator: Evaluator, or None if this run or this machine does not evaluate.
        keep_best: function that is called with `history` after each evaluation, see `keep_best`, or None.
        stop_when: see `Trainer`.
        settings: dict, `EvaluationSettings.comparable`. Decisions ignore evaluations with other settings.
    """

    def __init__(self, context, evaluator, keep_best=None, stop_when=None, settings=None):
        self._output_dir, self._settings, self._log = context.output_dir, context.evaluation, context.log
        self._replicas = context.replicas
        self._evaluator = evaluator
        self._keep_best = keep_best
        self._stop_when = stop_when
        self._compared = json.loads(json.dumps(settings or {}))  # as in the log, where tuples are lists
        self._started = -float("inf")
        self._sum = tf.function(context.replicas.sum, autograph=False)

    def evaluate(self, step, is_last):
        """Evaluates the current model and returns the metrics, or {} if the last evaluation was too recent."""
        if self._evaluator is None:
            return {}
        if not is_last and time.monotonic() - self._started < self._settings.eval_throttle_seconds:
            return {}
        metrics = self._evaluate(step)
        evaluations = self._history()
        if len(evaluations) == _MANY_ZEROS or (is_last and len(evaluations) < _MANY_ZEROS):
            warn_of_zeros(evaluations)
        return metrics

    def _history(self):
        return history(self._log, self._compared)

    def _evaluate(self, step):
        self._started = time.monotonic()
        if self._keep_best and not self._history() and (changed := self._changes()):
            LOGGER.warning(
                f"{', '.join(changed)} changed since the last evaluation. Evaluations before and after the change are "
                "not compared: the best model and early stopping start anew."
            )
        requested = (
            self._settings.best_checkpoint_metric,
            self._settings.early_stopping.steps and self._settings.early_stopping.metric,
        )
        writes = functools.partial(write_translations, self._output_dir) if self._settings.translate_all else None
        facts = {"settings": self._compared} if self._compared else {}
        metrics = evaluate_and_log(self._evaluator, self._log, step, on_texts=writes, also_shown=requested, **facts)
        self._update_best()
        return metrics

    def _changes(self):
        """Returns the names of the settings that differ from those of the last evaluation in the log."""
        lines = [line for line in lineage(self._log.read()) if line["event"] == "evaluation"]
        names = _differences(lines[-1].get("settings"), self._compared) if lines else []
        return ["the dev set" if name == "records" else name for name in names]

    def catch_up(self, step, is_due):
        """Completes what a killed run left undone: evaluates its last checkpoint if needed, and updates the best one.

        Args:
            step: int, the checkpoint's step.
            is_due: bool, whether this step should be evaluated.

        Returns:
            The metrics of this step, a dict, or {}.
        """
        if self._evaluator is None:
            return {}
        logged = dict(history(self._log)).get(step)
        if logged is None and is_due:
            return self._evaluate(step)
        self._update_best()
        return logged or {}

    def reason_to_stop(self):
        """Returns the reason to stop early, a str, or None. All machines of a run must call it at the same steps."""
        if self._settings is None or not (self._settings.early_stopping.steps or self._stop_when):
            return None
        why = self._reason_to_stop(self._history()) if self._evaluator else None
        if self._replicas.cluster and float(self._sum(tf.constant(float(why is not None)))) > 0:
            why = why or "see the first worker's log"
        return why

    def _reason_to_stop(self, evaluations):
        why = reason_to_stop(self._settings.early_stopping, evaluations)
        return self._stop_when(evaluations) if self._stop_when and not why else why

    def _update_best(self):
        if self._keep_best:
            self._keep_best(self._history())


def history(log, settings=None):
    """Returns the evaluations that led to the run's newest state, a list of (step, {metric: float}) sorted by step.

    Scores that are not comparable are omitted: evaluations with other `settings` (`EvaluationSettings.comparable`), and
    BLEU scores whose tokenization differs from that of the newest evaluation.
    """
    lines = [line for line in lineage(log.read()) if line["event"] == "evaluation"]
    lines = [line for line in lines if not _differences(line.get("settings"), settings)]
    last = {line["step"]: (metrics_of(line), _tokenization(line)) for line in lines}  # the last log entry of each step
    newest = _tokenization(lines[-1]) if lines else None
    for metrics, tokenization in last.values():
        if tokenization != newest:
            metrics.pop("bleu", None)
    return sorted((step, metrics) for step, (metrics, _) in last.items())


def _differences(settings, others):
    """Returns the names of settings with different values in two dicts; logs of older versions lack some settings."""
    settings, others = settings or {}, others or {}
    return [name for name in settings if name in others and settings[name] != others[name]]


def _tokenization(line):
    """Returns the tokenization in an evaluation's BLEU signature, or the default if a log has no signature."""
    named = re.search(r"\btok:([^|]+)", line.get("bleu_signature") or "")
    return named[1] if named else tokenizations.DEFAULT


def warn_of_zeros(evaluations):
    """Warns of metrics, other than losses, that are 0 in all evaluations; `evaluations` come from `history`."""
    zeros = [
        name
        for name in registry.list_metrics()
        if not lower_is_better(name) and all(metrics.get(name) == 0 for _, metrics in evaluations)
    ]
    if zeros and len(evaluations) > 1:
        spaces = "If the target language has no spaces, set --tokenization." if "bleu" in zeros else ""
        LOGGER.warning(
            f"{' and '.join(zeros)} stayed at 0 in all {len(evaluations)} evaluations. This is normal early in "
            f"training; later, check the outputs. {spaces}".rstrip()
        )


def check_metrics(model, problem, hparams, settings):
    """Raises `UserError` if the settings name a metric that evaluations do not compute, or its wrong direction.

    Args:
        model: keras.Model. It is traced only if a metric measures a feature other than the targets, or may be one of
            the model's other losses and costs.
        problem: Problem.
        hparams: HParams.
        settings: EvaluationSettings.
    """
    names = metric_names(problem, hparams, settings.translate_all)
    rule, best = settings.early_stopping, settings.best_checkpoint_metric
    computed = own_metrics(problem, hparams)
    is_of_targets = all(registry.metric(name).feature == "targets" for name in computed)
    if not is_of_targets or not {rule.metric if rule.steps else "loss", best or "none"} <= {*names, "none"}:
        further = further_losses(model, batch_features(problem, type(model)))
        if settings.eval_stride:
            further = tuple(name for name in further if not name.startswith("cost_"))  # see `Evaluator`
        names += further
        others = [name.removeprefix("loss_") for name in further if name.startswith("loss_")]
        check_features(problem, computed, ["targets", *others])
    if rule.steps:
        _check_computed("eval_early_stopping_metric", rule.metric, names)
        if rule.metric_minimize not in (None, lower_is_better(rule.metric)):
            better = "a lower value" if lower_is_better(rule.metric) else "a higher value"
            raise UserError(
                f"--eval_early_stopping_metric_minimize={str(rule.metric_minimize).lower()}: for {rule.metric}, "
                f"{better} is better. Remove the flag."
            )
    if best not in (None, "none"):
        _check_computed("best_checkpoint_metric", best, names, ", or none")


def _check_computed(flag, metric, names, others=""):
    if metric not in names:
        raise UserError(
            f"--{flag}={metric}: not a metric of this run's evaluations. {nearest(metric, names, end=' ')}Expected one "
            f"of {', '.join(names)}{others}."
        )


def reason_to_stop(rule, history):
    """Returns the reason to stop now, a str, or None to continue (mirrors tensor2tensor's metrics_hook.py).

    The run stops if no later value of the metric is better, by `rule.metric_delta` or more, than the newest value that
    is at least `rule.steps` steps old.

    Args:
        rule: `EarlyStopping`.
        history: list of (step, {metric: value}), sorted by step, as returned by `monitor.history`.
    """
    points = [(step, metrics[rule.metric]) for step, metrics in history if rule.metric in metrics]
    last = points[-1][0] if points else 0
    old = [point for point in points if rule.steps and point[0] <= last - rule.steps]
    if not old:
        return None
    (step, before), later = old[-1], [value for _, value in points[len(old) :]]
    decrease = lower_is_better(rule.metric)
    gains = [before - value if decrease else value - before for value in later]
    if not all(gain < rule.metric_delta for gain in gains):
        return None
    return (
        f"{rule.metric} improved by less than {rule.metric_delta:g} in {rule.steps:,} steps: it was {before:g} at "
        f"step {step:,}, and at best {(min if decrease else max)(later):g} in the {last - step:,} steps since; to "
        "continue, set --eval_early_stopping_steps to a larger number, or to 0"
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
        text = "".join(f"{as_field(line)}\n" for line in lines)
        write_bytes(os.path.join(folder, f"dev-{step}.{name}"), text.encode())


def default_metric(names):
    """Returns the metric that decides which checkpoint is best: one registered with `decides`, or the loss."""
    deciding = [name for name in registry.list_metrics() if registry.metric(name).decides]
    return next((name for name in names if name in deciding), "loss")


def best_evaluation(evaluations, metric):
    """Returns the best evaluation by a metric. Ties are broken by the lower loss, then by the earlier step.

    Args:
        evaluations: list of (step, {metric: value}), as returned by `monitor.history`.
        metric: str.

    Returns:
        An element of `evaluations`, or None if no evaluation has the metric.
    """
    sign = 1 if lower_is_better(metric) else -1
    return min(
        (evaluation for evaluation in evaluations if metric in evaluation[1]),
        key=lambda evaluation: (sign * evaluation[1][metric], evaluation[1].get("loss", math.inf), evaluation[0]),
        default=None,
    )


def keep_best(context, metric, history):
    """Copies the best checkpoint to `<output_dir>/best`, without the state of the optimizer, if it has changed.

    The choice depends only on the run's evaluations, so a restarted run makes the same choice. A new copy is written
    next to the previous copy, and takes effect when a rename replaces the file `checkpoint`.

    Args:
        context: RunContext.
        metric: str, a metric of the run's evaluations: see `best_evaluation`.
        history: list of (step, {metric: value}), as returned by `monitor.history`. Steps whose checkpoints have been
            deleted are ignored, except for the step of the copy in `best`.
    """
    output_dir, log = context.output_dir, context.log
    sources = {step: os.path.join(output_dir, f"{PREFIX}-{step}") for step, _ in history}
    kept = checkpoint_step(best_checkpoint(output_dir))
    if kept not in [line["best_step"] for line in lineage(log.read()) if line["event"] == "best"]:
        kept = None  # the run was restarted, or resumed from an earlier step
    there = [
        (step, metrics) for step, metrics in history if step == kept or tf.io.gfile.exists(f"{sources[step]}.index")
    ]
    best = best_evaluation(there, metric)
    if best is None or best[0] == kept:
        return
    step, folder, value = best[0], os.path.join(output_dir, BEST_FOLDER), best[1][metric]
    tf.io.gfile.makedirs(folder)
    copy_files(context.data.encoder_files, folder)
    write_run_config(folder, context.config)
    # The checkpoint is written last, because a restarted run assumes that a folder with a checkpoint is complete.
    average_checkpoints([sources[step]], os.path.join(folder, f"{PREFIX}-{step}"))  # without the optimizer's state
    write_list(folder, {f"{PREFIX}-{step}": time.time()})
    for path in list_files(folder, rf"{re.escape(PREFIX)}-.*"):
        if not os.path.basename(path).startswith((f"{PREFIX}-{step}.", f"{PREFIX}-{step}_")):
            remove(path)
    LOGGER.info(f"best so far: step {step:,}, {metric} {value:.4f}: {folder}")
    log.write("best", history[-1][0], best_step=step, metric=metric, value=value)


def best_checkpoint(output_dir):
    """Returns the path of a run's best checkpoint, without a suffix, or None."""
    return newest_checkpoint(os.path.join(output_dir, BEST_FOLDER))
