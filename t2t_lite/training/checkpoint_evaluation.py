"""Evaluates the checkpoints of a run, also while a trainer is writing them (tensor2tensor's t2t-eval)."""

import os
import time

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.example_batches import check_stride
from t2t_lite.data.records import Records
from t2t_lite.data.splits import FILE_TAGS, DatasetSplit
from t2t_lite.errors import LOGGER, UserError
from t2t_lite.evaluation.metrics import metrics_of
from t2t_lite.evaluation.tokenizations import DEFAULT, tokenization_of_problem
from t2t_lite.files import check_writable
from t2t_lite.files.resumable import POLL_SECONDS
from t2t_lite.models.outputs import carries_state
from t2t_lite.runs.checkpoint_files import checkpoint_step, list_checkpoints
from t2t_lite.runs.directory import check_places
from t2t_lite.runs.locating import LocatedRun, find_checkpoint, read_config_of
from t2t_lite.runs.log import RunLog
from t2t_lite.runs.opening import open_run, restore_weights
from t2t_lite.runs.run_config import hparams_of
from t2t_lite.training.evaluator import Evaluator, evaluate_and_log, shards_to_evaluate
from t2t_lite.training.monitor import warn_of_zeros
from t2t_lite.training.settings import EvaluationSettings

# The names of the splits' runs in TensorBoard, as in tensor2tensor, except that the test set has a separate name.
FOLDERS = {DatasetSplit.EVAL: "eval", DatasetSplit.TEST: "eval_test", DatasetSplit.TRAIN: "eval_train"}
# Hyperparameters that may differ between training and evaluation, as may a model's eval_… hyperparameters.
_FREE = ("batch_size", "eval_decode_examples", "eval_beam_size", "eval_alpha", "eval_metrics", "eval_tokenization")


class CheckpointEvaluation:
    """Evaluates the checkpoints in a folder, and writes the results to `<output_dir>/eval.log` and TensorBoard.

    It neither writes to `train.log` nor changes a file that a running trainer reads.

    Args:
        output_dir: str, the output_dir of a run, a folder of averaged checkpoints, or the folder `best`.
        data_dir: str, the folder with the records.
        split: str, a name in `DatasetSplit`.
        settings: EvaluationSettings (see `Evaluator`), or None for the defaults.
        change_hparams: function that maps the run's HParams to the HParams for evaluation, or None for no changes. Only
            batch_size and eval_… hyperparameters may differ.
    """

    def __init__(self, output_dir, data_dir, split=DatasetSplit.EVAL, settings=None, change_hparams=None):
        self._output_dir = output_dir
        self._data_dir = data_dir
        self._split = split
        self._settings = settings or EvaluationSettings()
        self._change_hparams = change_hparams or (lambda trained: trained)
        check_places(output_dir)
        self._log = RunLog(output_dir, name="eval.log")
        self._config = None

    def newest(self):
        """Evaluates the newest checkpoint, even if it has been evaluated before; returns the metrics, {name: float}.

        Raises:
            UserError: if the checkpoint is missing or damaged.
        """
        path = find_checkpoint(self._output_dir)
        self._open(path)
        return self._evaluate(path)

    def follow(self, timeout_seconds=0.0, poll_seconds=POLL_SECONDS):
        """Evaluates all checkpoints in the order of their steps, and waits for new checkpoints.

        Results in `eval.log` are reused. A checkpoint that is deleted before its evaluation is skipped. An
        unreadable checkpoint is tried again at the next poll. If it is still unreadable, it is skipped with a warning.

        Args:
            timeout_seconds: float, how long to wait for a new checkpoint; 0 to not wait, infinity to wait forever.
            poll_seconds: float, the seconds between two polls of the folder.

        Yields:
            (path of the checkpoint, its metrics).

        Raises:
            UserError: if no checkpoint appeared, data are missing, or settings contradict those of the run.
        """
        seen, unreadable, last_news, self._error = set(), set(), time.monotonic(), None
        evaluations = []
        while True:
            times = [(path, _time_of(f"{path}.index")) for path in list_checkpoints(self._output_dir)]
            present = {(path, changed) for path, changed in times if changed is not None}
            unreadable &= present  # forget unreadable checkpoints that were deleted or rewritten
            for path, changed in sorted(present - seen, key=lambda item: checkpoint_step(item[0])):
                metrics = self._evaluate_if_readable(path, changed, is_last_try=(path, changed) in unreadable)
                if metrics is None and tf.io.gfile.exists(f"{path}.index") and (path, changed) not in unreadable:
                    unreadable.add((path, changed))
                    continue
                seen.add((path, changed))
                last_news = time.monotonic()
                if metrics:
                    evaluations.append((checkpoint_step(path), metrics))
                    yield path, metrics
            if time.monotonic() - last_news >= timeout_seconds and not unreadable - seen:
                break
            time.sleep(poll_seconds)
        if timeout_seconds:
            LOGGER.info(f"no new checkpoint for {timeout_seconds / 60:g} minutes: evaluation ends")
        warn_of_zeros(evaluations)
        if not evaluations:
            raise self._error or UserError(
                f"--output_dir={self._output_dir}: no checkpoint to evaluate. Run t2t-trainer first, or raise "
                "--eval_timeout_mins."
            )

    def _evaluate_if_readable(self, path, changed, is_last_try):
        """Returns the new or logged metrics of a checkpoint, or None if the checkpoint is deleted or unreadable."""
        try:
            self._open(path)
            if logged := self._logged(path, changed):
                LOGGER.info(f"{os.path.basename(path)} has been evaluated before ({self._output_dir}/eval.log)")
                return logged
            return self._evaluate(path)
        except UserError as error:
            if not tf.io.gfile.exists(f"{path}.index"):
                LOGGER.info(f"{os.path.basename(path)} has been deleted and is skipped")
            elif not isinstance(error, _Unreadable):
                raise
            elif is_last_try:
                LOGGER.warning(f"{error} The checkpoint is skipped.")
                self._error = error
            return None

    def _open(self, path):
        """Builds the model and the evaluator for the first checkpoint, and again if a new run replaces the run."""
        config = read_config_of(path)
        if config == self._config:
            return
        trained = hparams_of(config)
        hparams = self._change_hparams(trained)
        free = (*_FREE, *(name for name in trained.values() if name.startswith("eval_") and name not in _FREE))
        for name, value in hparams.values().items():
            if name not in free and value != trained.get(name):
                raise UserError(
                    f"--hparams: {name}={value}, but this model was trained with {name}={trained.get(name)}. Remove "
                    f"this setting; only {', '.join(free)} may differ."
                )
        problem = registry.problem(config["problem"])
        records = Records(problem, self._data_dir, self._split)
        records.check()
        check_stride(problem, self._settings.eval_stride, self._split, carries_state(registry.model(config["model"])))
        run = _readable(open_run, LocatedRun(path, config | {"hparams": hparams.values()}), self._data_dir)
        records.check_vocabulary_of_model(run.encoders)
        tokenization = tokenization_of_problem(problem, hparams)
        values = {name: hparams.get(name) for name in free}
        values["eval_tokenization"] = "" if tokenization == DEFAULT else tokenization  # older logs omit the default
        stride = self._settings.eval_stride
        self._logged_settings = {
            "eval_steps": self._settings.eval_steps,
            **{name: value for name, value in values.items() if value != ""},
            **(self._settings.search or {}),
            **({"eval_stride": stride} if stride else {}),
            "records": records.fingerprint(shards_to_evaluate(self._split)),
        }
        self._evaluator = Evaluator(run.model, run.encoders, hparams, records, self._settings)
        self._model, self._config = run.model, config

    def _logged(self, path, changed):
        """Returns the logged metrics of an earlier evaluation with the same settings, or None."""
        facts = {"event": "evaluation", "step": checkpoint_step(path), **self._facts(changed)}
        same = [line for line in self._log.read() if all(line.get(name) == value for name, value in facts.items())]
        return metrics_of(same[-1]) if same else None

    def _facts(self, changed):
        return {"split": FILE_TAGS[self._split], "checkpoint_time": changed, "settings": self._logged_settings}

    def _evaluate(self, path):
        check_writable(self._output_dir)  # the folder for eval.log and TensorBoard
        changed = _time_of(f"{path}.index")
        _readable(restore_weights, path, self._model)
        folder, name = FOLDERS[self._split], f"{FILE_TAGS[self._split]} set"
        step, facts = checkpoint_step(path), self._facts(changed)
        return evaluate_and_log(self._evaluator, self._log, step, folder, name, **facts)


class _Unreadable(UserError):
    """The error for a checkpoint that is damaged, incomplete or deleted."""


def _readable(function, path, argument):
    """Calls a function that reads a checkpoint, and converts errors in the file to `_Unreadable`."""
    try:
        return function(path, argument)
    except (UserError, tf.errors.OpError, ValueError) as error:
        raise _Unreadable(str(error)) from error


def _time_of(path):
    """Returns a file's modification time in whole seconds since 1970, or None if the file has been deleted."""
    try:
        return tf.io.gfile.stat(path).mtime_nsec // 10**9
    except tf.errors.NotFoundError:
        return None
