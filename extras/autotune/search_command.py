"""Runs the hyperparameter search that the flags of t2t-trainer describe."""

import gc
import os
import re
import shlex
import sys

from t2t_lite.bin.trainer.training_run import make_trainer, prepare_data, train_run
from t2t_lite.cli.flags import as_typed
from t2t_lite.errors import UserError
from t2t_lite.settings.config import parse_assignments

# Flags of a search that, like --autotune_…, are left out of the command for a single run.
_SEARCH_FLAGS = ("hparams_range", "output_dir", "hparams")
# Flags that all trials must share, in addition to the hyperparameters of the set.
_SHARED = (
    "train_steps", "warm_start_from", "worker_gpu", "logical_cpus", "local_eval_frequency", "eval_steps", "eval_stride",
    "eval_throttle_seconds", "decode_hparams", "eval_early_stopping_steps", "eval_early_stopping_metric",
    "eval_early_stopping_metric_delta",
)  # fmt: skip


def search_hparams(flags):
    """Trains the trials, retrains the winner with other seeds, prints the results, and writes `tuning.json`.

    Returns:
        int, the exit status.
    """
    from t2t_lite.extras.autotune import search
    from t2t_lite.files import write_json
    from t2t_lite.files.folders import check_kinds

    check_kinds(flags.output_dir, [re.escape(search.REPORT)], ["trial-[0-9]+"])
    base, ranges, objective = _checked(flags)
    if flags.autotune_parallel_trials > 1:
        return _search_in_parallel(flags)
    study, folder = _open_study(flags, base, ranges, objective), flags.output_dir

    def train(output_dir, changes, random_seed, stop_when):
        gc.collect()  # frees the memory of the previous trial's model
        return train_run(flags, output_dir, random_seed, changes=changes, metric=objective.metric, stop_when=stop_when)

    runs = search.Search(study, folder, train, base.hparams.random_seed)
    if not runs.run(flags.autotune_max_trials):
        return 0
    trials = study.trials()
    print("\n".join(search.trials_table(trials, objective)))
    if running := [trial.name for trial in trials if trial.state == "running"]:
        print(f"{', '.join(running)}: still being trained. The last process to finish will choose the best trial")
        return 0
    order = search.ranked(trials, objective)
    command = shlex.join(["t2t-trainer", *_flags_of_run(flags, order[0], objective.metric)])
    print(f"best: {study.folder_of(order[0])}\nto train this run again, or for longer: {command}")
    summary = None
    if flags.autotune_seeds:
        summary = runs.train_winner(order[0], flags.autotune_seeds)
        if summary is None:
            return 0
        print("\n".join(search.spread_text(order, objective, summary)))
    report = search.as_json(trials, objective, study.facts, folder, summary, command)
    write_json(os.path.join(folder, search.REPORT), report)
    return 0


def _checked(flags):
    """Checks flags and generates data if requested. Returns (Trainer for all trials, RangedHParams, Objective)."""
    from t2t_lite import registry
    from t2t_lite.data.records import Records
    from t2t_lite.extras.autotune.ranged_hparams import RangedHParams
    from t2t_lite.extras.autotune.study import choose_objective, import_optuna
    from t2t_lite.models.unread_settings import warn_of_unread
    from t2t_lite.runs.directory import check_meaning

    import_optuna()
    where, ranges = f"--hparams_range={flags.hparams_range}", RangedHParams()
    registry.ranged_hparams(flags.hparams_range)(ranges)
    if both := parse_assignments(flags.hparams, "--hparams").keys() & ranges.ranges.keys():
        raise UserError(f"--hparams: {sorted(both)[0]} is varied by {where}. Remove it from --hparams.")
    base = make_trainer(flags, flags.output_dir, flags.random_seed)
    ranges.check(base.hparams, where)
    model_class = registry.model(base.model)
    check_meaning(ranges.ranges, model_class, where)
    warn_of_unread(ranges.ranges, base.hparams.of_model(model_class), model_class, where, varied=ranges.ranges)
    problem = registry.problem(base.problem)
    if hasattr(problem, "read_config"):
        problem.read_config(flags.data_dir)  # the metrics may depend on it
    choice = flags.autotune_objective, flags.autotune_maximize, flags.best_checkpoint_metric
    objective = choose_objective(problem, base.hparams, *choice, translate_all=base.evaluation.translate_all)
    prepare_data(flags, base)
    _ = Records(problem, flags.data_dir, "train").paths  # raises an error if the data are missing
    return base, ranges, objective


def _open_study(flags, base, ranges, objective):
    """Opens or creates the Study after all checks have passed, and returns it."""
    from t2t_lite import registry
    from t2t_lite.data.records import Records
    from t2t_lite.extras.autotune.study import Study
    from t2t_lite.files import make_folder

    base.check()
    problem = registry.problem(base.problem)
    facts = {
        "problem": base.problem,
        "model": base.model,
        "hparams_set": base.hparams_set,
        "hparams": base.hparams.values(),
        "hparams_range": flags.hparams_range,
        "ranges": {name: interval.facts() for name, interval in ranges.ranges.items()},
        "objective": objective.metric,
        "translate_all": flags.schedule == "train_eval_and_decode",
        "records_sha256": {split: Records(problem, flags.data_dir, split).fingerprint() for split in ("train", "eval")},
    }
    facts |= {name: flags[name].value for name in _SHARED}
    make_folder(flags.output_dir)
    return Study(flags.output_dir, ranges, objective, facts, flags.train_steps, base.hparams.random_seed)


def _search_in_parallel(flags):
    """Trains the trials in several processes, then finishes the search in one process and returns its exit status."""
    # This process must not compute, because TensorFlow would occupy GPU memory that the trials need.
    import tensorflow as tf

    from t2t_lite.extras.autotune.workers import run_alone, run_workers, shares_of_gpus
    from t2t_lite.files import make_folder

    visible = [str(number) for number in range(len(tf.config.list_physical_devices("GPU")))]
    selected = [part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()]
    gpus_each = 0 if flags.logical_cpus else flags.worker_gpu
    shares = shares_of_gpus(flags.autotune_parallel_trials, gpus_each, selected[: len(visible)] or visible)
    values = {name: flags[name].value for name in flags if flags[name].present} | {"autotune_parallel_trials": 1}
    make_folder(flags.output_dir)
    program = [sys.executable, "-m", "t2t_lite.bin.t2t_trainer"]
    if not run_workers([*program, *_typed(values | {"autotune_seeds": 0})], shares, flags.output_dir):
        return 0
    sys.stdout.flush()
    return run_alone([*program, *_typed(values)])


def _typed(values):
    return [as_typed(name, value) for name, value in values.items()]


def _flags_of_run(flags, trial, metric):
    """Returns the flags, a list of str, of an ordinary run that repeats a trial."""
    hparams = [flags.hparams, *(f"{name}={value}" for name, value in trial.hparams.items())]
    values = {
        name: flags[name].value
        for name in flags
        if flags[name].present and name not in _SEARCH_FLAGS and not name.startswith("autotune_")
    }
    if flags.autotune_objective:
        values["best_checkpoint_metric"] = metric
    folder = os.path.join(flags.output_dir, f"{trial.name}-again")
    return _typed({**values, "hparams": ",".join(filter(None, hparams)), "output_dir": folder})
