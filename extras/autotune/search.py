"""A search for hyperparameters: trains the trials of a study in sequence, then the winner with other seeds."""

import dataclasses
import logging
import os
from collections.abc import Callable

from t2t_lite.errors import Failure, UserError
from t2t_lite.extras.autotune.search_report import describe
from t2t_lite.extras.autotune.study import Study
from t2t_lite.files.lock import held_lock
from t2t_lite.runs.log import RunLog
from t2t_lite.training.monitor import history
from t2t_lite.training.repeated_seeds import train_seeds

_LOGGER = logging.getLogger("t2t_lite")
_MOST_FAILURES = 5  # in a row, which are not due to the hyperparameters


@dataclasses.dataclass
class Search:
    """A search that resumes where it was stopped.

    Args:
        study: Study.
        output_dir: str, the folder of the study.
        train: function of (output_dir, changes, random_seed, stop_when) that trains one run with evaluations: `changes`
            is a dict of hyperparameters, random_seed an int, stop_when as for `Trainer` or None. It returns how the run
            ended, see `Trainer.ended_by`.
        random_seed: int, seed of the trials.
    """

    study: Study
    output_dir: str
    train: Callable
    random_seed: int

    def run(self, max_trials):
        """Trains trials until there are `max_trials`, including those of earlier calls and of other processes.

        A trial that raises `UserError` or `Failure` has failed and counts, since most often its hyperparameters are
        incompatible, or the loss was not finite.

        Returns:
            bool, False after a signal, when no further trial has begun.

        Raises:
            Failure: many trials in a row have failed.
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
                    f"{self.output_dir}: {failures} trials in a row have failed, the last one with: {result.reason} "
                    "The same command goes on with the next trial."
                )

    def train_winner(self, trial, count):
        """Trains the hyperparameters of a trial with further seeds, in `<output_dir>/<trial>-seeds`.

        Args:
            trial: Trial.
            count: int, at least 2.

        Returns:
            dict, the result of `repeated_seeds.summarize`; None after a signal.

        Raises:
            UserError: another process is training them.
        """
        folder = os.path.join(self.output_dir, f"{trial.name}-seeds")
        seeds = [seed for seed in range(1, count + 2) if seed != self.random_seed][:count]
        with held_lock(os.path.join(self.output_dir, ".seeds.lock"), f"{folder}: another search"):
            return train_seeds(seeds, folder, lambda path, seed: self.train(path, trial.hparams, seed, None))

    def _train_trial(self, trial, max_trials):
        """Trains a trial; returns it in its final state, or None after a signal."""
        folder, pruned = self.study.folder_of(trial), []
        _LOGGER.info(f"{trial.name} of {max_trials}: {describe(trial.hparams)}")

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
        _LOGGER.info(f"{trial.name}: {result.state}{value}{f' ({result.reason})' if result.reason else ''}")
        return result
