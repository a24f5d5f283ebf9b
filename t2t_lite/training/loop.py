"""The training loop of a run, which trains, saves checkpoints, evaluates and stops."""

import contextlib
import math
import os
import time

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.cli.console import waiting
from t2t_lite.errors import LOGGER, Failure, first_line
from t2t_lite.runs.checkpoints import newest_step
from t2t_lite.runs.log import lineage
from t2t_lite.training.optimization.schedules import last_learning_rate
from t2t_lite.training.optimization.stability import SkippedSteps
from t2t_lite.training.profiling import StepProfiler
from t2t_lite.training.progress import TrainingProgress, fetch, sentences_read
from t2t_lite.training.training_data import Feed

# The largest number of steps whose metrics stay on the device. Until the metrics are fetched, the batches of these
# steps stay in memory, in case they must be saved for debugging, and a machine does not learn that another
# machine has received a signal.
_UNKNOWN_STEPS = 100
_UNKNOWN_STEPS_OF_MACHINES = 10
_BYTES_HELD = 2**26
TRACING = "tracing the first step, which takes longer than later steps"


class TrainingLoop:
    """Trains a run from its current step. A later loop that continues from its checkpoints gives identical results.

    Args:
        context: RunContext.
        state: TrainingState.
        compilations: Compilations, which watches the shapes of batches.
        monitor: Monitor.

    Attributes:
        ended_by: str, why `run` returned: "train_steps", "early_stopping" or "signal".
    """

    def __init__(self, context, state, compilations, monitor):
        self.ended_by = None
        self._context, self._state, self._compilations, self._monitor = context, state, compilations, monitor
        self._log, self._replicas, self._train_step = context.log, context.replicas, state.train_step
        self._hparams, self._when = self._train_step.hparams, context.checkpoints
        save = self._save_apart if self._replicas.is_chief else None
        self._skipped = SkippedSteps(context.output_dir, self._log, self._hparams.max_skipped_steps, save)
        self._unknown = []  # steps with unfetched metrics: (step, StepBatches, result, whether timed)
        self._stops = False  # whether the metrics fetched so far say that a machine received a signal
        self._is_stopping = False  # `_stops` as of the last step at which all machines fetched metrics
        features = len(self._train_step.features)
        bytes_a_step = self._train_step.batches_a_step * self._hparams.batch_size * features * 4  # int32
        most = _UNKNOWN_STEPS_OF_MACHINES if self._replicas.cluster else _UNKNOWN_STEPS
        self._steps_between_fetches = max(1, min(most, _BYTES_HELD // bytes_a_step))

    def run(self, train_steps, stopped):
        """Trains until step `train_steps`, until early stopping, or until the threading.Event `stopped` is set.

        Returns:
            The metrics of the last evaluation, a dict, which is empty if there was no evaluation.

        Raises:
            UserError: if the data are damaged.
            Failure: if the loss stayed non-finite, there is too little memory, or a checkpoint could not be saved.
        """
        step = int(self._state.step)
        is_due = step >= train_steps or (step > 0 and step % self._when.local_eval_frequency == 0)
        self._metrics, self._why = self._monitor.catch_up(step, is_due), self._monitor.reason_to_stop()
        if step >= train_steps or self._why:
            self.ended_by = "early_stopping" if self._why else "train_steps"
            reason = f"stopped early: {self._why}" if self._why else f"the run is at step {step:,} and {train_steps=:,}"
            LOGGER.info(f"nothing to train: {reason}.")
            self._log.write("end", step, finished=True, reason=self.ended_by)  # a killed run has no such entry
            return self._metrics
        data, batch = self._context.data, int(self._state.batches_read)
        files = data.records.paths, data.problem.record_features
        feed = Feed(self._state.iterator, batch, self._train_step, *files)
        read = sentences_read(lineage(self._log.read()), step, batch)
        task = registry.task_of(data.problem)
        examples = data.examples * data.source.rows_per_example
        self._progress = TrainingProgress(self._log, train_steps, feed, examples, read, task)
        first, self._saved_at, is_last = step + 1, time.monotonic(), self._is_to_stop(stopped)
        shown, save_seconds = self._context.progress, self._when.save_checkpoints_secs
        profiled = shown.profile and self._replicas.is_chief
        with StepProfiler(self._context.output_dir, profiled) as profiler, feed:
            while step < train_steps and not self._why and not is_last:
                profiler.before_step()
                batches, placed = feed.take()
                step += 1
                # Whether to save is decided before the step, because data may be read ahead during a step only if no
                # checkpoint follows.
                is_last = self._is_to_stop(stopped)
                evaluates = step % self._when.local_eval_frequency == 0 or step == train_steps
                saves = evaluates or 0 < save_seconds <= time.monotonic() - self._saved_at
                if not (saves or is_last):
                    feed.fetch_ahead()
                with waiting(TRACING) if step == first else contextlib.nullcontext():
                    self._take(step, batches, placed, stopped.is_set())
                ends_window = step % shown.log_step_count_steps == 0 or step == train_steps
                is_fetched = step == first or ends_window or step % self._steps_between_fetches == 0
                is_shown = self._progress.is_due
                if is_fetched or saves or is_last or is_shown:
                    self._fetch(is_fetched)
                if ends_window:
                    self._progress.flush(step, last_learning_rate(self._state.optimizer))
                elif is_shown:
                    self._progress.show(step)
                if saves:
                    self._progress.leave(step)
                    self._save_and_evaluate(step, batches, evaluates, step == train_steps)
        self._end(step, train_steps, batches if step >= first else None)
        return self._metrics

    def _take(self, step, batches, placed, stops):
        """Runs one training step, whose metrics stay on the device."""
        compiling = self._compilations.watched(step, batches.batches)
        explaining = explaining_out_of_memory(step, batches.batches, self._hparams)
        with explaining, compiling as compiles, self._progress.pause(compiles):
            result = self._train_step(placed, stops)
        self._unknown.append((step, batches, result, not compiles))

    def _save_and_evaluate(self, step, batches, evaluates, is_last):
        with self._progress.pause():
            self._save(step, batches)
            self._saved_at = time.monotonic()
            if evaluates:
                self._metrics = self._monitor.evaluate(step, is_last=is_last) or self._metrics
                self._why = self._monitor.reason_to_stop()

    def _end(self, step, train_steps, batches):
        """Saves a checkpoint after the last step, unless this checkpoint exists, and logs why the run ends."""
        self.ended_by = "train_steps" if step >= train_steps else "early_stopping" if self._why else "signal"
        if step < train_steps:
            self._progress.flush(step, last_learning_rate(self._state.optimizer))
            self._progress.leave(step)
            if batches and step != newest_step(self._context.output_dir):
                self._save(step, batches)
            early = f"stopped early at step {step:,}: {self._why}."
            signalled = f"stopped by a signal at step {step:,}; the same command continues from there."
            LOGGER.info(early if self._why else signalled)
        self._log.write("end", step, finished=self.ended_by != "signal", reason=self.ended_by)
        self._replicas.check_same(step, "last step")  # other machines wait until the first machine has saved

    def _is_to_stop(self, stopped):
        """Returns whether a signal ends the run after this step; all machines must end at the same step."""
        return stopped.is_set() if self._replicas.cluster is None else self._is_stopping

    def _fetch(self, on_all_machines):
        """Fetches and checks the metrics of all steps since the last call.

        Args:
            on_all_machines: bool, whether all machines fetch metrics after this step, and so have the same information.
        """
        unknown, self._unknown = self._unknown, []
        results = fetch([result for _, _, result, _ in unknown])
        for (step, batches, _, is_timed), metrics in zip(unknown, results, strict=True):
            self._skipped.watch(step, batches, metrics)
            self._progress.add(batches, metrics, is_timed)
            self._stops |= metrics["stops"] > 0
        if on_all_machines:
            self._is_stopping = self._stops

    def _save_apart(self, step, batches, path):
        self._state.set_position(step, batches)
        self._state.checkpoints.save_apart(path)

    def _save(self, step, batches):
        if not self._replicas.is_chief:
            return
        self._state.set_position(step, batches)
        started = time.monotonic()
        path = self._state.checkpoints.save(step)
        self._log.write(
            "checkpoint", step, path=os.path.basename(path), seconds=round(time.monotonic() - started, 3),
            data_batch=batches.end, sentences=self._progress.sentences, epochs=self._progress.epochs,
        )  # fmt: skip


@contextlib.contextmanager
def explaining_out_of_memory(step, batches, hparams):
    """Context manager that converts TensorFlow's out-of-memory error to a `Failure` that names settings to lower.

    Args:
        step: int, the number of the current step.
        batches: list of all batches of the step, dicts of features [rows, length] or [rows].
        hparams: HParams.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        largest = max(batches, key=_cells)
        shapes = " and ".join(f"{feature} {' x '.join(map(str, ids.shape))}" for feature, ids in largest.items())
        ways = [f"batch_size={hparams.batch_size} (a higher gradient_accumulation_steps makes up for it)"]
        if max(length for batch in batches for ids in batch.values() for length in ids.shape[1:]) > 64:
            ways.append(f"max_length={hparams.max_length}")
        also = [
            f"set {setting}"
            for setting, is_set in (
                ("recompute_grad=True", hparams.recompute_grad),
                ("dtype_policy=mixed_bfloat16", hparams.dtype_policy.endswith("float16")),
            )
            if not is_set
        ]
        also = f", or {' or '.join(also)}" if also else ""
        raise Failure(
            f"out of memory at step {step:,}: the largest batch has {shapes} (rows x length), {_cells(largest):,} "
            f"tokens with padding. Lower {' or '.join(ways)}{also}, and run the command again with "
            f"--allow_hparams_change. TensorFlow says: {first_line(error)}"
        ) from error


def _cells(batch):
    return sum(math.prod(ids.shape) for ids in batch.values())
