"""Trains a model, with an evaluation every --local_eval_frequency steps.

Running the same command again continues where the last checkpoint of --output_dir stands; --train_steps counts from
the very beginning. A run remembers its problem, model and hyperparameters, which may be left out then; the name of its
set stands for all hyperparameters as the run has them. What contradicts the run is an error.

--hp_NAME VALUE changes one hyperparameter, as --hparams=NAME=VALUE does.

With --describe it prints what the model is made of, what training it costs and where it can be exported to; only
--hparams_set is needed for that.
With --summary=OUTPUT_DIR it draws the curves of a run, or of several, into OUTPUT_DIR/curves.png.
"""

import logging
import os
import sys

from t2t_lite.bin import _app, _describing, _evaluating, _schedules
from t2t_lite.errors import UserError
from t2t_lite.ranges import (
    CHECKPOINTS_KEPT,
    COUNT,
    GPUS,
    HOURS,
    LOGICAL_CPUS,
    METRIC_MOVE,
    SECONDS,
    SEED,
    STEPS_BETWEEN,
)

_LOGGER = logging.getLogger("t2t_lite")


def define_flags(flags):
    """Declares the command's flags."""
    _app.define_common_flags(flags)
    flags.DEFINE_string("schedule", "continuous_train_and_eval", f"What to do ({_schedules.help_string()}).")
    flags.DEFINE_integer("train_steps", 250000, "Stop at this step, counted from the very beginning.", limits=COUNT)
    flags.DEFINE_integer("local_eval_frequency", 1000, "Save and evaluate every so many steps.", limits=STEPS_BETWEEN)
    _evaluating.define_flags(flags)
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
    flags.DEFINE_bool("gpu_automatic_mixed_precision", False, "Train a new run in bfloat16 (dtype_policy).")
    flags.DEFINE_paths("summary", [], "Draw the curves of these output_dirs into the first one's curves.png, and stop.")
    _describing.define_flags(flags)
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
    _describing.refuse_without_describe(flags)
    may_train = flags.schedule in _schedules.TRAINING and not remembers
    settings = ["problem"] if flags.warm_start_from else ["problem", "hparams_set"]
    _app.require(flags, "data_dir", "output_dir", *(settings if may_train else []))


def run(flags):
    """Trains, or evaluates and prints the metrics, or describes the model, or draws the curves of runs."""
    if flags.summary:
        return _draw(flags.summary)
    if flags.describe:
        before = _earlier_run(flags)
        return _describing.describe(flags, before, _hparams(flags, before))
    if flags.schedule in _schedules.EVALUATING:
        on_train_data = flags.schedule.endswith("_on_train_data")
        return _evaluating.evaluate(flags, once=flags.schedule.startswith("evaluate"), on_train_data=on_train_data)
    return _train(flags)


def _train(flags):
    import tensorflow as tf

    from t2t_lite import registry
    from t2t_lite.config import parse_assignments
    from t2t_lite.runs.checkpoints import newest_step
    from t2t_lite.training.early_stopping import EarlyStopping
    from t2t_lite.training.trainer import Trainer

    if flags.inter_op_parallelism_threads:
        tf.config.threading.set_inter_op_parallelism_threads(flags.inter_op_parallelism_threads)
    if flags.intra_op_parallelism_threads:
        tf.config.threading.set_intra_op_parallelism_threads(flags.intra_op_parallelism_threads)
    before = _earlier_run(flags)
    usr_dir = flags.t2t_usr_dir or before.get("usr_dir", "")
    settings = before or _settings_of_warm_start(flags)
    hparams = _hparams(flags, settings)
    trainer = Trainer(
        problem=flags.problem or before.get("problem"),
        model=flags.model or settings.get("model") or "transformer",
        hparams=hparams,
        hparams_set=flags.hparams_set or settings.get("hparams_set"),
        data_dir=flags.data_dir,
        output_dir=flags.output_dir,
        worker_gpu=flags.worker_gpu,
        logical_cpus=flags.logical_cpus,
        local_eval_frequency=flags.local_eval_frequency,
        eval_steps=1 if flags.schedule == "test" else flags.eval_steps,
        evaluate_while_training=flags.schedule != "train",
        eval_throttle_seconds=flags.eval_throttle_seconds,
        search=_evaluating.search(flags),
        translate_all=flags.schedule == "train_eval_and_decode",
        early_stopping=EarlyStopping(
            flags.eval_early_stopping_steps or 0,
            flags.eval_early_stopping_metric,
            flags.eval_early_stopping_metric_delta,
            flags.eval_early_stopping_metric_minimize,
        ),
        best_metric=flags.best_checkpoint_metric,
        profile=flags.profile or flags.dbgprofile,
        deterministic=flags.deterministic,
        inexact=_inexact(flags),
        save_checkpoints_secs=flags.save_checkpoints_secs,
        keep_checkpoint_max=flags.keep_checkpoint_max,
        keep_checkpoint_every_n_hours=flags.keep_checkpoint_every_n_hours,
        log_step_count_steps=flags.log_step_count_steps,
        allow_hparams_change=flags.allow_hparams_change,
        keep_batches_a_step="gradient_accumulation_steps" not in parse_assignments(flags.hparams, "--hparams"),
        warm_start_from=flags.warm_start_from or "",
        usr_dir=usr_dir,
        flags_text="".join(f"--{name}={flags[name].value}\n" for name in flags if flags[name].present),
    )
    registry.problem(trainer.problem), registry.model(trainer.model)  # unknown names: before data are generated
    if flags.generate_data and (status := _generate_data(trainer.problem, usr_dir, flags)):
        return status
    train_steps = flags.train_steps
    if flags.schedule == "test":
        train_steps = newest_step(flags.output_dir) + 1
    trainer.train(train_steps)
    if flags.export_saved_model and trainer.ended_by != "signal":
        if os.environ.get("TF_CONFIG"):
            _LOGGER.warning(
                f"--export_saved_model: not by several machines. Type t2t-exporter --output_dir={flags.output_dir}/best"
            )
        else:
            _export(flags.output_dir)
    return 0


def _earlier_run(flags):
    """Returns the `hparams.json` of the run in --output_dir, whose own problems and models are imported; or {}."""
    from t2t_lite.runs.config import import_usr_dir, read_run_config

    before = (flags.output_dir and read_run_config(flags.output_dir)) or {}
    if before and not flags.t2t_usr_dir:  # the flag's is imported already
        import_usr_dir(flags.output_dir, before)
    return before


def _inexact(flags):
    """Returns which flags let the weights depend on more than the command says, and how."""
    names = [n for n in ("inter_op_parallelism_threads", "intra_op_parallelism_threads") if flags[n].value]
    return [f"--{name}: another number of threads may add in another order" for name in names]


def _export(output_dir):
    """Exports the best model of a run, or its newest; prints where to. Not again what is exported already."""
    import tensorflow as tf

    from t2t_lite.decoding.translator import Translator
    from t2t_lite.export.saved_model import export_saved_model
    from t2t_lite.files import list_files
    from t2t_lite.training.best_checkpoint import best_checkpoint

    path = best_checkpoint(output_dir) or output_dir
    translator = Translator.load(path)
    folder = os.path.join(output_dir, "export", "best")
    exports = [path for number in list_files(folder, r"\d+") for path in list_files(number, r"saved_model\.pb")]
    changed = tf.io.gfile.stat(f"{translator.run.path}.index").mtime_nsec
    if any(tf.io.gfile.stat(export).mtime_nsec >= changed for export in exports):
        _LOGGER.info(f"{folder}: holds this model already")
        return
    which = "best" if path != output_dir else "newest, since there were no evaluations"
    _LOGGER.info(f"exporting the model of step {translator.run.step:,} ({which})")
    print(export_saved_model(translator, folder))


def _settings_of_warm_start(flags):
    """Returns the `hparams.json` of the run that a new one begins with, unless a set is named: then {}."""
    from t2t_lite.runs.opening import find_checkpoint, read_config_of

    if flags.hparams_set or not flags.warm_start_from:
        return {}
    return read_config_of(find_checkpoint(flags.warm_start_from))


def _hparams(flags, before):
    """Returns the hyperparameters that the flags ask for, of a new run or of the one that has `before`."""
    from t2t_lite.config import parse_assignments
    from t2t_lite.runs.directory import run_hparams

    if not flags.hparams_set and not before:
        raise UserError("missing --hparams_set: there is no earlier run in --output_dir to take it from.")
    hparams = run_hparams(before, flags.hparams_set, flags.hparams)
    if flags.random_seed is not None:
        hparams.random_seed = flags.random_seed
    if flags.gpu_automatic_mixed_precision:
        if parse_assignments(flags.hparams, "--hparams").get("dtype_policy", "mixed_bfloat16") != "mixed_bfloat16":
            raise UserError(
                "--gpu_automatic_mixed_precision: --hparams has another dtype_policy. Leave out one of them."
            )
        hparams.dtype_policy = "mixed_bfloat16"
    return hparams


def _draw(output_dirs):
    """Draws the curves of runs over one another."""
    from t2t_lite.visualization.curves import draw_curves

    path = os.path.join(output_dirs[0], "curves.png")
    draw_curves(output_dirs, path)
    print(path)


def _generate_data(problem, usr_dir, flags):
    """Runs t2t-datagen in this process; returns its exit status."""
    from t2t_lite.bin import t2t_datagen

    words = [f"--problem={problem}", f"--data_dir={flags.data_dir}", f"--tmp_dir={flags.tmp_dir}"]
    return t2t_datagen.main(words + ([f"--t2t_usr_dir={usr_dir}"] if usr_dir else []))


def main(argv=None):
    """Runs the command; returns its exit status."""
    in_cluster = argv is None and os.environ.get("TF_CONFIG")
    what = _run_in_cluster if in_cluster else run
    return _app.main("t2t-trainer", define_flags, what, argv, check=check)


def _run_in_cluster(flags):
    """`run`; a failure ends the process at once, for TensorFlow's end waits for machines that may be gone."""
    try:
        return run(flags)
    except Exception as error:
        status = _app.report("t2t-trainer", error)
        if status is None:
            raise
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
