"""What a `Trainer` may be told beside problem, model and hyperparameters, and what of it its run remembers.

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
EARLY = "eval_early_stopping_"  # begins the names of the flags of `EarlyStopping`
# hparams.json has the former two in any case; the last is of one process.
_NOT_REMEMBERED = ("xla_compile", "xla_shapes", "profile")
_SCHEDULES = {False: "continuous_train_and_eval", True: "train_eval_and_decode"}  # by whether it translates all
_WITHOUT_EVALUATIONS = "train"


class _Checked:
    def __post_init__(self):
        ranges.check_settings(self, limited_only=True)


@dataclasses.dataclass(frozen=True)
class LengthSettings(_Checked):
    """How long a run trains: what `Trainer.train` is told."""

    train_steps: int = setting(
        250_000, limits=ranges.COUNT, meaning="Stop at this step, counted from the very beginning."
    )


@dataclasses.dataclass(frozen=True)
class EarlyStopping(_Checked):
    """The rule by which a run ends early: see `t2t_lite.training.monitor`. Flags: eval_early_stopping_…."""

    steps: int | None = setting(
        None, limits=ranges.STEPS_BETWEEN, meaning="Stop when the metric has not improved within this many steps."
    )
    metric: str = setting("loss", meaning="The metric of --eval_early_stopping_steps.")
    metric_delta: float = setting(0.1, limits=ranges.METRIC_MOVE, meaning="The smallest move that counts.")
    metric_minimize: bool | None = setting(None, meaning="Whether less is better; default: the metric's own.")


@dataclasses.dataclass(frozen=True)
class EvaluationSettings(_Checked):
    """How a run is evaluated while it trains.

    Beside the flags: `search` is a dict of `SearchOptions` for the outputs (None: the hyperparameters eval_… decide);
    `translate_all` says whether each evaluation translates the whole dev set, into `<output_dir>/decode`.
    """

    eval_steps: int = setting(0, limits=ranges.COUNT, meaning="Batches of an evaluation; 0: the whole set.")
    eval_stride: int = setting(
        0, limits=ranges.COUNT, meaning="Language models: move by so many ids and score only these, each given those "
        "before it in the text; 0: score the rows, each for itself."
    )  # fmt: skip
    eval_throttle_seconds: float = setting(
        0, limits=ranges.SECONDS, meaning="Least time between the starts of two evaluations but the last; 0: none."
    )
    best_checkpoint_metric: str | None = setting(
        None, meaning="Of the model kept in best/; default: BLEU or a parser's F1, or the loss; none: keep none."
    )
    early_stopping: EarlyStopping = EarlyStopping()
    search: dict | None = None
    translate_all: bool = False


@dataclasses.dataclass(frozen=True)
class CheckpointSettings(_Checked):
    """When a run saves, and what it keeps."""

    local_eval_frequency: int = setting(
        1000, limits=ranges.STEPS_BETWEEN, meaning="Save and evaluate every so many steps."
    )
    save_checkpoints_secs: float = setting(
        0, limits=ranges.SECONDS, meaning="Save also every so many seconds; 0: by steps."
    )
    keep_checkpoint_max: int = setting(
        20, limits=ranges.CHECKPOINTS_KEPT, meaning="How many recent checkpoints are kept; 0: all."
    )
    keep_checkpoint_every_n_hours: float = setting(
        10000, limits=ranges.HOURS, meaning="Keep one checkpoint permanently every so many hours."
    )


@dataclasses.dataclass(frozen=True)
class DeviceSettings(_Checked):
    """What a run computes on, and how."""

    worker_gpu: int = setting(
        1, limits=ranges.GPUS, meaning="GPUs to train on, of each machine; 1 falls back to the CPU."
    )
    logical_cpus: int = setting(
        0, limits=ranges.LOGICAL_CPUS, meaning="Train on so many replicas on the CPU instead; 0: off."
    )
    deterministic: bool = setting(True, meaning="Use only operations of a GPU that give the same bits every time.")
    xla_compile: bool | None = setting(
        None, meaning="Compile training with XLA, with batches of few shapes; default: off, or the run's."
    )
    xla_shapes: int | None = setting(
        None,
        limits=ranges.SHAPES,
        meaning="The most shapes of batches that XLA compiles; fewer hold more padding. Default: 16, or the run's.",
    )


@dataclasses.dataclass(frozen=True)
class LogSettings(_Checked):
    """What a run shows of its progress."""

    log_step_count_steps: int = setting(
        100,
        limits=ranges.STEPS_BETWEEN,
        meaning="Steps between progress reports in the log, and on stderr unless it is a terminal.",
    )
    profile: bool = setting(False, meaning="Write a trace of steps 11 to 15, for TensorBoard's profiler.")


# What a `Trainer` has where nothing was given. These very objects stand for the settings of an earlier run.
NOT_GIVEN = {
    "evaluation": EvaluationSettings(),
    "checkpoints": CheckpointSettings(),
    "devices": DeviceSettings(),
    "log": LogSettings(),
}


@dataclasses.dataclass(frozen=True)
class RememberedFlags:
    """What a run was asked to do, beside problem, model and hyperparameters: the "plan" of its `hparams.json`.

    Attributes:
        output_dir: str, of the run, for messages.
        values: {name of a flag of t2t-trainer: JSON value}, from which a command, or a `Trainer`, takes what it was not
            given again. What is missing has its default.
    """

    output_dir: str = ""
    values: dict = dataclasses.field(default_factory=dict)

    @property
    def path(self):
        """The file that they are in."""
        return os.path.join(self.output_dir, FILE_NAME)

    def updated(self, train_steps, evaluation, checkpoints, devices, log, **further):
        """Returns these, with the values that arguments of a `Trainer` describe; `further` are JSON values."""
        values = {"train_steps": train_steps, "schedule": _WITHOUT_EVALUATIONS}
        for settings in filter(None, (checkpoints, devices, log, evaluation)):
            values |= {name: getattr(settings, name) for name in _names(type(settings))}
        if evaluation is not None:
            early = evaluation.early_stopping
            values |= {f"{EARLY}{name}": getattr(early, name) for name in _names(EarlyStopping)}
            values |= {"schedule": _SCHEDULES[evaluation.translate_all], "search": evaluation.search}
        return dataclasses.replace(self, values=self.values | values | further)

    def settings(self):
        """Returns the arguments of a `Trainer` that they describe, {name: settings}, and "train_steps".

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
            of_command: names of flags that no argument of a `Trainer` corresponds to.

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
        """Warns that a run, whose `hparams.json` is `config`, does not say for how long it was to train."""
        if config and "plan" not in config:
            _LOGGER.warning(
                f"{self.path}: does not say for how long the run was to train: "
                f"train_steps={train_steps:,}, the default. Expected --train_steps=N, as the run began."
            )

    def __str__(self):
        """As a line for the log: the steps, and what else is not as it is by default."""
        values = self.values
        other = [n for n, value in values.items() if (value != _DEFAULTS[n] if n in _DEFAULTS else value)]
        return ", ".join(f"{name}={values[name]}" for name in dict.fromkeys(["train_steps", *other]))

    def log_changes(self, now, optimizer):
        """Says what a resumed run is asked to do that it was not before; returns that, {name: [old, new]}.

        Args:
            now: RememberedFlags.
            optimizer: the run's, built and restored, with the schedule of `now`.
        """
        from t2t_lite.training.optimization.schedules import describe_other_length  # needs Keras, unlike the rest

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
