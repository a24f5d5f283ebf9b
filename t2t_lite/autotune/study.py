"""The trials of a search: which hyperparameters each has, and what it reached, in an Optuna study on disk."""

import contextlib
import dataclasses
import logging
import math
import os

import numpy as np

from t2t_lite.autotune.journal import open_journal
from t2t_lite.autotune.objective import Objective
from t2t_lite.errors import UserError, shown
from t2t_lite.files.lock import held_lock, waiting_lock
from t2t_lite.ranged_hparams import RangedHParams
from t2t_lite.training.best_checkpoint import best_evaluation

_LOGGER = logging.getLogger("t2t_lite")
STUDY = "study.journal"
STARTUP_TRIALS = 5  # trials that are sampled blindly, and that have to be complete before others are pruned
_NAME = "hparams"


@dataclasses.dataclass(frozen=True)
class Trial:
    """A trial as it stands.

    Attributes:
        number: int from 0.
        state: "complete", "pruned", "failed" or "running".
        hparams: {name: value}, what it changes in the hyperparameters of the search.
        value: float, the best of the objective in its evaluations, or None.
        best_step: int, the step of that evaluation, or None.
        steps: int, the step of its last evaluation, or None.
        reason: str, why it was pruned or failed; "" otherwise.
        loss: float, the loss in its best evaluation, which breaks ties; infinity if there is none.
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
        """The name of its folder."""
        return f"trial-{self.number}"


class Study:
    """The trials of one search, which several processes may share.

    Values are sampled by Optuna's TPE with a seed that depends on the trial's number alone, so that a search that was
    stopped goes on as it would have done. A trial is pruned by the median rule: its best value is worse than the
    median of the complete trials' values at the same step.

    Args:
        output_dir: str, a local folder; trials are in `<output_dir>/trial-<n>`.
        ranges: RangedHParams.
        objective: Objective.
        facts: dict of JSON values that all trials share. A search is not continued with other ones.
        train_steps: int; a trial is not pruned in the first quarter, and not at the end.
        seed: int, of the samples.

    Attributes:
        objective, facts: as given.

    Raises:
        UserError: the study in the folder is unreadable, or has other facts.
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
        """Returns all trials, a list of `Trial` by number, without those that ended before they had hyperparameters."""
        return [self._read(found) for found in self._study.get_trials() if "hparams" in found.user_attrs]

    @contextlib.contextmanager
    def next_trial(self, most):
        """Context manager of the next `Trial` for this process; None if there is none.

        That is one which a process has begun that is gone, or else a new one. Until its end no other process takes it.

        Args:
            most: int, the number of trials of the search.
        """
        with contextlib.ExitStack() as stack:
            with self._alone():
                trial = self._abandoned(stack) or self._new(most, stack)
            yield trial

    def folder_of(self, trial):
        """Returns the path of a trial's run."""
        return os.path.join(self._output_dir, trial.name)

    def reason_to_prune(self, trial, evaluations):
        """Tells Optuna the evaluations of a trial; returns why to end it now, a str, or None.

        Args:
            trial: Trial.
            evaluations: list of (step, {metric: value}), as `monitor.history` returns it.
        """
        number, metric = self._id_of(trial.number), self.objective.metric
        reported = self._storage.get_trial(number).intermediate_values
        for step, metrics in evaluations:
            if step not in reported and metric in metrics:
                self._storage.set_trial_intermediate_value(number, step, metrics[metric])
        running, is_last = self._storage.get_trial(number), not evaluations or evaluations[-1][0] >= self._train_steps
        if is_last or not self._study.pruner.prune(self._study, running):
            return None
        best = self.objective.best(running.intermediate_values.values())
        return (
            f"pruned: {metric} {best:.4g} is worse than the median of the complete trials at step {running.last_step:,}"
        )

    def finish(self, trial, evaluations, pruned=""):
        """Records a trial whose run has ended; returns it.

        Args:
            trial: Trial.
            evaluations: as for `reason_to_prune`.
            pruned: str, why it was pruned; "": it was not.
        """
        best = best_evaluation(evaluations, self.objective.metric)
        if best is None:
            return self.fail(trial, f"no evaluation has a finite {self.objective.metric}")
        (best_step, metrics), steps = best, evaluations[-1][0]
        value, loss = metrics[self.objective.metric], {"loss": metrics["loss"]} if "loss" in metrics else {}
        facts = {"value": value, "best_step": best_step, **loss, "steps": steps, "reason": pruned}
        return self._end(trial.number, None if pruned else value, facts)

    def fail(self, trial, reason):
        """Records a trial that failed; returns it. For Optuna it is one of the worst, so that its like are avoided."""
        return self._end(trial.number, None, {"reason": reason, "failed": True})

    def trial(self, number):
        """Returns the `Trial` of a number, as it stands."""
        return self._read(self._storage.get_trial(self._id_of(number)))

    def _end(self, number, value, facts):
        """Ends a trial with its value, or None for one that was pruned; returns it with these facts."""
        for name, fact in facts.items():
            self._storage.set_trial_user_attr(self._id_of(number), name, fact)
        self._study.tell(number, value, self._optuna.trial.TrialState.PRUNED if value is None else None)
        return self.trial(number)

    def _alone(self):
        """Context manager in which no other process looks for a trial."""
        return waiting_lock(os.path.join(self._output_dir, ".study.lock"))

    def _check_facts(self, facts):
        before = self._study.user_attrs
        for name, value in facts.items():
            if name not in before:
                self._study.set_user_attr(name, value)
            elif before[name] != value:
                old, new = _difference(before[name], value)
                raise UserError(
                    f"{self._output_dir}: this search was begun with {name}={old}, now it is {new}. Expected the same, "
                    "or another --output_dir."
                )

    def _abandoned(self, stack):
        """Returns a trial that no living process works on, and locks it; None if there is none."""
        states = self._optuna.trial.TrialState
        for found in self._study.get_trials(states=(states.RUNNING,)):
            try:
                stack.enter_context(self._lock(found.number))
            except UserError:  # its process lives
                continue
            if "hparams" in found.user_attrs:
                _LOGGER.info(f"trial-{found.number} was interrupted: it goes on")
                return self._read(found)
            self._study.tell(found.number, state=states.FAIL)  # nothing was trained yet
            stack.pop_all().close()
        return None

    def _new(self, most, stack):
        if len(self.trials()) >= most:
            return None
        asked = self._study.ask()
        stack.enter_context(self._lock(asked.number))
        seed = np.random.SeedSequence([self._seed % 2**32, asked.number]).generate_state(1)[0]
        self._study.sampler = self._optuna.samplers.TPESampler(seed=int(seed), n_startup_trials=STARTUP_TRIALS)
        values = {name: _sample(asked, found) for name, found in self._ranges.ranges.items()}
        asked.set_user_attr("hparams", values)
        return self.trial(asked.number)

    def _lock(self, number):
        return held_lock(os.path.join(self._output_dir, f".trial-{number}.lock"), f"trial-{number}: another search")

    def _id_of(self, number):
        return self._storage.get_trial_id_from_study_id_trial_number(self._id, number)

    def _read(self, found):
        facts = dict(found.user_attrs)
        state = "failed" if facts.pop("failed", False) else found.state.name.lower()
        return Trial(found.number, state, **facts)


def _sample(asked, found):
    """Returns a value of a range, which Optuna's trial suggests."""
    if found.points:
        return asked.suggest_categorical(found.name, found.points)
    suggest = asked.suggest_int if found.kind == "int" else asked.suggest_float
    if found.scale == RangedHParams.REVERSE_LOG_SCALE:  # the logarithmic scale, seen from the other end
        mirrored = suggest(f"{found.name} (mirrored)", found.least, found.most, log=True)
        return min(max(found.least + found.most - mirrored, found.least), found.most)  # rounding may leave the range
    return suggest(found.name, found.least, found.most, log=found.scale == RangedHParams.LOG_SCALE)


def _difference(old, new):
    """Returns what differs in two JSON values: of objects, only the names whose values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
        old, new = ({name: facts.get(name) for name in names} for facts in (old, new))
    return shown(old), shown(new)
