"""The settings of a `Trainer` other than problem, model and hyperparameters, and those that a run remembers.

A setting with a meaning is also a flag of t2t-trainer, with the same name, default and range.
"""

import dataclasses
import logging
import os

from t2t_lite.errors import located
from t2t_lite.runs.run_config import FILE_NAME
from t2t_lite.settings import ranges
from t2t_lite.settings.ranges import setting, settings_of

_LOGGER = logging.getLogger("t2t_lite")
EARLY = "eval_early_stopping_"  # prefix of the flags of `EarlyStopping`
# hparams.json holds the first two in any case; the last one concerns a single process.
_NOT_REMEMBERED = ("xla_compile", "xla_shapes", "profile")
_SCHEDULES = {False: "continuous_train_and_eval", True: "train_eval_and_decode"}  # by `translate_all`
_WITHOUT_EVALUATIONS = "train"


class _Checked:
    def __post_init__(self):
        ranges.check_settings(self, limited_only=True)


@dataclasses.dataclass(frozen=True)
class LengthSettings(_Checked):
    """How long a run trains: the argument of `Trainer.train`."""

    train_steps: int = setting(
        250_000, limits=ranges.COUNT, meaning="Stop at this step, counted from the start of the run."
    )


@dataclasses.dataclass(frozen=True)
class EarlyStopping(_Checked):
    """The rule by which a run stops early: see `t2t_lite.training.monitor`. Flags: eval_early_stopping_…."""

    steps: int | None = setting(
        None, limits=ranges.STEPS_BETWEEN, meaning="Stop when the metric has not improved within this many steps."
    )
    metric: str = setting("loss", meaning="The metric of --eval_early_stopping_steps.")
    metric_delta: float = setting(0.1, limits=ranges.METRIC_MOVE, meaning="The smallest move that counts.")
    metric_minimize: bool | None = setting(None, meaning="Whether less is better. Default: as the metric declares.")


@dataclasses.dataclass(frozen=True)
class EvaluationSettings(_Checked):
    """How a run is evaluated while it trains.

    Two of them are not flags: `search` is a dict of `SearchOptions` for the outputs (None: the hyperparameters eval_…
    apply); `translate_all`: whether each evaluation translates the whole dev set, into `<output_dir>/decode`.
    """

    eval_steps: int = setting(0, limits=ranges.COUNT, meaning="Batches per evaluation; 0: the whole set.")
    eval_stride: int = setting(
        0, limits=ranges.COUNT, meaning="Language models: slide a window by this many ids and score only these, given "
        "the ids before them in the text; 0: score each row by itself."
    )  # fmt: skip
    eval_throttle_seconds: float = setting(
        0, limits=ranges.SECONDS, meaning="Least time between two evaluations, except the last; 0: none."
    )
    best_checkpoint_metric: str | None = setting(
        None, meaning="Metric of the model kept in best/. Default: BLEU or a parser's F1, or the loss; none: keep none."
    )
    early_stopping: EarlyStopping = EarlyStopping()
    search: dict | None = None
    translate_all: bool = False


@dataclasses.dataclass(frozen=True)
class CheckpointSettings(_Checked):
    """When a run saves, and what it keeps."""

    local_eval_frequency: int = setting(
        1000, limits=ranges.STEPS_BETWEEN, meaning="Steps between checkpoints, with an evaluation each."
    )
    save_checkpoints_secs: float = setting(
        0, limits=ranges.SECONDS, meaning="Seconds between further checkpoints; 0: none."
    )
    keep_checkpoint_max: int = setting(
        20, limits=ranges.CHECKPOINTS_KEPT, meaning="Number of recent checkpoints to keep; 0: all."
    )
    keep_checkpoint_every_n_hours: float = setting(
        10000, limits=ranges.HOURS, meaning="Hours between checkpoints that are kept permanently."
    )


@dataclasses.dataclass(frozen=True)
class DeviceSettings(_Checked):
    """The devices of a run, and how it uses them."""

    worker_gpu: int = setting(1, limits=ranges.GPUS, meaning="GPUs per machine; 1 falls back to the CPU.")
    logical_cpus: int = setting(
        0, limits=ranges.LOGICAL_CPUS, meaning="Train on this many CPU replicas instead; 0: off."
    )
    deterministic: bool = setting(True, meaning="Use only GPU operations that give the same bits every time.")
    xla_compile: bool | None = setting(
        None, meaning="Compile training with XLA, for batches of few shapes. Default: off, or as the run began."
    )
    xla_shapes: int | None = setting(
        None,
        limits=ranges.SHAPES,
        meaning="Most batch shapes that XLA compiles; fewer mean more padding. Default: 16, or as the run began.",
    )


@dataclasses.dataclass(frozen=True)
class LogSettings(_Checked):
    """How a run shows its progress."""

    log_step_count_steps: int = setting(
        100,
        limits=ranges.STEPS_BETWEEN,
        meaning="Steps between progress reports in the log, and on stderr unless it is a terminal.",
    )
    profile: bool = setting(False, meaning="Write a trace of steps 11 to 15, for TensorBoard's profiler.")


# A `Trainer`'s defaults. An argument that is one of these objects means "as in the earlier run".
NOT_GIVEN = {
    "evaluation": EvaluationSettings(),
    "checkpoints": CheckpointSettings(),
    "devices": DeviceSettings(),
    "log": LogSettings(),
}


@dataclasses.dataclass(frozen=True)
class RememberedFlags:
    """The flags with which a run was started, other than problem, model and hyperparameters: "plan" in `hparams.json`.

    Attributes:
        output_dir: str, of the run, for messages.
        values: {name of a flag of t2t-trainer: JSON value}, which a command or a `Trainer` uses for flags that are not
            given again. Missing flags have their defaults.
    """

    output_dir: str = ""
    values: dict = dataclasses.field(default_factory=dict)

    @property
    def path(self):
        """The file that holds them."""
        return os.path.join(self.output_dir, FILE_NAME)

    def updated(self, train_steps, evaluation, checkpoints, devices, log, **further):
        """Returns a copy with the values of a `Trainer`'s arguments; `further` are JSON values."""
        values = {"train_steps": train_steps, "schedule": _WITHOUT_EVALUATIONS}
        for settings in filter(None, (checkpoints, devices, log, evaluation)):
            values |= {name: getattr(settings, name) for name in _names(type(settings))}
        if evaluation is not None:
            early = evaluation.early_stopping
            values |= {f"{EARLY}{name}": getattr(early, name) for name in _names(EarlyStopping)}
            values |= {"schedule": _SCHEDULES[evaluation.translate_all], "search": evaluation.search}
        return dataclasses.replace(self, values=self.values | values | further)

    def settings(self):
        """Returns the `Trainer`'s arguments for these values, {name: settings}, and "train_steps".

        Raises:
            UserError: a value of another type, or out of range.
        """
        with located(self.path):
            found = {name: self._read(type(value)) for name, value in NOT_GIVEN.items() if name != "evaluation"}
            found["train_steps"] = self._read(LengthSettings).train_steps
            schedule, evaluation = self.values.get("schedule"), None
            if schedule != _WITHOUT_EVALUATIONS:
                early, search = self._read(EarlyStopping, EARLY), self.values.get("search")
                further = {"early_stopping": early, "search": search, "translate_all": schedule == _SCHEDULES[True]}
                evaluation = self._read(EvaluationSettings, **further)
            return found | {"evaluation": evaluation}

    def _read(self, settings, prefix="", **further):
        declared, values = settings_of(settings), self.values
        names = [name for name in _names(settings) if f"{prefix}{name}" in values]
        return settings(**{name: declared[name].typed(values[f"{prefix}{name}"]) for name in names}, **further)

    def restore(self, flags, of_command=()):
        """Sets flags that were not given to these values.

        Args:
            flags: absl's FlagValues of t2t-trainer, modified in place.
            of_command: names of flags without a corresponding argument of a `Trainer`.

        Raises:
            UserError: a value is invalid for its flag.
        """
        values = dict(self.values)
        if "search" in values:
            values["decode_hparams"] = ",".join(f"{name}={v}" for name, v in (values.pop("search") or {}).items())
        if flags["worker_gpu"].present:
            values.pop("logical_cpus", None)  # they would replace GPUs
        with located(self.path):
            for name in {*_DEFAULTS, "decode_hparams", *of_command} & values.keys():
                flags[name].recall(values[name])

    def warn_of_no_steps(self, config, train_steps):
        """Warns if a run, whose `hparams.json` is `config`, does not know its number of steps."""
        if config and "plan" not in config:
            _LOGGER.warning(
                f"{self.path}: does not hold the number of steps, so that train_steps={train_steps:,}, the default. "
                "Expected --train_steps=N, as when the run was started."
            )

    def __str__(self):
        """Formats the steps, and the flags that differ from their defaults, for the log."""
        values = self.values
        other = [n for n, value in values.items() if (value != _DEFAULTS[n] if n in _DEFAULTS else value)]
        return ", ".join(f"{name}={values[name]}" for name in dict.fromkeys(["train_steps", *other]))

    def log_changes(self, now, optimizer):
        """Logs which flags of a resumed run have changed; returns them, {name: [old, new]}.

        Args:
            now: RememberedFlags.
            optimizer: the run's optimizer, built and restored, with the schedule of `now`.
        """
        from t2t_lite.training.optimization.schedules import describe_other_length  # it needs Keras

        changed = {n: [old, now.values[n]] for n, old in self.values.items() if old != now.values[n]}
        if changed:
            differing = ", ".join(f"{name}: {old} -> {new}" for name, (old, new) in changed.items())
            _LOGGER.info(f"unlike before: {differing}")
        if "train_steps" in changed and (other := describe_other_length(optimizer, self.values["train_steps"])):
            _LOGGER.warning(other)
        return changed


def _names(settings):
    """Returns the names of a class's settings that a run remembers."""
    declared = settings_of(settings).values()
    return [setting.name for setting in declared if setting.meaning and setting.name not in _NOT_REMEMBERED]


_DEFAULTS = RememberedFlags().updated(LengthSettings().train_steps, **NOT_GIVEN).values
