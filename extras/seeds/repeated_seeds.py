"""Trains several runs that differ only in their random seed, and summarizes their best evaluations."""

import gc
import os
import re
import statistics

from t2t_lite.cli.console import table
from t2t_lite.files import write_json
from t2t_lite.files.folders import check_kinds
from t2t_lite.runs.checkpoints import checkpoint_step
from t2t_lite.runs.log import RunLog
from t2t_lite.training.monitor import best_checkpoint, history

SUMMARY = "seeds.json"


def train_seeds(seeds, output_dir, train):
    """Trains one run per seed in `<output_dir>/seed_<n>`, and writes `<output_dir>/seeds.json`.

    A second call continues where the first stopped; finished runs are not trained again.

    Args:
        seeds: list of int, at least two.
        output_dir: str.
        train: function of (output_dir, random_seed) that trains a run with evaluations and returns `Trainer.ended_by`.
            After the result "signal", no further run starts.

    Returns:
        The dict from `summarize`, or None after a signal.
    """
    check_kinds(output_dir, [re.escape(SUMMARY)], ["seed_[0-9]+"])
    for seed in seeds:
        if train(folder_of(output_dir, seed), seed) == "signal":
            return None
        gc.collect()  # frees the model's memory before the next run
    summary = summarize({seed: folder_of(output_dir, seed) for seed in seeds})
    write_json(os.path.join(output_dir, SUMMARY), summary)
    return summary


def folder_of(output_dir, seed):
    """Returns the folder of the run that uses the given seed."""
    return os.path.join(output_dir, f"seed_{seed}")


def summarize(output_dirs):
    """Summarizes runs, using the evaluation of each run's best model, or the last evaluation if no model was kept.

    Args:
        output_dirs: {seed: output_dir} for at least two runs that have been evaluated.

    Returns:
        {"runs": a list with {"random_seed", "step", and metrics} for each run, "mean": {metric: float},
        "standard_deviation": {metric: float}}. Means and deviations cover the metrics that all runs have. The
        deviation is the sample standard deviation (n - 1).
    """
    best_of_seeds = {seed: _best_evaluation(path) for seed, path in output_dirs.items()}
    metrics = [metrics for _, metrics in best_of_seeds.values()]
    values = {name: [m[name] for m in metrics] for name in metrics[0] if all(name in m for m in metrics)}
    return {
        "runs": [{"random_seed": seed, "step": step, **metrics} for seed, (step, metrics) in best_of_seeds.items()],
        "mean": {name: statistics.mean(seed_values) for name, seed_values in values.items()},
        "standard_deviation": {name: statistics.stdev(seed_values) for name, seed_values in values.items()},
    }


def as_text(summary):
    """Formats a summary from `summarize` as a table."""
    names = [*summary["mean"]]
    rows = [["random_seed", "step", *names]]
    for run in summary["runs"]:
        rows.append([str(run["random_seed"]), f"{run['step']:,}", *(f"{run[name]:.4f}" for name in names)])
    for title, of in (("mean", "mean"), ("deviation", "standard_deviation")):
        rows.append([title, "", *(f"{summary[of][name]:.4f}" for name in names)])
    return "\n".join(table(rows))


def _best_evaluation(output_dir):
    """Returns (step, {metric: float}) for the model in best/ or, if there is none, for the last evaluation."""
    evaluations, best = dict(history(RunLog(output_dir))), best_checkpoint(output_dir)
    step = checkpoint_step(best) if best else max(evaluations)
    return step, evaluations[step]
