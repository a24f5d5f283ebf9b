"""Trains a model, with an evaluation every --local_eval_frequency steps.

Running the same command again continues from the last checkpoint in --output_dir; --train_steps counts from
the very beginning. A run remembers its problem, model and hyperparameters, which may be left out then; the name of its
set stands for all hyperparameters as the run has them. What contradicts the run is an error.

--hp_NAME VALUE changes one hyperparameter, as --hparams=NAME=VALUE does.

With --describe it prints what the model is made of, what training it costs and where it can be exported to; only
--hparams_set is needed for that. --plot=PICTURE draws its learning rate and positional encoding.
--summary=OUTPUT_DIR,… draws the curves of runs (curves.png) and, of several, their best evaluations as bars (bars.png).
"""

import logging
import os
import sys

from t2t_lite.bin import _app
from t2t_lite.bin._schedules import EVALUATING
from t2t_lite.bin._training_flags import check, define_flags, trainer_settings
from t2t_lite.bin.t2t_eval import evaluate

_LOGGER = logging.getLogger("t2t_lite")
_DESCRIBED = (
    "problem", "model", "hparams_set", "output_dir", "data_dir", "vocab_size", "target_vocab_size", "train_steps",
)  # fmt: skip


def run(flags):
    """Trains, or evaluates and prints the metrics, or describes the model, or draws the curves of runs."""
    if flags.summary:
        from t2t_lite.visualization.curves import draw_curves
        from t2t_lite.visualization.run_bars import draw_bars

        path, bars = (os.path.join(flags.summary[0], name) for name in ("curves.png", "bars.png"))
        draw_curves(flags.summary, path)
        print(path)
        if len(flags.summary) > 1:
            draw_bars(bars, flags.summary)
            print(bars)
    elif flags.describe:
        _describe(flags)
    elif flags.schedule in EVALUATING:
        on_train_data = flags.schedule.endswith("_on_train_data")
        evaluate(flags, once=flags.schedule.startswith("evaluate"), on_train_data=on_train_data)
    else:
        _train(flags)


def _describe(flags):
    from t2t_lite.export.description import describe_run
    from t2t_lite.models.scaling import UTILIZATION, Rates
    from t2t_lite.runs.directory import model_name
    from t2t_lite.training.cluster import read_cluster
    from t2t_lite.training.distribution import hide_gpus

    before = _earlier_run(flags)
    model = model_name(flags.model or before.get("model"), flags.problem or before.get("problem"))
    hparams = _hparams(flags, before, model)
    hide_gpus()  # another run may fill them
    cluster = read_cluster()
    replicas = (flags.logical_cpus or flags.worker_gpu or 1) * (len(cluster.workers) if cluster else 1)
    rates = Rates(flags.gpu_tflops, flags.gpu_utilization or UTILIZATION, flags.gpu_link, flags.gpu_memory)
    given = {name: flags[name].value for name in _DESCRIBED} | {"model": model}
    print(describe_run(hparams, before, replicas=replicas, rates=rates, **given))
    if flags.plot:
        from t2t_lite.visualization.hparams_picture import draw_hparams

        draw_hparams(hparams, flags.train_steps, flags.plot, flags.hparams_set or before.get("hparams_set") or "")
        print(f"plot: {flags.plot}")


def _train(flags):
    import tensorflow as tf

    from t2t_lite import registry
    from t2t_lite.assignments import parse_assignments
    from t2t_lite.data.named_problems import generate_problems, select_problems
    from t2t_lite.export import by_task
    from t2t_lite.export.best_model import export_best
    from t2t_lite.runs.checkpoints import newest_step
    from t2t_lite.runs.directory import model_name
    from t2t_lite.runs.opening import find_run
    from t2t_lite.training.trainer import Trainer

    inexact = []
    for name in ("inter_op_parallelism_threads", "intra_op_parallelism_threads"):
        if flags[name].value:
            getattr(tf.config.threading, f"set_{name}")(flags[name].value)
            inexact.append(f"--{name}: another number of threads may add in another order")
    before = _earlier_run(flags)
    begins_as = flags.warm_start_from and not (before or flags.hparams_set)  # with the settings of another run
    settings = find_run(flags.warm_start_from).config if begins_as else before
    name = flags.problem or before.get("problem")
    model = model_name(flags.model or settings.get("model"), name)
    trainer = Trainer(
        problem=name,
        model=model,
        hparams=_hparams(flags, settings, model),
        hparams_set=flags.hparams_set or settings.get("hparams_set"),
        data_dir=flags.data_dir,
        output_dir=flags.output_dir,
        inexact=inexact,
        allow_hparams_change=flags.allow_hparams_change,
        keep_batches_a_step="gradient_accumulation_steps" not in parse_assignments(flags.hparams, "--hparams"),
        warm_start_from=flags.warm_start_from or "",
        usr_dir=flags.t2t_usr_dir or before.get("usr_dir", ""),
        flags_text="".join(f"--{name}={flags[name].value}\n" for name in flags if flags[name].present),
        **trainer_settings(flags),
    )
    problem, _ = registry.problem(trainer.problem), registry.model(trainer.model)  # unknown names: before data are made
    if flags.export_saved_model:
        by_task.check(problem, "--export_saved_model")
    if flags.generate_data:
        generate_problems(select_problems(trainer.problem), flags.data_dir, flags.tmp_dir)
    trainer.train(newest_step(flags.output_dir) + 1 if flags.schedule == "test" else flags.train_steps)
    if flags.export_saved_model and trainer.ended_by != "signal":
        if os.environ.get("TF_CONFIG"):
            _LOGGER.warning(
                f"--export_saved_model: not by several machines. Type t2t-exporter --output_dir={flags.output_dir}/best"
            )
        elif path := export_best(flags.output_dir):
            print(path)


def _earlier_run(flags):
    from t2t_lite.runs.config import read_earlier_run

    return read_earlier_run(flags.output_dir, imports=not flags.t2t_usr_dir)  # the flag's is imported already


def _hparams(flags, before, model):
    from t2t_lite.runs.directory import run_hparams

    return run_hparams(
        before,
        flags.hparams_set,
        flags.hparams,
        model=model,
        random_seed=flags.random_seed,
        mixed_precision=flags.gpu_automatic_mixed_precision,
    )


def main(argv=None):
    """Runs the command; returns its exit status."""
    in_cluster = argv is None and os.environ.get("TF_CONFIG")
    what = _run_in_cluster if in_cluster else run
    return _app.main("t2t-trainer", define_flags, what, argv, check=check)


def _run_in_cluster(flags):
    """Calls `run`; a failure exits at once, since TensorFlow's shutdown would wait for machines that may be gone."""
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
