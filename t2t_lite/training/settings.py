"""What a `Trainer` may be told beside problem, model and hyperparameters.

A setting with a meaning is also a flag of t2t-trainer, with the same name, default and range.
"""

import dataclasses

from t2t_lite.settings import ranges
from t2t_lite.settings.ranges import setting

EARLY = "eval_early_stopping_"  # begins the names of the flags of `EarlyStopping`


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
