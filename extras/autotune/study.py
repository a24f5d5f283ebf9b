"""Stores the trials of a search in an Optuna study on disk, which several processes may share."""

import contextlib
import dataclasses
import logging
import math
import os
import time

import numpy as np

from t2t_lite.errors import LOGGER, UserError, first_line, nearest, needs, shown
from t2t_lite.evaluation.metrics import lower_is_better, metric_names
from t2t_lite.extras.autotune.ranged_hparams import RangedHParams
from t2t_lite.files import lock_file
from t2t_lite.files.file_errors import translated
from t2t_lite.files.folders import held_lock
from t2t_lite.training.monitor import best_evaluation, default_metric

STUDY = "study.journal"
STARTUP_TRIALS = 5  # number of trials sampled at random before TPE starts, and completed before pruning starts
_NAME = "hparams"
# {metric in tensor2tensor (utils/metrics.py): metric here}; neg_log_perplexity is -1 times the loss.
_METRICS = {
    "accuracy": "token_accuracy",
    "accuracy_per_sequence": "exact_sequence_accuracy",
    "approx_bleu_score": "bleu",
    "neg_log_perplexity": "loss",
}
# Errors that Optuna raises for damaged lines in its journal.
_DAMAGED_LINE_ERRORS = (ValueError, LookupError, AttributeError, TypeError, AssertionError, RecursionError)


@dataclasses.dataclass(frozen=True)
class Objective:
    """The metric that a search optimizes, and its direction.

    Attributes:
        metric: str.
        maximize: bool.
    """

    metric: str
    maximize: bool


def choose_objective(problem, hparams, name=None, maximize=None, best_metric=None, translate_all=False):
    """Returns the Objective of a search.

    Args:
        problem: Problem.
        hparams: HParams.
        name: str, the name of a metric in this package or in tensor2tensor, such as
            metrics-<problem>/neg_log_perplexity. If None, `best_metric` is used.
        maximize: bool, the direction that the user expects, or None for the direction of the metric.
        best_metric: str, the metric that selects the best model of a run, or None for the default metric.
        translate_all: bool, see `EvaluationSettings`.

    Raises:
        UserError: a metric is unknown, the direction is wrong, or the two metrics contradict each other.
    """
    if best_metric == "none":
        raise UserError("--best_checkpoint_metric=none: a search compares the trials' best models. Remove the flag.")
    names = metric_names(problem, hparams, translate_all)
    metric, is_negated = _here(name, names) if name else (best_metric or default_metric(names), False)
    # Only the model knows its additional losses, so the Trainer checks their names.
    if metric not in names and not metric.startswith(("loss_", "cost_")):
        flag = f"--autotune_objective={name}" if name else f"--best_checkpoint_metric={best_metric}"
        raise UserError(
            f"{flag}: evaluations do not compute this metric. {nearest(metric, names, end=' ')}Expected one of "
            f"{', '.join(names)}."
        )
    if best_metric not in (None, metric):
        raise UserError(
            f"--best_checkpoint_metric={best_metric} and --autotune_objective={name} differ, but each trial keeps the "
            "model with the best objective. Remove one of the flags."
        )
    lower = lower_is_better(metric)
    if maximize is not None and maximize != (lower == is_negated):
        better = "smaller" if lower != is_negated else "larger"
        raise UserError(
            f"--autotune_maximize={str(maximize).lower()}: {better} values of {name or metric} are better. Remove the "
            "flag."
        )
    return Objective(metric, not lower)


def _here(name, names):
    """Returns (the metric's name in this package, whether `name` means the negated metric)."""
    last = name.rsplit("/", 1)[-1]
    if last in names:
        return last, False
    return _METRICS.get(last, last), last == "neg_log_perplexity"


@dataclasses.dataclass(frozen=True)
class Trial:
    """A trial in its current state.

    Attributes:
        number: int from 0.
        state: "complete", "pruned", "failed" or "running".
        hparams: {name: value}, the sampled hyperparameters.
        value: float, the best value of the objective in the trial's evaluations, or None.
        best_step: int, the step of the best evaluation, or None.
        steps: int, the step of the last evaluation, or None.
        reason: str, the reason why the trial was pruned or failed, or "".
        loss: float, the loss in the best evaluation, which breaks ties; infinity if there is no loss.
    """

    number: int
    state: str
    hparams: dict
    value: float | None = None
    best_step: int | None = None
    steps: int | None = None
    reason: str = ""
    loss: float = math.inf

    @property
    def name(self):
        """The name of the trial's folder."""
        return f"trial-{self.number}"


class Study:
    """The trials of one search, which several processes may share.

    Values are sampled by Optuna's TPE with a seed that depends only on `seed` and the trial's number, so that a stopped
    search continues as if uninterrupted. The median rule prunes a trial if its best value is worse than the median of
    the complete trials' values at the same step.

    Args:
        output_dir: str, a local folder, in which trials are written to `trial-<n>`.
        ranges: RangedHParams.
        objective: Objective.
        facts: dict of JSON values that all trials share. A search cannot be resumed with different values.
        train_steps: int, the number of steps per trial. A trial is pruned neither in the first quarter of its steps nor
            at the last step.
        seed: int, the seed of the sampler.

    Attributes:
        objective, facts: the constructor's arguments.

    Raises:
        UserError: the study in the folder is unreadable, or was created with different facts.
    """

    def __init__(self, output_dir: str, ranges: RangedHParams, objective: Objective, facts, train_steps, seed):
        self._optuna, self._storage = open_journal(os.path.join(output_dir, STUDY))
        self.objective, self.facts = objective, facts
        self._output_dir, self._ranges = output_dir, ranges
        self._train_steps, self._seed = train_steps, seed
        with self._alone():
            self._study = self._optuna.create_study(
                storage=self._storage,
                study_name=_NAME,
                direction="maximize" if objective.maximize else "minimize",
                pruner=self._optuna.pruners.MedianPruner(STARTUP_TRIALS, n_warmup_steps=train_steps // 4),
                load_if_exists=True,
            )
            self._check_facts(facts)
        self._id = self._storage.get_study_id_from_name(_NAME)

    def trials(self):
        """Returns a list of all `Trial`s that have hyperparameters, sorted by number."""
        return [self._read(trial) for trial in self._study.get_trials() if "hparams" in trial.user_attrs]

    @contextlib.contextmanager
    def next_trial(self, most):
        """Context manager that yields the next `Trial` for this process, or None if all trials are taken.

        The trial is new, or was left unfinished by a process that no longer exists. Other processes cannot take this
        trial until the context ends.

        Args:
            most: int, the number of trials in the search.
        """
        with contextlib.ExitStack() as stack:
            with self._alone():
                trial = self._abandoned(stack) or self._new(most, stack)
            yield trial

    def folder_of(self, trial):
        """Returns the path of the folder with a trial's run."""
        return os.path.join(self._output_dir, trial.name)

    def reason_to_prune(self, trial, evaluations):
        """Reports a trial's evaluations to Optuna, and returns the reason (str) to prune the trial now, or None.

        Args:
            trial: Trial.
            evaluations: list of (step, {metric: value}), as returned by `monitor.history`.
        """
        number, metric = self._id_of(trial.number), self.objective.metric
        reported = self._storage.get_trial(number).intermediate_values
        for step, metrics in evaluations:
            if step not in reported and metric in metrics:
                self._storage.set_trial_intermediate_value(number, step, metrics[metric])
        running, is_last = self._storage.get_trial(number), not evaluations or evaluations[-1][0] >= self._train_steps
        if is_last or not self._study.pruner.prune(self._study, running):
            return None
        best = (max if self.objective.maximize else min)(running.intermediate_values.values())
        return (
            f"pruned: {metric} {best:.4g} is worse than the median of the complete trials at step {running.last_step:,}"
        )

    def finish(self, trial, evaluations, pruned=""):
        """Records the result of a trial whose run has ended, and returns the trial.

        Args:
            trial: Trial.
            evaluations: list, see `reason_to_prune`.
            pruned: str, the reason why the trial was pruned, or "".
        """
        best = best_evaluation(evaluations, self.objective.metric)
        if best is None:
            return self.fail(trial, f"no evaluation has a finite {self.objective.metric}")
        (best_step, metrics), steps = best, evaluations[-1][0]
        value, loss = metrics[self.objective.metric], {"loss": metrics["loss"]} if "loss" in metrics else {}
        facts = {"value": value, "best_step": best_step, **loss, "steps": steps, "reason": pruned}
        return self._end(trial.number, None if pruned else value, facts)

    def fail(self, trial, reason):
        """Records a failed trial as one of the worst, so that Optuna avoids similar trials; returns the trial."""
        return self._end(trial.number, None, {"reason": reason, "failed": True})

    def trial(self, number):
        """Returns the `Trial` with this number, in its current state."""
        return self._read(self._storage.get_trial(self._id_of(number)))

    def _end(self, number, value, facts):
        """Records a trial's value (None for a pruned trial) and facts, ends the trial, and returns it."""
        for name, fact in facts.items():
            self._storage.set_trial_user_attr(self._id_of(number), name, fact)
        self._study.tell(number, value, self._optuna.trial.TrialState.PRUNED if value is None else None)
        return self.trial(number)

    @contextlib.contextmanager
    def _alone(self):
        """Context manager that waits until no other process takes a trial, and during which none can."""
        while (lock := lock_file(os.path.join(self._output_dir, ".study.lock"))) is None:
            time.sleep(0.05)
        with lock:
            yield

    def _check_facts(self, facts):
        recorded = self._study.user_attrs
        for name, value in facts.items():
            if name not in recorded:
                self._study.set_user_attr(name, value)
            elif recorded[name] != value:
                old, new = _difference(recorded[name], value)
                raise UserError(
                    f"{self._output_dir}: this search was begun with {name}={old}, but now has {new}. Expected the "
                    "same value, or another --output_dir."
                )

    def _abandoned(self, stack):
        """Locks and returns an unfinished trial that no running process works on, or None."""
        states = self._optuna.trial.TrialState
        for trial in self._study.get_trials(states=(states.RUNNING,)):
            try:
                stack.enter_context(self._lock(trial.number))
            except UserError:  # its process is still running
                continue
            if "hparams" in trial.user_attrs:
                LOGGER.info(f"trial-{trial.number} was interrupted and is resumed")
                return self._read(trial)
            self._study.tell(trial.number, state=states.FAIL)  # training had not begun
            stack.pop_all().close()
        return None

    def _new(self, most, stack):
        if len(self.trials()) >= most:
            return None
        trial = self._study.ask()
        stack.enter_context(self._lock(trial.number))
        seed = np.random.SeedSequence([self._seed % 2**32, trial.number]).generate_state(1)[0]
        self._study.sampler = self._optuna.samplers.TPESampler(seed=int(seed), n_startup_trials=STARTUP_TRIALS)
        values = {name: _sample(trial, interval) for name, interval in self._ranges.ranges.items()}
        trial.set_user_attr("hparams", values)
        return self.trial(trial.number)

    def _lock(self, number):
        return held_lock(os.path.join(self._output_dir, f".trial-{number}.lock"), f"trial-{number}: another search")

    def _id_of(self, number):
        return self._storage.get_trial_id_from_study_id_trial_number(self._id, number)

    def _read(self, trial):
        facts = dict(trial.user_attrs)
        state = "failed" if facts.pop("failed", False) else trial.state.name.lower()
        return Trial(trial.number, state, **facts)


def _sample(trial, interval):
    """Returns the value that Optuna's trial suggests for a range."""
    if interval.points:
        return trial.suggest_categorical(interval.name, interval.points)
    suggest = trial.suggest_int if interval.kind == "int" else trial.suggest_float
    if interval.scale == RangedHParams.REVERSE_LOG_SCALE:  # mirrors a logarithmic scale
        mirrored = suggest(f"{interval.name} (mirrored)", interval.least, interval.most, log=True)
        # Rounding may give a value outside of the range.
        return min(max(interval.least + interval.most - mirrored, interval.least), interval.most)
    return suggest(interval.name, interval.least, interval.most, log=interval.scale == RangedHParams.LOG_SCALE)


def _difference(old, new):
    """Formats two JSON values as text. If both are objects, only the entries that differ are kept."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
        old, new = ({name: facts.get(name) for name in names} for facts in (old, new))
    return shown(old), shown(new)


def open_journal(path):
    """Opens or creates a journal, and removes an incomplete last line that a killed process left.

    Args:
        path: str, a local file.

    Returns:
        (the module optuna, the `JournalStorage` of the file).

    Raises:
        UserError: Optuna is not installed, or the file is not a journal of Optuna.
    """
    optuna = import_optuna()
    path = os.path.abspath(path)  # Optuna's lock is a symlink to this path, which must resolve from inside the folder
    journal = optuna.storages.journal
    try:
        with translated(path, "write"), contextlib.ExitStack() as stack:
            lock = journal.JournalFileSymlinkLock(path)
            lock.acquire()
            stack.callback(lock.release)
            backend = journal.JournalFileBackend(path)
            _remove_truncated_line(path)  # otherwise Optuna would append to this line
        return optuna, journal.JournalStorage(backend)
    except _DAMAGED_LINE_ERRORS as error:
        raise UserError(
            f"{path}: is not a journal of Optuna: {first_line(error)}. Move the file away, or choose another "
            "--output_dir."
        ) from error


def import_optuna():
    """Imports optuna, limits its log to warnings, and returns the module. Raises `UserError` if it is not installed."""
    with needs("Optuna", "tune", "--hparams_range"):
        import optuna
        import optuna.storages.journal
    optuna.logging.set_verbosity(logging.WARNING)
    return optuna


def _remove_truncated_line(path):
    with open(path, "rb+") as file:
        content = file.read()
        if content and not content.startswith(b'{"op_code":'):
            raise ValueError("the first line is not from Optuna")
        if not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)
