"""Trains a model, with an evaluation every --local_eval_frequency steps.

Running the same command again continues where the last checkpoint of --output_dir stands; --train_steps counts from
the very beginning. A run remembers its problem, model and hyperparameters, which may be left out then.

With --describe it prints what the model is made of and what training it costs; only --hparams_set is needed for that.
With --summary=OUTPUT_DIR it draws the curves of a run, or of several, into OUTPUT_DIR/curves.png.
"""

import contextlib
import os
import sys

from t2t_lite.bin import _app
from t2t_lite.errors import UserError, nearest

SCHEDULES = {
    "continuous_train_and_eval": "train, and evaluate at every checkpoint",
    "train_and_evaluate": "the same",
    "train": "train without evaluating",
    "evaluate": "evaluate the newest checkpoint once",
}


def define_flags(flags):
    """Declares the command's flags."""
    _app.define_common_flags(flags)
    schedules = "; ".join(f"{name}: {what}" for name, what in SCHEDULES.items())
    flags.DEFINE_string("schedule", "continuous_train_and_eval", f"What to do ({schedules}).")
    flags.DEFINE_integer("train_steps", 250000, "Stop at this step, counted from the very beginning.", lower_bound=0)
    flags.DEFINE_integer("local_eval_frequency", 1000, "Save and evaluate every so many steps.", lower_bound=1)
    flags.DEFINE_integer("eval_steps", 0, "Batches of an evaluation; 0: the whole dev set.", lower_bound=0)
    flags.DEFINE_integer("save_checkpoints_secs", 0, "Save also every so many seconds; 0: by steps.", lower_bound=0)
    flags.DEFINE_integer("keep_checkpoint_max", 20, "How many recent checkpoints are kept.", lower_bound=1)
    flags.DEFINE_integer("keep_checkpoint_every_n_hours", 10000, "Keep one for good so often.", lower_bound=1)
    flags.DEFINE_integer("log_step_count_steps", 100, "Print a line of progress every so many steps.", lower_bound=1)
    flags.DEFINE_bool("describe", False, "Print layers, parameters, FLOPs and memory of the model, and stop.")
    flags.DEFINE_paths("summary", [], "Draw the curves of these output_dirs into the first one's curves.png, and stop.")
    flags.DEFINE_integer("vocab_size", None, "Of --describe: ids; default: the data's, or 37000.", lower_bound=1)
    flags.DEFINE_integer("target_vocab_size", None, "Of --describe: the targets' ids; default: shared.", lower_bound=1)
    flags.DEFINE_path("warm_start_from", None, "Begin a new run with the weights of this checkpoint or output_dir.")
    flags.DEFINE_bool("allow_hparams_change", False, "Continue a run with other hyperparameters; noted in its log.")
    flags.DEFINE_integer("random_seed", None, "Seed of weights, data order and dropout; default: the set's.")
    flags.DEFINE_integer("worker_gpu", 1, "GPUs to train on; without one the CPU is used.", lower_bound=0)
    flags.DEFINE_integer("logical_cpus", 0, "Train on so many replicas on the CPU instead; 0: off.", lower_bound=0)
    flags.DEFINE_integer("inter_op_parallelism_threads", 0, "Operations run at once; 0: automatic.", lower_bound=0)
    flags.DEFINE_integer("intra_op_parallelism_threads", 0, "Threads of an operation; 0: automatic.", lower_bound=0)
    flags.DEFINE_bool("generate_data", False, "Run t2t-datagen first, into --data_dir.")
    flags.DEFINE_path("tmp_dir", "/tmp/t2t_datagen", "Downloads of --generate_data.")
    _define_planned_flags(flags)
    _app.define_tf1_flags(flags)


def _define_planned_flags(flags):
    early_stopping = "Watch the evaluations in TensorBoard and stop the run yourself: it saves on SIGTERM."
    flags.not_yet("eval_early_stopping_steps", None, early_stopping)
    flags.not_yet("eval_early_stopping_metric", "loss", early_stopping)
    flags.not_yet("eval_early_stopping_metric_delta", 0.1, early_stopping)
    flags.not_yet("eval_early_stopping_metric_minimize", True, early_stopping)
    flags.not_yet("eval_throttle_seconds", 0, "Evaluations come every --local_eval_frequency steps.")
    flags.not_yet("eval_timeout_mins", 240, "There is no schedule that waits for checkpoints.")
    flags.not_yet("eval_run_autoregressive", False, "Dev sentences are translated at every evaluation anyway.")
    flags.not_yet("eval_use_test_set", False, "For the test set use t2t-decoder and t2t-bleu.")
    flags.not_yet("export_saved_model", False, "Use t2t-exporter after training.")
    flags.not_yet("xla_compile", False)
    flags.not_yet("gpu_automatic_mixed_precision", False, "Use --hparams=dtype_policy=mixed_bfloat16.")
    flags.not_yet("worker_gpu_memory_fraction", 0.95, "Memory of the GPU is taken as it is needed.")
    flags.not_yet("profile", False)
    flags.not_yet("dbgprofile", False)
    for name, default in (
        ("hparams_range", None),
        ("autotune_objective", None),
        ("autotune_maximize", True),
        ("autotune_max_trials", 10),
        ("autotune_parallel_trials", 1),
    ):
        flags.not_yet(name, default, "Start one run for each value, with --hparams.")
    flags.not_yet("decode_hparams", "", "Use --hparams=eval_beam_size=…,eval_alpha=… here, or t2t-decoder.")
    for name in ("decode_from_file", "decode_to_file", "decode_reference"):
        flags.not_yet(name, "", "Use t2t-decoder.")


def check(flags):
    """Raises `UserError` for flags that are missing or unknown schedules."""
    if flags.summary:
        return
    if flags.schedule not in SCHEDULES:
        raise UserError(
            f"--schedule={flags.schedule}: not available. {nearest(flags.schedule, SCHEDULES)} "
            f"Expected one of {', '.join(SCHEDULES)}."
        )
    config = os.path.join(flags.output_dir or "", "hparams.json")
    remembers = flags.output_dir and ("://" in flags.output_dir or os.path.exists(config))
    if flags.describe:
        return _app.require(flags, *([] if remembers else ["hparams_set"]))
    for name in ("vocab_size", "target_vocab_size"):
        if flags[name].present:
            raise UserError(f"--{name}={flags[name].value}: only for --describe; training takes the vocabulary's size.")
    _app.require(flags, "data_dir", "output_dir", *([] if remembers else ["problem", "hparams_set"]))


def run(flags):
    """Trains, or evaluates and prints the metrics, or describes the model, or draws the curves of runs."""
    if flags.summary:
        return _draw(flags.summary)
    if flags.describe:
        return _describe(flags)
    import tensorflow as tf

    from t2t_lite import registry
    from t2t_lite.config import parse_assignments
    from t2t_lite.models.run_config import read_run_config
    from t2t_lite.training.trainer import Trainer

    if flags.inter_op_parallelism_threads:
        tf.config.threading.set_inter_op_parallelism_threads(flags.inter_op_parallelism_threads)
    if flags.intra_op_parallelism_threads:
        tf.config.threading.set_intra_op_parallelism_threads(flags.intra_op_parallelism_threads)
    before = read_run_config(flags.output_dir) or {}
    usr_dir = flags.t2t_usr_dir or before.get("usr_dir", "")
    registry.import_usr_dir(usr_dir)
    trainer = Trainer(
        problem=flags.problem or before.get("problem"),
        model=flags.model or before.get("model") or "transformer",
        hparams=_hparams(flags, before),
        hparams_set=flags.hparams_set,
        data_dir=flags.data_dir,
        output_dir=flags.output_dir,
        worker_gpu=flags.worker_gpu,
        logical_cpus=flags.logical_cpus,
        local_eval_frequency=flags.local_eval_frequency,
        eval_steps=flags.eval_steps,
        evaluate_while_training=flags.schedule != "train",
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
    if flags.schedule == "evaluate":
        for name, value in trainer.evaluate().items():
            print(f"{name} = {value:.4f}")
    else:
        trainer.train(flags.train_steps)
    return 0


def _hparams(flags, before):
    """Returns the hyperparameters that the flags ask for, or None when they leave them to the earlier run."""
    from t2t_lite import registry
    from t2t_lite.config import HParams

    if not flags.hparams_set and not flags.hparams and flags.random_seed is None:
        return None
    if not flags.hparams_set and not before:
        raise UserError("missing --hparams_set: there is no earlier run in --output_dir to take it from.")
    hparams = registry.hparams(flags.hparams_set) if flags.hparams_set else HParams.from_dict(before["hparams"])
    hparams = hparams.parse(flags.hparams)
    if flags.random_seed is not None:
        hparams.random_seed = flags.random_seed
    return hparams


def _draw(output_dirs):
    """Draws the curves of runs over one another."""
    from t2t_lite.visualization.curves import draw_curves

    path = os.path.join(output_dirs[0], "curves.png")
    draw_curves({os.path.normpath(folder): folder for folder in output_dirs}, path)
    print(path)


def _describe(flags):
    """Prints what the model is made of and what its training costs."""
    import tensorflow as tf

    from t2t_lite import registry
    from t2t_lite.config import HParams
    from t2t_lite.models.describe import describe, shapes_only
    from t2t_lite.models.run_config import read_run_config

    with contextlib.suppress(RuntimeError):  # TensorFlow is in use already, by whoever called
        tf.config.set_visible_devices([], "GPU")  # another run may fill it
    before = (flags.output_dir and read_run_config(flags.output_dir)) or {}
    registry.import_usr_dir(before.get("usr_dir"))
    hparams = _hparams(flags, before)
    if hparams is None:
        _app.require(flags, *([] if before else ["hparams_set"]))
        hparams = HParams.from_dict(before["hparams"])
    name = flags.model or before.get("model") or "transformer"
    hparams_set = flags.hparams_set or before.get("hparams_set") or ""
    vocab_size, target_vocab_size, where = _vocabulary_sizes(flags, before)
    model = shapes_only(registry.model(name), hparams, vocab_size, target_vocab_size)
    both = f"{vocab_size:,} ids" + (f" and {target_vocab_size:,} of the targets" if target_vocab_size else "")
    print(f"model {name}, set {hparams_set or '(own)'}, vocabulary {both} ({where})\n")
    replicas = flags.logical_cpus or flags.worker_gpu or 1
    print(describe(model, hparams, hparams_set, flags.train_steps, replicas).text())
    return 0


def _vocabulary_sizes(flags, before):
    """Returns ids of the inputs, ids of the targets or None where they are shared, and where that is from."""
    from t2t_lite import registry
    from t2t_lite.data.vocabulary import vocabulary_sizes

    problem = flags.problem and registry.problem(flags.problem)  # an unknown name is a mistake in any case
    if flags.vocab_size:
        return flags.vocab_size, flags.target_vocab_size, "--vocab_size"
    if before:
        return before["vocab_size"], flags.target_vocab_size or before["target_vocab_size"], flags.output_dir
    if problem and flags.data_dir:
        with contextlib.suppress(UserError):  # no vocabulary yet
            vocab_size, target_vocab_size = vocabulary_sizes(problem.get_feature_encoders(flags.data_dir))
            return vocab_size, flags.target_vocab_size or target_vocab_size, flags.data_dir
    return 37_000, flags.target_vocab_size, "assumed; --vocab_size says another"


def _generate_data(problem, usr_dir, flags):
    """Runs t2t-datagen in this process; returns its exit status."""
    from t2t_lite.bin import t2t_datagen

    words = [f"--problem={problem}", f"--data_dir={flags.data_dir}", f"--tmp_dir={flags.tmp_dir}"]
    return t2t_datagen.main(words + ([f"--t2t_usr_dir={usr_dir}"] if usr_dir else []))


def main(argv=None):
    """Runs the command; returns its exit status."""
    return _app.main("t2t-trainer", define_flags, run, argv, check=check)


if __name__ == "__main__":
    sys.exit(main())
