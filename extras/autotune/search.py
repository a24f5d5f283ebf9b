"""Searches for hyperparameters: trains trials, retrains the winner with other seeds, and reports the results."""

import dataclasses
import os
from collections.abc import Callable

from t2t_lite.cli.console import table
from t2t_lite.errors import LOGGER, Failure, UserError
from t2t_lite.extras.autotune.study import Study
from t2t_lite.extras.seeds.repeated_seeds import train_seeds
from t2t_lite.files.folders import held_lock
from t2t_lite.runs.log import RunLog
from t2t_lite.training.monitor import history

_MOST_FAILURES = 5  # after this many consecutive failures, the hyperparameters are probably not the cause
REPORT = "tuning.json"


@dataclasses.dataclass
class Search:
    """A search for hyperparameters, which can be stopped and resumed.

    Args:
        study: Study.
        output_dir: str, the folder of the study.
        train: function of (output_dir, changes, random_seed, stop_when) that trains and evaluates a run, and returns
            how the run ended (see `Trainer.ended_by`). `changes` is a dict of hyperparameters, and `random_seed` is an
            int. `stop_when` is None or a function as for `Trainer`.
        random_seed: int, the seed of all trials.
    """

    study: Study
    output_dir: str
    train: Callable
    random_seed: int

    def run(self, max_trials):
        """Trains trials until there are `max_trials`, counting those of earlier calls and of other processes.

        A trial that raises `UserError` or `Failure` counts as a failed trial, because the usual causes are incompatible
        hyperparameters and a loss that is not finite.

        Returns:
            bool, False if a signal stopped the search.

        Raises:
            Failure: too many consecutive trials have failed.
        """
        failures = 0
        while True:
            with self.study.next_trial(max_trials) as trial:
                if trial is None:
                    return True
                result = self._train_trial(trial, max_trials)
            if result is None:
                return False
            failures = failures + 1 if result.state == "failed" else 0
            if failures == _MOST_FAILURES:
                raise Failure(
                    f"{self.output_dir}: {failures} consecutive trials have failed. The last error: {result.reason} "
                    "To continue with the next trial, run the same command again."
                )

    def train_winner(self, trial, count):
        """Trains runs with a trial's hyperparameters and other seeds, in `<output_dir>/<trial>-seeds`.

        Args:
            trial: Trial.
            count: int, the number of seeds, at least 2.

        Returns:
            dict, the result of `repeated_seeds.summarize`, or None if a signal stopped the runs.

        Raises:
            UserError: another process is training these seeds.
        """
        folder = os.path.join(self.output_dir, f"{trial.name}-seeds")
        seeds = [seed for seed in range(1, count + 2) if seed != self.random_seed][:count]
        with held_lock(os.path.join(self.output_dir, ".seeds.lock"), f"{folder}: another search"):
            return train_seeds(seeds, folder, lambda path, seed: self.train(path, trial.hparams, seed, None))

    def _train_trial(self, trial, max_trials):
        """Trains a trial, and returns the trial in its final state, or None if a signal stopped it."""
        folder, pruned = self.study.folder_of(trial), []
        LOGGER.info(f"{trial.name} of {max_trials}: {describe(trial.hparams)}")

        def stop_when(evaluations):
            reason = self.study.reason_to_prune(trial, evaluations)
            pruned[:] = [reason] if reason else []
            return reason

        try:
            ended_by = self.train(folder, trial.hparams, self.random_seed, stop_when)
        except (UserError, Failure) as error:
            result = self.study.fail(trial, str(error))
        else:
            if ended_by == "signal":
                return None
            result = self.study.finish(trial, history(RunLog(folder)), *pruned)
        value = "" if result.value is None else f", {self.study.objective.metric} {result.value:.4f}"
        LOGGER.info(f"{trial.name}: {result.state}{value}{f' ({result.reason})' if result.reason else ''}")
        return result


def ranked(trials, objective):
    """Returns the complete trials, best first. Ties are broken by the lower loss, then by the lower trial number.

    Args:
        trials: list of Trial.
        objective: Objective.

    Raises:
        Failure: no trial is complete.
    """
    complete = [trial for trial in trials if trial.state == "complete"]
    if not complete:
        reasons = [trial.reason for trial in trials if trial.reason]
        raise Failure(f"no trial is complete{f'; the last trial: {reasons[-1]}' if reasons else ''}")
    sign = -1 if objective.maximize else 1
    return sorted(complete, key=lambda trial: (sign * trial.value, trial.loss, trial.number))


def trials_table(trials, objective):
    """Returns the trials as a table, a list of lines: the complete trials from best to worst, then all others."""
    complete = [trial for trial in trials if trial.state == "complete"]
    order = [*(ranked(complete, objective) if complete else []), *(t for t in trials if t.state != "complete")]
    names = list(dict.fromkeys(name for trial in order for name in trial.hparams))
    rows = [["trial", *names, objective.metric, "best_step", "steps", "state"]]
    for trial in order:
        values = [shortened(trial.hparams[name]) if name in trial.hparams else "-" for name in names]
        value = "-" if trial.value is None else f"{trial.value:.4f}"
        steps = ["-" if step is None else f"{step:,}" for step in (trial.best_step, trial.steps)]
        rows.append([str(trial.number), *values, value, *steps, trial.state])
    return table(rows)


def within_noise(order, deviation):
    """Returns the trials whose values are within two standard deviations of the first trial's value.

    Args:
        order: list of Trial, as `ranked` returns it.
        deviation: float, the standard deviation over seeds.
    """
    return [trial for trial in order[1:] if abs(trial.value - order[0].value) <= 2 * deviation]


def spread_text(order, objective, summary):
    """Returns lines of text: the winner's results with other seeds, and which other trials may be just as good.

    Args:
        order: list of Trial, as `ranked` returns it.
        objective: Objective.
        summary: dict, the result of `repeated_seeds.summarize` for the winner's hyperparameters.
    """
    metric = objective.metric
    mean, deviation = summary["mean"][metric], summary["standard_deviation"][metric]
    near = ", ".join(trial.name for trial in within_noise(order, deviation)) or "no other complete trial"
    return [
        f"{len(summary['runs'])} other seeds: {metric} {mean:.4f}, standard deviation {deviation:.4f}; the best of "
        f"{len(order)} trials reached {order[0].value:.4f}",
        f"within two standard deviations of {order[0].name}, so perhaps as good: {near}",
    ]


def as_json(trials, objective, facts, output_dir, summary=None, command=""):
    """Returns the contents of `tuning.json`.

    Args:
        trials: list of Trial.
        objective: Objective.
        facts: dict of the JSON values that all trials of the study share.
        output_dir: str, the folder of the search.
        summary: dict, the results of the winner with other seeds, or None.
        command: str, a command that trains the winner again.
    """
    order = ranked(trials, objective)
    winner = order[0]
    report = {
        **facts,
        "objective": {"metric": objective.metric, "maximize": objective.maximize},
        "trials": [_facts(trial) for trial in trials],
        "winner": {**_facts(winner), "folder": os.path.join(output_dir, winner.name), "command": command},
    }
    if summary:
        deviation = summary["standard_deviation"][objective.metric]
        report["seeds"] = {**summary, "within_two_deviations": [trial.name for trial in within_noise(order, deviation)]}
    return report


def _facts(trial):
    names = ("state", "hparams", "value", "best_step", "steps", "reason")
    return {"trial": trial.name, **{name: getattr(trial, name) for name in names}}


def describe(hparams):
    """Returns hyperparameters as text, such as `learning_rate_constant 0.5123, num_heads 4`."""
    return ", ".join(f"{name} {shortened(value)}" for name, value in hparams.items())


def shortened(value):
    """Returns a value as text; a float has four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
