"""The results of a search: a table of its trials, the winner, and whether it is better than noise."""

import os
import shlex

from t2t_lite.cli.console import table
from t2t_lite.errors import Failure

REPORT = "tuning.json"


def ranked(trials, objective):
    """Returns the complete trials, the best one first; on a tie the one with the lower loss, then the earlier.

    Args:
        trials: list of Trial.
        objective: Objective.

    Raises:
        Failure: no trial is complete.
    """
    complete = [trial for trial in trials if trial.state == "complete"]
    if not complete:
        reasons = [trial.reason for trial in trials if trial.reason]
        raise Failure(f"no trial is complete{f'; the last one: {reasons[-1]}' if reasons else ''}")
    sign = -1 if objective.maximize else 1
    return sorted(complete, key=lambda trial: (sign * trial.value, trial.loss, trial.number))


def trials_table(trials, objective):
    """Returns lines of text: the complete trials, best first, then the others."""
    complete = [trial for trial in trials if trial.state == "complete"]
    order = [*(ranked(complete, objective) if complete else []), *(t for t in trials if t.state != "complete")]
    names = list(dict.fromkeys(name for trial in order for name in trial.hparams))
    rows = [["trial", *names, objective.metric, "best_step", "steps", "state"]]
    for trial in order:
        values = [shortened(trial.hparams[name]) if name in trial.hparams else "-" for name in names]
        value = "-" if trial.value is None else f"{trial.value:.4f}"
        steps = ["-" if step is None else f"{step:,}" for step in (trial.best_step, trial.steps)]
        rows.append([str(trial.number), *values, value, *steps, trial.state])
    return table(rows)


def within_noise(order, deviation):
    """Returns the trials that differ from the first by at most two standard deviations of one trial's value.

    Args:
        order: list of Trial, as `ranked` returns it.
        deviation: float, the standard deviation over seeds.
    """
    return [trial for trial in order[1:] if abs(trial.value - order[0].value) <= 2 * deviation]


def spread_text(order, objective, summary):
    """Returns lines about the winner's results with other seeds, and the trials that may be as good.

    Args:
        order: list of Trial, as `ranked` returns it.
        objective: Objective.
        summary: dict, the result of `repeated_seeds.summarize` for the winner's hyperparameters.
    """
    metric = objective.metric
    mean, deviation = summary["mean"][metric], summary["standard_deviation"][metric]
    near = within_noise(order, deviation)
    names = ", ".join(trial.name for trial in near)
    verdict = (
        f"within two deviations of {order[0].name}, and so perhaps as good: {names}"
        if near
        else f"no other complete trial is within two deviations of {order[0].name}"
    )
    return [
        f"{len(summary['runs'])} further seeds: {metric} {mean:.4f}, standard deviation {deviation:.4f}; the trial, "
        f"chosen as the best of {len(order)}, has {order[0].value:.4f}",
        verdict,
    ]


def as_command(program, flags):
    """Returns a command line: `program --name=value …`, quoted for a shell."""
    return shlex.join([program, *(f"--{name}={value}" for name, value in flags.items())])


def as_json(trials, objective, facts, output_dir, summary=None, command=""):
    """Returns the contents of `tuning.json`.

    Args:
        trials: list of Trial.
        objective: Objective.
        facts: dict of JSON values, the facts of the study.
        output_dir: str, the folder of the search.
        summary: dict of the winner's further seeds, or None.
        command: str, a command that trains the winner again.
    """
    order = ranked(trials, objective)
    winner = order[0]
    report = {
        **facts,
        "objective": {"metric": objective.metric, "maximize": objective.maximize},
        "trials": [_facts(trial) for trial in trials],
        "winner": {**_facts(winner), "folder": os.path.join(output_dir, winner.name), "command": command},
    }
    if summary:
        deviation = summary["standard_deviation"][objective.metric]
        report["seeds"] = {**summary, "within_two_deviations": [trial.name for trial in within_noise(order, deviation)]}
    return report


def _facts(trial):
    return {
        "trial": trial.name,
        "state": trial.state,
        "hparams": trial.hparams,
        "value": trial.value,
        "best_step": trial.best_step,
        "steps": trial.steps,
        "reason": trial.reason,
    }


def describe(hparams):
    """Returns hyperparameters as text for reading: `learning_rate_constant 0.5123, num_heads 4`."""
    return ", ".join(f"{name} {shortened(value)}" for name, value in hparams.items())


def shortened(value):
    """Returns a value with four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
