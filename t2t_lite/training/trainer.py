"""The trainer, which starts or resumes a run on one device or several replicas (mirrors utils/trainer_lib.py)."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable

import keras
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.cli.console import stop_on_signal
from t2t_lite.data.example_batches import check_stride
from t2t_lite.data.splits import DatasetSplit, named_split
from t2t_lite.data.width_ladder import MOST_SHAPES
from t2t_lite.decoding import bfloat16
from t2t_lite.errors import LOGGER
from t2t_lite.evaluation.metrics import metric_names
from t2t_lite.files import copy_files, is_remote, write_bytes
from t2t_lite.models.fine_tuning import describe_frozen, parameters
from t2t_lite.models.outputs import batches_of
from t2t_lite.models.unread_settings import describe_unused_kinds
from t2t_lite.process.backend import check_tensorflow
from t2t_lite.runs import directory as run_directory
from t2t_lite.runs.checkpoints import holds
from t2t_lite.runs.run_config import read_run_config, run_config, write_run_config
from t2t_lite.runs.warm_start import warm_start
from t2t_lite.runs.weights import averaged_weights, start_averages
from t2t_lite.settings.config import HParams
from t2t_lite.settings.tensor2tensor_names import without_multistep
from t2t_lite.training.checkpoint_evaluation import CheckpointEvaluation
from t2t_lite.training.distribution import choose_replicas, set_xla_flags
from t2t_lite.training.evaluator import Evaluator
from t2t_lite.training.loop import TrainingLoop
from t2t_lite.training.monitor import Monitor, default_metric, keep_best
from t2t_lite.training.optimization.optimizers import describe_unfreezing
from t2t_lite.training.optimization.schedules import describe_short_run
from t2t_lite.training.profiling import Compilations
from t2t_lite.training.progress import announce
from t2t_lite.training.run_context import (
    RunContext,
    TrainingState,
    generator_states,
    kept_states,
    layers_that_draw,
    unsaved_state,
)
from t2t_lite.training.settings import (
    NOT_GIVEN,
    CheckpointSettings,
    DeviceSettings,
    EvaluationSettings,
    LengthSettings,
    LogSettings,
    RememberedFlags,
)
from t2t_lite.training.training_data import open_training_data, several_sentences

_STOPPING = "signal received: saving a checkpoint and stopping; a second SIGTERM or Ctrl-C stops immediately."


@dataclasses.dataclass
class Trainer:
    """Trains a registered model on a registered problem, in an output_dir.

    Calling `train` again, in this process or in another, continues from the newest checkpoint. The result is
    bit-for-bit identical to that of an uninterrupted run.

    Args:
        problem: str, the name of the problem. If None, the problem of the run in output_dir is used. `model`, `hparams`
            and `hparams_set` also default to the run's values.
        model: str, the name of the model. If None, a new run uses the model of its hparams set or task, such as
            "transformer".
        hparams: HParams, or the name of an hparams set. If None, a new run uses the hyperparameters of `hparams_set`.
        hparams_set: str, the name of the hparams set.
        data_dir: path of the folder where t2t-datagen wrote the records and the vocabulary.
        output_dir: path of the folder for checkpoints and logs.
        evaluation: EvaluationSettings, or None to not evaluate while training. Without this argument, a resumed run
            keeps its settings, and a new run has the defaults. The same holds for the next three arguments.
        checkpoints: CheckpointSettings.
        devices: DeviceSettings.
        log: LogSettings.
        inexact: tuple of str, other settings of the caller that make the run irreproducible, for the log.
        allow_hparams_change: bool, whether a resumed run may have different hyperparameters.
        keep_batches_a_step: bool, whether a run that is resumed on a different number of replicas adjusts its
            accumulation so that its steps stay the same. If False (and with allow_hparams_change), it uses the
            accumulation set in `hparams`.
        warm_start_from: str, a checkpoint or the output_dir of another run; a new run starts with its weights.
        usr_dir: str, the user's --t2t_usr_dir, stored for later commands.
        flags_text: str, the contents to write to `flags.txt`.
        also_asked: dict of JSON values, other settings of the caller that the run should remember, or None.
        remembers: bool, whether the run stores its settings for later runs. Use False to try out a setup.
        stop_when: function that is called after each evaluation with all evaluations so far, a list of (step, {metric:
            value}) from `monitor.history`. It returns the reason to stop early, a str, or None.

    Attributes:
        ended_by: str, why `train` returned: "train_steps", "early_stopping" or "signal".
        was_signalled: bool, whether a signal arrived during training, even after the last step.
        trained: the keras.Model built by `train`, with the weights of the last step.

    Example:
        >>> Trainer(problem="translate_ende_phrasebook", hparams_set="transformer_tiny",
        ...         data_dir="data", output_dir="train").train(1000)               # doctest: +SKIP
    """

    problem: str | None = None
    model: str | None = None
    hparams: HParams | str | None = None
    hparams_set: str | None = None
    data_dir: str | os.PathLike = ""
    output_dir: str | os.PathLike = ""
    evaluation: EvaluationSettings | None = NOT_GIVEN["evaluation"]
    checkpoints: CheckpointSettings = NOT_GIVEN["checkpoints"]
    devices: DeviceSettings = NOT_GIVEN["devices"]
    log: LogSettings = NOT_GIVEN["log"]
    inexact: tuple = ()
    allow_hparams_change: bool = False
    keep_batches_a_step: bool = True
    warm_start_from: str | os.PathLike = ""
    usr_dir: str = ""
    flags_text: str = ""
    also_asked: dict | None = None
    remembers: bool = True
    stop_when: Callable | None = None

    def __post_init__(self):
        for name in ("data_dir", "output_dir", "warm_start_from"):
            if path := getattr(self, name):
                setattr(self, name, os.fspath(path))

    def train(self, train_steps: int | None = None) -> dict[str, float]:
        """Trains until step `train_steps`, counted from the start of the run.

        On SIGTERM, SIGINT, SIGHUP or SIGUSR1, the run saves a checkpoint and ends early. A second signal ends the run
        immediately.

        Args:
            train_steps: int, at least 0. Defaults to the number that the run in output_dir remembers, or to 250,000 for
                a new run.

        Returns:
            The metrics of the last evaluation, a dict, which is empty if there was no evaluation.

        Raises:
            UserError: if settings, data and output_dir do not match.
            Failure: if the loss stayed non-finite, or a checkpoint could not be saved.
        """
        if train_steps is not None:
            train_steps = LengthSettings(train_steps).train_steps
        self.check()
        train_steps = self._remember(train_steps)
        with run_directory.locked(self.output_dir) if self._context.replicas.is_chief else contextlib.nullcontext():
            self._compare()  # before the machines share the initial weights, which would fail for different models
            self._build(train_steps)
            warm_start_facts = self._warm_start()
            path, damaged = self._restore()
            self._announce(train_steps)
            self._compilations.check()
            self._write_settings(damaged)
            self._log_start(path, warm_start_facts)
            loop = TrainingLoop(self._context, self._state, self._compilations, self._monitor)
            with stop_on_signal(lambda: LOGGER.info(_STOPPING)) as stopped, self._context.replicas.naming_lost_worker():
                metrics = loop.run(train_steps, stopped)
            self.ended_by, self.was_signalled = loop.ended_by, stopped.is_set()
            return metrics

    def evaluate(self, split: str = DatasetSplit.EVAL) -> dict[str, float]:
        """Evaluates the newest checkpoint; returns its metrics, and writes them to `eval.log` and TensorBoard.

        Args:
            split: str, a name in `DatasetSplit`, or "dev" for "eval".

        Raises:
            UserError: if the checkpoint is missing, or the split is unknown.
        """
        settings = self.evaluation or EvaluationSettings()

        def change_hparams(trained):
            return without_multistep(registry.hparams(self.hparams)) if self.hparams else trained

        folders = self.output_dir, self.data_dir
        return CheckpointEvaluation(*folders, named_split(split), settings, change_hparams).newest()

    # Set-up.

    def check(self):
        """Checks names, settings and data, as `train` does before it writes any files. Raises `UserError`."""
        check_tensorflow("Trainer")
        arguments = self.problem, self.model, self.hparams, self.hparams_set
        settings = run_directory.fill_in_settings(self.output_dir, *arguments)
        self.problem, self.model, self.hparams, self.hparams_set = settings
        run_directory.check_belongs(self.output_dir, {"problem": self.problem, "model": self.model})
        hparams = without_multistep(self.hparams).of_model(registry.model(self.model))
        self.hparams = registry.problem(self.problem).model_hparams(hparams)
        before = read_run_config(self.output_dir)
        self._before = RememberedFlags(self.output_dir, (before or {}).get("plan", {}))
        remembered = self._before.settings()
        for name, settings in NOT_GIVEN.items():
            if getattr(self, name) is settings:
                setattr(self, name, remembered[name])
        compiles, was_compiled = self.devices.xla_compile, (before or {}).get("xla_compile", False)
        compiles = was_compiled if compiles is None else compiles
        shapes = self.devices.xla_shapes or (before or {}).get("xla_shapes", MOST_SHAPES)
        if compiles:
            set_xla_flags()
        replicas = choose_replicas(self.devices.worker_gpu, self.devices.logical_cpus)  # before any tensor is created
        has_gpu = bool(tf.config.get_visible_devices("GPU"))
        if has_gpu and self.devices.deterministic:
            tf.config.experimental.enable_op_determinism()
        if has_gpu and not compiles:
            LOGGER.info("On a GPU, training with --xla_compile may be several times as fast: see docs/gpus.md.")
        # This seed is for the initial weights; the order of the data has a separate seed.
        keras.utils.set_random_seed(self.hparams.random_seed % 2**32)
        # The accumulation is adjusted so that the steps are the same as earlier in the run.
        count, keep = replicas.count, self.keep_batches_a_step or not self.allow_hparams_change
        requested = self.hparams.gradient_accumulation_steps
        accumulation = run_directory.accumulation_for(count, requested, before, keep)
        batches = batches_of(registry.model(self.model))
        lanes = batches.lanes_of(replicas, accumulation, before, self.output_dir)
        settings = self.problem, self.hparams, self.data_dir, shapes if compiles else None, batches, lanes
        data = open_training_data(*settings, evaluates=self.evaluation is not None)
        run_directory.check_places(self.output_dir, data.encoder_files)
        stride = self.evaluation.eval_stride if self.evaluation else 0
        check_stride(data.problem, stride, DatasetSplit.EVAL, lanes is not None)
        names = {"hparams_set": self.hparams_set, "usr_dir": self.usr_dir}
        config = run_config(self.problem, self.model, self.hparams, data.encoders, **names) | {
            "batches_a_step": count * accumulation,
            "xla_compile": compiles,
            "xla_shapes": shapes,
            "records_sha256": data.records.fingerprint(),
            "several_sentences": several_sentences(data),
        }
        self._context = RunContext(
            self.output_dir, config, self.hparams, accumulation, data, replicas, self.evaluation, self.checkpoints,
            self.devices, self.log,
        )  # fmt: skip

    def _remember(self, train_steps):
        """Combines the given settings with the settings that the run remembers; returns the number of steps."""
        if train_steps is None:
            train_steps = self._before.settings()["train_steps"]
        settings = train_steps, self.evaluation, self.checkpoints, self.devices, self.log
        self._flags = self._before.updated(*settings, **(self.also_asked or {}))
        if values := (self._flags if self.remembers else self._before).values:
            self._context.config["plan"] = values
        return train_steps

    def _build(self, train_steps):
        """Builds the training state, which includes the model and the optimizer, and the monitor of the run."""
        # A run that only tries out a setup uses the full run's learning rates, which may depend on its length.
        length = train_steps if self.remembers else max(train_steps, self._before.values.get("train_steps", 0))
        self._state = TrainingState(self._context, length)
        self.trained = self._state.model
        self._compilations = Compilations(self._context, self._state.train_step)
        self._monitor = self._make_monitor()

    def _compare(self):
        """Raises `UserError` if machines have different settings, or if settings that must not change have changed."""
        config, check_same = self._context.config, self._context.replicas.check_same
        values = {name: value for name, value in config.items() if name not in ("hparams", "plan")}
        check_same(values | config["hparams"], "problem, model and hyperparameters")
        command_settings = {"warm_start_from": self.warm_start_from, "allow_hparams_change": self.allow_hparams_change}
        check_same(self._flags.values | command_settings, "settings")
        self._changed = run_directory.changed_hparams(self.output_dir, config, self.allow_hparams_change)
        self._stream_changed = [name for name in run_directory.STREAM if name in self._changed]

    def _announce(self, train_steps):
        gives_up = list(self.inexact)
        if not self.devices.deterministic:
            gives_up.append("--nodeterministic: faster GPU operations may add numbers in a different order each time")
        settings = self.evaluation or EvaluationSettings()
        if settings.early_stopping.steps and settings.eval_throttle_seconds:
            gives_up.append("--eval_throttle_seconds: the step at which the run stops early depends on the clock")
        goes_on = int(self._state.step) < train_steps
        if goes_on:
            for what in unsaved_state(self._state.train_step):
                gives_up.append(f"{what}: its state is not saved, unlike the state of keras.random.SeedGenerator")
        announce(self._context, self._state.train_step, gives_up)
        warnings = describe_unused_kinds(self.trained, self.hparams)
        if self.remembers and goes_on and self._context.replicas.is_chief:
            warnings = [*describe_short_run(self._state.optimizer), *warnings]
        for line in warnings:
            LOGGER.warning(line)
        if not int(self._state.step):
            bfloat16.suggest("--hparams=dtype_policy=mixed_bfloat16", self.hparams.values(), self.hparams.batch_size)
        if frozen := self.hparams.frozen:
            LOGGER.info(describe_frozen(self.trained, frozen))
        if steps := self.hparams.unfreeze_steps:
            LOGGER.info(describe_unfreezing([w.path for w in parameters(self.trained)], steps, train_steps))

    def _warm_start(self):
        """Loads the weights of another run into a new run; returns facts for the log."""
        if self._state.checkpoints.latest:
            if self.warm_start_from:
                LOGGER.info(f"--warm_start_from={self.warm_start_from} is not used: {self.output_dir} has checkpoints")
            return {}
        # A run that ended before its first checkpoint restarts from the same weights.
        if not (source := self.warm_start_from or self._before.values.get("warm_start_from")):
            if self.hparams.frozen or self.hparams.lora_rank:
                LOGGER.warning("Without --warm_start_from, frozen weights keep their initial values.")
            return {}
        facts = warm_start(source, self.trained, self._context.data.encoders, self.hparams)
        source = facts["warm_start_from"]
        self._flags.values["warm_start_from"] = source if is_remote(source) else os.path.abspath(source)
        return facts

    def _restore(self):
        """Restores the newest readable checkpoint; returns its path or None, and {unreadable newer path: reason}."""
        skip = ("iterator", "state") if self._stream_changed else ()
        path, damaged = self._state.checkpoints.restore_latest(skip=skip)
        self._context.replicas.check_same([int(self._state.step), path and os.path.basename(path)], "checkpoints")
        if path is None:
            start_averages(self.trained, self._state.optimizer)
        return path, damaged

    def _write_settings(self, damaged):
        """Writes settings and vocabulary to output_dir, after all checks, and renames damaged checkpoints."""
        for why in damaged.values():
            LOGGER.warning(f"{why} The checkpoint is renamed to damaged-…, and the previous checkpoint is used.")
        if self._context.replicas.is_chief:
            write_run_config(self.output_dir, self._context.config)
            copy_files(self._context.data.encoder_files, self.output_dir)
            self._state.checkpoints.remove_leftovers()
            self._state.checkpoints.set_aside(damaged)
            if self.flags_text:
                write_bytes(os.path.join(self.output_dir, "flags.txt"), self.flags_text.encode())

    def _log_start(self, path, warm_start_facts):
        """Logs the run's settings, and whether the run starts or is resumed from the checkpoint `path`."""
        log, state = self._context.log, self._state
        step, batch = int(state.step), int(state.batches_read)
        log.forget_events_after(step)
        facts = {
            "replicas": self._context.replicas.count,
            "gradient_accumulation_steps": self._context.accumulation,
            "random_seed": self.hparams.random_seed,
            "deterministic": self.devices.deterministic,
        }
        if path is None:
            log.write("start", 0, **facts, **warm_start_facts)
            return
        LOGGER.info(f"resumed at step {step}, data batch {batch}")
        LOGGER.info(f"flags of the run: {self._flags}")
        if self._stream_changed:
            LOGGER.info(
                "the data are read from the beginning, because these settings changed: "
                f"{', '.join(self._stream_changed)}"
            )
        if generator_states(self.trained) and not holds(path, "generators"):
            LOGGER.warning(
                f"{path} lacks the random states of {', '.join(layers_that_draw(self.trained))}, which are therefore "
                "initialized again"
            )
        if (scale := state.train_step.loss_scale) and not holds(path, "loss_scale"):
            LOGGER.info(f"{path} was not trained in float16: the loss scale starts at {float(scale.value):,.0f}")
        changed = self._before.log_changes(self._flags, state.optimizer) if self.remembers else {}
        facts |= {"changed": changed} if changed else {}
        log.write("resume", step, data_batch=batch, checkpoint=os.path.basename(path), **facts)
        if self._changed:
            log.write("hparams_change", step, changed=self._changed)

    @contextlib.contextmanager
    def _weights_to_evaluate(self):
        with kept_states(self.trained), averaged_weights(self.trained, self._state.optimizer):
            yield

    def _make_monitor(self):
        context, evaluator, best, compared = self._context, None, None, {}
        if (settings := self.evaluation) and context.replicas.is_chief:
            data = context.data
            names = metric_names(data.problem, self.hparams, settings.translate_all)
            metric = settings.best_checkpoint_metric or default_metric(names)
            if metric != "none" and self.remembers:  # a run that only tries out a setup keeps the best model
                best = functools.partial(keep_best, context, metric)
            weights = self._weights_to_evaluate
            evaluator = Evaluator(self.trained, data.encoders, self.hparams, data.dev_records, settings, weights)
            compared = settings.comparable(self.hparams, data.dev_records)
        return Monitor(context, evaluator, best, self.stop_when, compared)
