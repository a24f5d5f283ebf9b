"""Trains a model, with an evaluation every --local_eval_frequency steps.

Running the same command again continues from the last checkpoint in --output_dir; --train_steps counts from
the very beginning. A run remembers its problem, model and hyperparameters, which may be left out then; the name of its
set stands for all hyperparameters as the run has them. What contradicts the run is an error.

--random_seeds=1,2,3 trains a run for each, in --output_dir/seed_1, …, and prints their mean and standard deviation.

--hp_NAME VALUE changes one hyperparameter, as --hparams=NAME=VALUE does.

With --describe it prints what the model is made of, what training it costs and where it can be exported to; only
--hparams_set is needed for that. --plot=PICTURE draws its learning rate and positional encoding.
--summary=OUTPUT_DIR,… draws the curves of runs (curves.png) and, of several, their best evaluations as bars (bars.png).
"""

import functools
import os
import sys

from t2t_lite.bin import _app
from t2t_lite.bin._schedules import EVALUATING
from t2t_lite.bin._training_flags import check, define_flags, trainer_settings
from t2t_lite.bin.t2t_eval import evaluate

_DESCRIBED = (
    "problem", "model", "hparams_set", "output_dir", "data_dir", "vocab_size", "target_vocab_size", "train_steps",
)  # fmt: skip


def run(flags):
    """Trains, or evaluates and prints the metrics, or describes the model, or draws the curves of runs."""
    if flags.summary:
        from t2t_lite.visualization.run_bars import draw_summary

        print("\n".join(draw_summary(flags.summary)))
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
    from t2t_lite.training.distribution import hide_gpus, planned_replicas

    before = _earlier_run(flags, flags.output_dir)
    model = model_name(flags.model or before.get("model"), flags.problem or before.get("problem"))
    hparams = _hparams(flags, before, model, flags.random_seed)
    hide_gpus()  # another run may fill them
    replicas = planned_replicas(flags.worker_gpu, flags.logical_cpus)
    rates = Rates(flags.gpu_tflops, flags.gpu_utilization or UTILIZATION, flags.gpu_link, flags.gpu_memory)
    given = {name: flags[name].value for name in _DESCRIBED} | {"model": model}
    print(describe_run(hparams, before, replicas=replicas, rates=rates, **given))
    if flags.plot:
        from t2t_lite.visualization.hparams_picture import draw_hparams

        draw_hparams(hparams, flags.train_steps, flags.plot, flags.hparams_set or before.get("hparams_set") or "")
        print(f"plot: {flags.plot}")


def _train(flags):
    """Trains a run, or one for each of --random_seeds."""
    from t2t_lite.training.distribution import set_threads
    from t2t_lite.training.repeated_seeds import train_seeds

    inexact = set_threads(flags.inter_op_parallelism_threads, flags.intra_op_parallelism_threads)
    if not flags.random_seeds:
        _train_run(flags, inexact, flags.output_dir, flags.random_seed)
    elif summary := train_seeds(flags.random_seeds, flags.output_dir, functools.partial(_train_run, flags, inexact)):
        print(summary)


def _train_run(flags, inexact, output_dir, random_seed):
    """Trains in an output_dir; returns why it ended, see `Trainer.ended_by`."""
    from t2t_lite import registry
    from t2t_lite.assignments import parse_assignments
    from t2t_lite.data.named_problems import generate_problems, select_problems
    from t2t_lite.export import by_task
    from t2t_lite.export.best_model import export_best
    from t2t_lite.runs.checkpoints import newest_step
    from t2t_lite.runs.directory import model_name
    from t2t_lite.runs.opening import find_run
    from t2t_lite.training.trainer import Trainer

    before = _earlier_run(flags, output_dir)
    begins_as = flags.warm_start_from and not (before or flags.hparams_set)  # with the settings of another run
    settings = find_run(flags.warm_start_from).config if begins_as else before
    name = flags.problem or before.get("problem")
    model = model_name(flags.model or settings.get("model"), name)
    trainer = Trainer(
        problem=name,
        model=model,
        hparams=_hparams(flags, settings, model, random_seed),
        hparams_set=flags.hparams_set or settings.get("hparams_set"),
        data_dir=flags.data_dir,
        output_dir=output_dir,
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
    trainer.train(newest_step(output_dir) + 1 if flags.schedule == "test" else flags.train_steps)
    if flags.export_saved_model and trainer.ended_by != "signal" and (path := export_best(output_dir)):
        print(path)
    return trainer.ended_by


def _earlier_run(flags, output_dir):
    from t2t_lite.runs.config import read_earlier_run

    return read_earlier_run(output_dir, imports=not flags.t2t_usr_dir)  # the flag's is imported already


def _hparams(flags, before, model, random_seed):
    from t2t_lite.runs.directory import run_hparams

    return run_hparams(
        before,
        flags.hparams_set,
        flags.hparams,
        model=model,
        random_seed=random_seed,
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
