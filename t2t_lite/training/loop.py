"""The loop over a run's steps: trains, saves, evaluates, and ends when it is time."""

import dataclasses
import logging
import os
import time

import tensorflow as tf

from t2t_lite.data import records
from t2t_lite.runs.checkpoints import RunCheckpoints, newest_step
from t2t_lite.runs.log import RunLog, lineage
from t2t_lite.training.dev_evaluations import DevEvaluations
from t2t_lite.training.memory import explaining_out_of_memory
from t2t_lite.training.metrics import Progress, sentences_read
from t2t_lite.training.profiling import StepProfiler
from t2t_lite.training.skipped_steps import SkippedSteps
from t2t_lite.training.train_step import TrainStep
from t2t_lite.training.training_data import TrainingData

_LOGGER = logging.getLogger("t2t_lite")


@dataclasses.dataclass
class TrainingLoop:
    """Takes steps from where `step` stands; what it saves is all that a later loop needs to go on bit for bit.

    Args:
        train_step: TrainStep.
        data: TrainingData.
        iterator: iterator of the data's batches, at `batches_read`.
        step: tf.Variable, int64 scalar, steps done.
        batches_read: tf.Variable, int64 scalar, batches of the stream that these took.
        checkpoints: RunCheckpoints, of all these.
        dev: DevEvaluations.
        log: RunLog.
        output_dir: str.
        local_eval_frequency, save_checkpoints_secs, log_step_count_steps, profile: see `Trainer`.

    Attributes:
        ended_by: str, why `run` returned: "train_steps", "early_stopping" or "signal".
    """

    train_step: TrainStep
    data: TrainingData
    iterator: tf.data.Iterator
    step: tf.Variable
    batches_read: tf.Variable
    checkpoints: RunCheckpoints
    dev: DevEvaluations
    log: RunLog
    output_dir: str
    local_eval_frequency: int
    save_checkpoints_secs: float
    log_step_count_steps: int
    profile: bool

    def __post_init__(self):
        self.ended_by = None
        self._replicas, self._hparams = self.train_step.replicas, self.train_step.hparams
        save = self.checkpoints.save_apart if self._replicas.is_chief else None
        self._skipped = SkippedSteps(self.output_dir, self.log, self._hparams.max_skipped_steps, save)

    def run(self, train_steps, stopped):
        """Trains until step `train_steps`, or early stopping, or until `stopped`, a threading.Event, is set.

        Returns:
            dict of the last evaluation's metrics; empty without one.

        Raises:
            UserError: damaged data.
            Failure: the loss stayed not finite, there is too little memory, or a checkpoint could not be saved.
        """
        step, optimizer = int(self.step), self.train_step.optimizer
        lines = lineage(self.log.read())
        self._progress = Progress(
            self.log,
            train_steps,
            self.log_step_count_steps,
            self.data.examples,
            sentences_read(lines, step, int(self.batches_read)),
        )
        is_due = step >= train_steps or (step > 0 and step % self.local_eval_frequency == 0)
        metrics, why = self.dev.catch_up(step, is_due), self.dev.reason_to_stop()
        if step >= train_steps or why:
            self.ended_by = "early_stopping" if why else "train_steps"
            reason = f"stopped early: {why}" if why else f"step {step:,} is not before train_steps={train_steps:,}"
            _LOGGER.info(f"{reason}: nothing to train.")
            return metrics
        saved_at, previous = time.monotonic(), None
        with StepProfiler(self.output_dir, self.profile and self._replicas.is_chief) as profiler:
            while step < train_steps and not why and not self._is_stopped(stopped, previous):
                profiler.before_step()
                with records.naming_damage(*self.data.paths):
                    batches = [next(self.iterator) for _ in range(self.train_step.batches_a_step)]
                step += 1
                with explaining_out_of_memory(step, batches, self._hparams):
                    result = self.train_step(batches, int(self.batches_read), stopped.is_set())
                self.step.assign(step)
                self.batches_read.assign_add(len(batches))
                # One step late, so that the next one is under way on a GPU while this one's flag is fetched.
                if previous:
                    self._skipped.watch(*previous)
                previous = (step, batches, result)
                if self._skipped.in_a_row or step == train_steps:
                    self._skipped.watch(*previous)  # at once: the state is still the one that the step met
                self._progress.add(step, batches, result, optimizer.learning_rate)
                evaluate = step % self.local_eval_frequency == 0 or step == train_steps
                by_time = self.save_checkpoints_secs and time.monotonic() - saved_at >= self.save_checkpoints_secs
                if evaluate or by_time:
                    with self._progress.pause():
                        self._save(step)
                        saved_at = time.monotonic()
                        if evaluate:
                            metrics = self.dev.evaluate(step, is_last=step == train_steps) or metrics
                            why = self.dev.reason_to_stop()
        self.ended_by = "train_steps" if step >= train_steps else "early_stopping" if why else "signal"
        if step < train_steps:
            self._progress.flush(step, optimizer.learning_rate)
            if step != newest_step(self.output_dir):
                self._save(step)
            what = f"stopped early at step {step:,}: {why}" if why else f"stopped by a signal at step {step:,}"
            _LOGGER.info(f"{what}{'.' if why else '; the same command continues from there.'}")
        self.log.write("end", step, finished=self.ended_by != "signal", reason=self.ended_by)
        self._replicas.check_same(step, "last step")  # the others leave when the first one has written all
        return metrics

    def _is_stopped(self, stopped, previous):
        """Whether a signal ends the run; of several machines all must leave it after the same step."""
        if self._replicas.cluster is None:
            return stopped.is_set()
        return previous is not None and float(previous[2]["stops"]) > 0

    def _save(self, step):
        if not self._replicas.is_chief:
            return
        started = time.monotonic()
        path = self.checkpoints.save(step)
        self.log.write(
            "checkpoint",
            step,
            path=os.path.basename(path),
            seconds=round(time.monotonic() - started, 3),
            data_batch=int(self.batches_read),
            sentences=self._progress.sentences,
            epochs=self._progress.epochs,
        )
