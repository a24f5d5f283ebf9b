"""The settings of a `Trainer` other than problem, model and hyperparameters, and the flags that a run remembers.

Each setting with a `meaning` is also a flag of t2t-trainer, with the same name, default and range.
"""

import dataclasses
import os

from t2t_lite.errors import LOGGER, located
from t2t_lite.runs.run_config import FILE_NAME
from t2t_lite.settings import ranges
from t2t_lite.settings.ranges import setting, settings_of

EARLY = "eval_early_stopping_"  # prefix of the flags of `EarlyStopping`
# xla_compile and xla_shapes are stored separately in hparams.json; profile applies to a single process.
_NOT_REMEMBERED = ("xla_compile", "xla_shapes", "profile")
_SCHEDULES = {False: "continuous_train_and_eval", True: "train_eval_and_decode"}  # keys: `translate_all`
_WITHOUT_EVALUATIONS = "train"


class _Checked:
    def __post_init__(self):
        ranges.check_settings(self, limited_only=True)


@dataclasses.dataclass(frozen=True)
class LengthSettings(_Checked):
    """The length of a run, which is the argument of `Trainer.train`."""

    train_steps: int = setting(
        250_000, limits=ranges.COUNT, meaning="Stop at this step, counted from the start of the run."
    )


@dataclasses.dataclass(frozen=True)
class EarlyStopping(_Checked):
    """The rule for stopping a run early: see `t2t_lite.training.monitor`. Flags: eval_early_stopping_…."""

    steps: int | None = setting(
        None, limits=ranges.COUNT, meaning="Stop when the metric has not improved within this many steps; 0: never."
    )
    metric: str = setting("loss", meaning="The metric that --eval_early_stopping_steps watches.")
    metric_delta: float = setting(0.1, limits=ranges.METRIC_MOVE, meaning="The smallest improvement that counts.")
    metric_minimize: bool | None = setting(None, meaning="Whether lower is better. Default: depends on the metric.")


@dataclasses.dataclass(frozen=True)
class EvaluationSettings(_Checked):
    """The settings for evaluations while a run trains.

    The settings `search` and `translate_all` are not flags. `search` is a dict of `SearchOptions` for decoding the
    outputs, or None to use the eval_… hyperparameters. `translate_all` says whether each evaluation translates the
    whole dev set, into `<output_dir>/decode`.
    """

    eval_steps: int = setting(0, limits=ranges.COUNT, meaning="Batches per evaluation; 0: the whole set.")
    eval_stride: int = setting(
        0, limits=ranges.COUNT, meaning="Language models: slide a window by this many ids and score only these new "
        "ids, given the ids before them in the text; 0: score each row separately."
    )  # fmt: skip
    eval_throttle_seconds: float = setting(
        0, limits=ranges.SECONDS, meaning="Minimum seconds between evaluations, except before the last one; 0: none."
    )
    best_checkpoint_metric: str | None = setting(
        None,
        meaning="Metric that selects the model in best/. Default: BLEU (F1 for parsers) if it is computed, "
        "otherwise the loss; none: keep no best model.",
    )
    early_stopping: EarlyStopping = EarlyStopping()
    search: dict | None = None
    translate_all: bool = False

    def comparable(self, hparams, records):
        """Returns a dict of JSON values in which two evaluations must agree if their metrics are to be compared.

        Args:
            hparams: HParams.
            records: Records of the evaluated set.
        """
        return {
            "records": records.fingerprint(),
            "eval_steps": self.eval_steps,
            "eval_stride": self.eval_stride,
            "eval_decode_examples": "all" if self.translate_all else hparams.eval_decode_examples,
            "search": {"beam_size": hparams.eval_beam_size, "alpha": hparams.eval_alpha, **(self.search or {})},
        }


@dataclasses.dataclass(frozen=True)
class CheckpointSettings(_Checked):
    """The settings for when a run saves checkpoints, and which checkpoints it keeps."""

    local_eval_frequency: int = setting(
        1000, limits=ranges.STEPS_BETWEEN, meaning="Steps between checkpoints, each of which is evaluated."
    )
    save_checkpoints_secs: float = setting(
        0, limits=ranges.SECONDS, meaning="Seconds between additional checkpoints; 0: no additional checkpoints."
    )
    keep_checkpoint_max: int = setting(
        20, limits=ranges.CHECKPOINTS_KEPT, meaning="Number of recent checkpoints to keep; 0: all."
    )
    keep_checkpoint_every_n_hours: float = setting(
        10000, limits=ranges.HOURS, meaning="Hours between checkpoints that are kept permanently."
    )


@dataclasses.dataclass(frozen=True)
class DeviceSettings(_Checked):
    """The settings for the devices of a run, and for how the run uses these devices."""

    worker_gpu: int = setting(1, limits=ranges.GPUS, meaning="GPUs per machine; 1 uses the CPU if there is no GPU.")
    logical_cpus: int = setting(
        0, limits=ranges.LOGICAL_CPUS, meaning="Train on this many CPU replicas instead of GPUs; 0: off."
    )
    deterministic: bool = setting(True, meaning="Use only deterministic GPU operations.")
    xla_compile: bool | None = setting(
        None, meaning="Compile training with XLA, for a few batch shapes. Default: off; a resumed run keeps its value."
    )
    xla_shapes: int | None = setting(
        None,
        limits=ranges.SHAPES,
        meaning="Maximum number of batch shapes that XLA compiles; fewer shapes mean more padding. Default: 16; a "
        "resumed run keeps its value.",
    )


@dataclasses.dataclass(frozen=True)
class LogSettings(_Checked):
    """The settings for how a run shows its progress."""

    log_step_count_steps: int = setting(
        100,
        limits=ranges.STEPS_BETWEEN,
        meaning="Steps between progress reports in the log (and on stderr, unless it is a terminal).",
    )
    profile: bool = setting(False, meaning="Write a trace of steps 11 to 15, for TensorBoard's profiler.")


# The defaults of `Trainer`'s arguments. If an argument of `Trainer` is one of these objects, a resumed run keeps its
# earlier settings.
NOT_GIVEN = {
    "evaluation": EvaluationSettings(),
    "checkpoints": CheckpointSettings(),
    "devices": DeviceSettings(),
    "log": LogSettings(),
}


@dataclasses.dataclass(frozen=True)
class RememberedFlags:
    """The flags that a run was started with, other than problem, model and hyperparameters ("plan" in `hparams.json`).

    Attributes:
        output_dir: str, the output_dir of the run, for messages.
        values: {flag of t2t-trainer: JSON value}. A command or a `Trainer` uses these values for flags that are not
            given again. Flags that are missing here have their default values.
    """

    output_dir: str = ""
    values: dict = dataclasses.field(default_factory=dict)

    @property
    def path(self):
        """The path of `hparams.json`, the file that stores the flags."""
        return os.path.join(self.output_dir, FILE_NAME)

    def updated(self, train_steps, evaluation, checkpoints, devices, log, **further):
        """Returns a copy of these flags, updated from the arguments of a `Trainer`; `further` are more flags."""
        values = {"train_steps": train_steps, "schedule": _WITHOUT_EVALUATIONS}
        for settings in filter(None, (checkpoints, devices, log, evaluation)):
            values |= {name: getattr(settings, name) for name in _names(type(settings))}
        if evaluation is not None:
            early = evaluation.early_stopping
            values |= {f"{EARLY}{name}": getattr(early, name) for name in _names(EarlyStopping)}
            values |= {"schedule": _SCHEDULES[evaluation.translate_all], "search": evaluation.search}
        return dataclasses.replace(self, values=self.values | values | further)

    def settings(self):
        """Converts the remembered values to arguments for `Trainer`, {name: settings}, including "train_steps".

        Raises:
            UserError: if a value has the wrong type or is out of range.
        """
        with located(self.path):
            arguments = {name: self._read(type(value)) for name, value in NOT_GIVEN.items() if name != "evaluation"}
            arguments["train_steps"] = self._read(LengthSettings).train_steps
            schedule, evaluation = self.values.get("schedule"), None
            if schedule != _WITHOUT_EVALUATIONS:
                early, search = self._read(EarlyStopping, EARLY), self.values.get("search")
                further = {"early_stopping": early, "search": search, "translate_all": schedule == _SCHEDULES[True]}
                evaluation = self._read(EvaluationSettings, **further)
            return arguments | {"evaluation": evaluation}

    def _read(self, settings, prefix="", **further):
        declared, values = settings_of(settings), self.values
        names = [name for name in _names(settings) if f"{prefix}{name}" in values]
        return settings(**{name: declared[name].typed(values[f"{prefix}{name}"]) for name in names}, **further)

    def restore(self, flags, of_command=()):
        """Restores the remembered values of all flags that the user did not set.

        Args:
            flags: absl's FlagValues for t2t-trainer, modified in place.
            of_command: names of flags that do not correspond to an argument of `Trainer`.

        Raises:
            UserError: if a value is invalid for its flag.
        """
        values = dict(self.values)
        if "search" in values:
            values["decode_hparams"] = _as_flag("search", values.pop("search"))[1] or ""
        if flags["worker_gpu"].present:
            values.pop("logical_cpus", None)  # because logical CPUs would replace the GPUs
        with located(self.path):
            for name in {*_DEFAULTS, "decode_hparams", *of_command} & values.keys():
                flags[name].recall(values[name])

    def __str__(self):
        """Formats the number of steps, and the flags that differ from their defaults, for the log."""
        values = self.values
        other = [n for n, value in values.items() if (value != _DEFAULTS[n] if n in _DEFAULTS else value)]
        named = (_as_flag(name, values[name]) for name in dict.fromkeys(["train_steps", *other]))
        return ", ".join(f"{flag}={value}" for flag, value in named)

    def log_changes(self, now, optimizer):
        """Logs which flags of a resumed run have changed; returns {name: [old, new]}.

        Args:
            now: RememberedFlags, with the current values.
            optimizer: the run's optimizer, built and restored, with the schedule of `now`.
        """
        from t2t_lite.training.optimization.schedules import describe_other_length  # imports Keras

        changed = {n: [old, now.values[n]] for n, old in self.values.items() if old != now.values[n]}
        if changed:
            old, new = ([_as_flag(name, pair[at]) for name, pair in changed.items()] for at in (0, 1))
            differing = ", ".join(f"{flag}: {was} -> {now}" for (flag, was), (_, now) in zip(old, new, strict=True))
            LOGGER.info(f"changed settings: {differing}")
        if "train_steps" in changed and (other := describe_other_length(optimizer, self.values["train_steps"])):
            LOGGER.warning(other)
        return changed


def _as_flag(name, value):
    """Returns (flag, value as it is typed) for a remembered value."""
    if name != "search":
        return name, value
    return "decode_hparams", ",".join(f"{option}={chosen}" for option, chosen in (value or {}).items()) or None


def _names(settings):
    """Returns the names of the settings that a run remembers, given the class of the settings."""
    declared = settings_of(settings).values()
    return [setting.name for setting in declared if setting.meaning and setting.name not in _NOT_REMEMBERED]


_DEFAULTS = RememberedFlags().updated(LengthSettings().train_steps, **NOT_GIVEN).values
