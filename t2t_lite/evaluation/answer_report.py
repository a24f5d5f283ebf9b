"""Scores of answers with confidence intervals, and whether one system is better than another, by the bootstrap."""

import numpy as np

from t2t_lite import registry
from t2t_lite.errors import UserError, nearest

RESAMPLES = 1000  # as sacreBLEU's
SEED = 12345  # likewise
_ENDS = (2.5, 97.5)  # percentiles: 95 % of the resamples are between them


def scored_task(name):
    """Returns the named task, a `Task` subclass. Raises `UserError` unless its answers can be scored."""
    names = [other for other in registry.list_tasks() if registry.task(other).metrics]
    if name not in names:
        raise UserError(f"--task={name}: {nearest(name, names, end=' ')}Expected one of {', '.join(names)}.")
    return registry.task(name)


def metric_names(task, answers, requested=()):
    """Returns the names of the metrics of a task's answers.

    Args:
        task: str, the name of a task with metrics of answers.
        answers: list of all answers, including those of the systems.
        requested: names; none: all that suit the answers (`f1_binary` for two labels, `entity_…` for entity tags).

    Raises:
        UserError: a name is unknown or of another task, or the metric needs a package that is not installed.
    """
    metrics = registry.task(task).metrics
    for name in requested:
        if name not in metrics:
            near = nearest(name, metrics, end=" ")
            raise UserError(f"--metrics={name}: unknown for {task}. {near}Expected some of {', '.join(metrics)}.")
    names = requested or [name for name, metric in metrics.items() if metric.allows(answers)]
    for name in names:
        metrics[name].check()
    return list(names)


def make_report(task, names, expected, predicted, baseline=None, resamples=RESAMPLES):
    """Scores answers, and compares them with those of another system if there is one.

    The answers are resampled with replacement and scored, with the same samples for all metrics and both systems (Efron
    1979; Koehn 2004). Samples consist of whole sentences with tags, and of whole questions.

    Args:
        task: str, the name of a task with metrics of answers.
        names: list of str, names of its metrics.
        expected, predicted: lists of answers.
        baseline: list of answers of another system, or None.
        resamples: int, number of resamples.

    Returns:
        {"task", "answers", "resamples", "seed", "metrics": {name: {"score", "interval": [low, high]}}}. With a baseline
        there are also "baseline" and "baseline_interval", the "difference" and its "difference_interval", and the
        "p_value": the probability of a difference at least as large between equally good systems.
    """
    systems = [predicted] if baseline is None else [predicted, baseline]
    metrics = [registry.task(task).metrics[name] for name in names]
    rows = [[metric.rows(answers, expected) for answers in systems] for metric in metrics]

    def scores(at):
        return [[m.score(of_one[at]) for of_one in of_all] for m, of_all in zip(metrics, rows, strict=True)]

    draw, count = np.random.default_rng(SEED), len(expected)
    of_all = np.array(scores(slice(None)))
    samples = [scores(draw.integers(count, size=count)) for _ in range(resamples)]
    samples = np.array(samples)  # [resamples, names, systems]
    report = {"task": task, "answers": count, "resamples": resamples, "seed": SEED, "metrics": {}}
    for number, name in enumerate(names):
        score, sample = of_all[number], samples[:, number]
        entry = {"score": score[0], "interval": _interval(sample[:, 0])}
        if baseline is not None:
            differences = sample[:, 0] - sample[:, 1]
            entry["baseline"], entry["baseline_interval"] = score[1], _interval(sample[:, 1])
            entry["difference"], entry["difference_interval"] = score[0] - score[1], _interval(differences)
            entry["p_value"] = _p_value(score[0] - score[1], differences)
        report["metrics"][name] = {key: np.asarray(value).tolist() for key, value in entry.items()}
    return report


def _interval(sample):
    return np.percentile(sample, _ENDS)


def _p_value(difference, differences):
    """Returns the share of resamples whose difference is as far from their mean as the real one is from 0."""
    # As in sacreBLEU, one is added to both counts; systems with the same score have 1.
    if difference == 0:
        return 1.0
    as_large = np.abs(differences - differences.mean()) >= abs(difference)
    return (as_large.sum() + 1) / (len(differences) + 1)


def as_text(report):
    """Returns the lines of a report."""
    width = max(map(len, report["metrics"]))
    lines = []
    for name, entry in report["metrics"].items():
        line = f"{name:{width}} = {_score_text(entry['score'], entry['interval'])}"
        if "baseline" in entry:
            line += (
                f"  baseline {_score_text(entry['baseline'], entry['baseline_interval'])}"
                f"  difference {_score_text(entry['difference'], entry['difference_interval'], '+')}"
                f"  p = {entry['p_value']:.3f}"
            )
        lines.append(line)
    count, unit = report["answers"], registry.task(report["task"]).unit
    return [*lines, f"{count:,} {unit}{'s' * (count != 1)}; in brackets 95 % of {report['resamples']:,} resamples"]


def _score_text(score, interval, sign=""):
    low, high = interval
    return f"{score:{sign}.4f} [{low:{sign}.4f}, {high:{sign}.4f}]"
