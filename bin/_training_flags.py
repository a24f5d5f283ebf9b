"""The flags of t2t-trainer, and what contradicts each other among them."""

import os

from t2t_lite.bin import _app, _schedules
from t2t_lite.bin.t2t_eval import define_evaluation_flags
from t2t_lite.errors import UserError
from t2t_lite.ranges import (
    CHECKPOINTS_KEPT,
    COUNT,
    GIGABYTES,
    GPUS,
    HOURS,
    LOGICAL_CPUS,
    METRIC_MOVE,
    SECONDS,
    SEED,
    SHARE,
    STEPS_BETWEEN,
    TERAFLOPS,
    VOCAB_SIZE,
)  # fmt: skip


def define_flags(flags):
    """Declares the command's flags."""
    _app.define_common_flags(flags)
    flags.DEFINE_string("schedule", "continuous_train_and_eval", f"What to do ({_schedules.help_string()}).")
    flags.DEFINE_integer("train_steps", 250000, "Stop at this step, counted from the very beginning.", limits=COUNT)
    flags.DEFINE_integer("local_eval_frequency", 1000, "Save and evaluate every so many steps.", limits=STEPS_BETWEEN)
    define_evaluation_flags(flags)
    flags.DEFINE_integer("eval_throttle_seconds", 0, "Least time between two evaluations; 0: none.", limits=SECONDS)
    flags.DEFINE_integer(
        "eval_early_stopping_steps", None, "Stop when a metric has not moved so long.", limits=STEPS_BETWEEN
    )
    flags.DEFINE_string("eval_early_stopping_metric", "loss", "The metric of --eval_early_stopping_steps.")
    flags.DEFINE_float("eval_early_stopping_metric_delta", 0.1, "The smallest move that counts.", limits=METRIC_MOVE)
    flags.DEFINE_bool("eval_early_stopping_metric_minimize", None, "Whether less is better; default: the metric's own.")
    flags.DEFINE_string("best_checkpoint_metric", None, "Of the model kept in best/; default: BLEU, or loss; or none.")
    flags.DEFINE_bool("export_saved_model", False, "At the end export the best model, to export/best/1, 2, ….")
    flags.DEFINE_integer("save_checkpoints_secs", 0, "Save also every so many seconds; 0: by steps.", limits=SECONDS)
    flags.DEFINE_integer(
        "keep_checkpoint_max", 20, "How many recent checkpoints are kept; 0: all.", limits=CHECKPOINTS_KEPT
    )
    flags.DEFINE_integer("keep_checkpoint_every_n_hours", 10000, "Keep one for good so often.", limits=HOURS)
    flags.DEFINE_integer(
        "log_step_count_steps", 100, "Print a line of progress every so many steps.", limits=STEPS_BETWEEN
    )
    flags.DEFINE_bool("profile", False, "Write a trace of steps 11 to 15, for TensorBoard's profiler.")
    flags.DEFINE_bool("dbgprofile", False, "The same.")
    flags.DEFINE_bool("deterministic", True, "Use only operations of a GPU that give the same bits every time.")
    flags.DEFINE_bool(
        "xla_compile", None, "Compile training with XLA, with batches of at most 16 shapes; default: off, or the run's."
    )
    flags.DEFINE_bool("gpu_automatic_mixed_precision", False, "Train a new run in bfloat16 (dtype_policy).")
    flags.DEFINE_paths("summary", [], "Draw the curves of these output_dirs into the first one's curves.png, and stop.")
    _define_describing_flags(flags)
    flags.DEFINE_path(
        "warm_start_from",
        None,
        "Begin a new run with the weights (without --hparams_set also the settings) of this checkpoint or output_dir.",
    )
    flags.DEFINE_bool("allow_hparams_change", False, "Continue a run with other hyperparameters; noted in its log.")
    flags.DEFINE_integer(
        "random_seed", None, "Seed of weights, data order and dropout; default: the set's.", limits=SEED
    )
    flags.DEFINE_integer("worker_gpu", 1, "GPUs to train on, of each machine; 1 falls back to the CPU.", limits=GPUS)
    flags.DEFINE_integer(
        "logical_cpus", 0, "Train on so many replicas on the CPU instead; 0: off.", limits=LOGICAL_CPUS
    )
    flags.DEFINE_integer("inter_op_parallelism_threads", 0, "Operations run at once; 0: automatic.", 0, 1024)
    flags.DEFINE_integer("intra_op_parallelism_threads", 0, "Threads of an operation; 0: automatic.", 0, 1024)
    flags.DEFINE_bool("generate_data", False, "Run t2t-datagen first, into --data_dir.")
    flags.DEFINE_path("tmp_dir", "/tmp/t2t_datagen", "Downloads of --generate_data.")
    flags.DEFINE_pairs("hp_", into="hparams")
    _define_planned_flags(flags)
    _app.define_tf1_flags(flags)


def _define_describing_flags(flags):
    flags.DEFINE_bool("describe", False, "Print layers, parameters, FLOPs, memory and possible exports, and stop.")
    flags.DEFINE_integer("vocab_size", None, "Of --describe: ids; default: the data's, or 37000.", limits=VOCAB_SIZE)
    flags.DEFINE_integer(
        "target_vocab_size", None, "Of --describe: the targets' ids; default: shared.", limits=VOCAB_SIZE
    )
    for name, of_what, limits in (
        ("gpu_memory", "GB of one GPU: prints the largest batch_size for it", GIGABYTES),
        ("gpu_tflops", "peak of one GPU in TFLOP/s; default: an A100's", TERAFLOPS),
        ("gpu_utilization", "share of that peak which training reaches; default: the paper's", SHARE),
        ("gpu_link", "GB/s between GPUs, each way; default: an A100's NVLink and PCIe", GIGABYTES),
    ):
        flags.DEFINE_float(name, None, f"Of --describe: {of_what}.", limits=limits)


def _define_planned_flags(flags):
    for name, default in (
        ("hparams_range", None),
        ("autotune_objective", None),
        ("autotune_maximize", True),
        ("autotune_max_trials", 10),
        ("autotune_parallel_trials", 1),
    ):
        flags.not_yet(
            name,
            default,
            "Start a run for each value: for x in 1 2; do t2t-trainer --hp_learning_rate_constant $x "
            "--output_dir=run$x …; done, and compare: t2t-trainer --summary=run1,run2",
        )
    flags.not_yet("decode_to_file", "", "Use t2t-decoder.")
    flags.not_yet("decode_reference", "", "Use t2t-decoder.")
    flags.DEFINE_path("decode_from_file", "", "Only for t2t-decoder.")


def check(flags):
    """Raises `UserError` for flags that are missing or unknown schedules."""
    if flags.summary:
        return
    _schedules.check(flags)
    if flags.decode_from_file:
        raise UserError(
            f"--decode_from_file: t2t-trainer translates no files. Type instead: t2t-decoder "
            f"--output_dir={flags.output_dir or 'OUTPUT_DIR'} --decode_from_file={flags.decode_from_file}"
        )
    config = os.path.join(flags.output_dir or "", "hparams.json")
    remembers = flags.output_dir and ("://" in flags.output_dir or os.path.exists(config))
    if flags.describe:
        return _app.require(flags, *([] if remembers else ["hparams_set"]))
    _refuse_without_describe(flags)
    may_train = flags.schedule in _schedules.TRAINING and not remembers
    settings = ["problem"] if flags.warm_start_from else ["problem", "hparams_set"]
    _app.require(flags, "data_dir", "output_dir", *(settings if may_train else []))


def _refuse_without_describe(flags):
    """Raises `UserError` for a flag that training has no use for."""
    for name in ("vocab_size", "target_vocab_size"):
        if flags[name].present:
            raise UserError(f"--{name}={flags[name].value}: only for --describe; training takes the vocabulary's size.")
    for name in ("gpu_memory", "gpu_tflops", "gpu_utilization", "gpu_link"):
        if flags[name].present:
            raise UserError(f"--{name}={flags[name].value:g}: only for --describe; add it, or leave this out.")
