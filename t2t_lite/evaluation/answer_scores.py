"""Reads files of predicted answers, computes their metrics, and makes the report that t2t-score prints."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from t2t_lite import registry
from t2t_lite.corpora import plain_text, tables
from t2t_lite.corpora.cells import CSV, JSON_LINES, read_cells, read_fields
from t2t_lite.errors import LOGGER, UserError, counted, needs, shown
from t2t_lite.evaluation.score_files import read_lines
from t2t_lite.evaluation.scores import warning_of_forms
from t2t_lite.settings.ranges import Choices, typed_value

RESAMPLES = 1000  # as in sacreBLEU
SEED = 12345  # likewise
_ENDS = (2.5, 97.5)  # the percentiles between which 95 % of the resampled scores lie


class Reference(NamedTuple):
    """The expected answers that predictions are compared with.

    Attributes:
        task, path: str, the name of the task and the path of the file.
        answers: list of str, floats or other values that the task's metrics compare.
        keys: the values that the task uses to match predictions with answers. For a file of columns, the keys are the
            numbers of the blank lines, counted from 1, because blank lines have no answer.
    """

    task: str
    path: str
    answers: list
    keys: list


def read_reference(path, task, columns=(), header=None):
    """Reads a file of expected answers.

    Args:
        path: str, a table whose first column holds the label or number, or another type of file that the task's
            `references` can read.
        task: str, the name of a task with metrics of answers.
        columns: the columns to read, one for each of the task's `columns`, such as the label or number. Each is a
            column number, counted from 1, or a column name in the first line. For the default, see `path`.
        header: bool, whether the first line names the columns. If None, a first line that looks like a header is
            treated as an error.

    Raises:
        UserError: the file is missing, damaged or in a different format, or contains no answers.
    """
    task_class = registry.task(task)
    layout = tables.Layout(task_class.columns, tuple(columns), header).check()
    reference = Reference(task, path, *task_class.references(path, layout))
    if not reference.answers:
        raise UserError(f"{path}: contains no answers. Expected at least one.")
    return reference


def read_predictions(path, reference):
    """Reads predictions, in the order of the reference; warns if the Unicode forms of the two files differ.

    Args:
        path: str, a file in the format of `read_reference`, in which the texts may be missing, or another type of file
            that the task's `predictions` can read.
        reference: `Reference`.

    Raises:
        UserError: the file is missing, damaged, in a different format, or does not match the reference.
    """
    return registry.task(reference.task).predictions(path, reference)


def read_predicted_column(path, as_label, reference):
    """Returns the answers in the first column of a file of predictions, after checking their number."""
    answers, blanks = read_column(path, as_label)
    if blanks and blanks != reference.keys:
        at = min({*blanks} ^ {*reference.keys})
        raise UserError(
            f"{path}, line {at}: this line is blank either here or in {reference.path}, but not in both. Expected an "
            "answer for each line of the reference; t2t-decoder writes a blank line for each line that it skips."
        )
    check_count(path, len(answers), reference, "line")
    return answers


def read_column(path, as_label, layout=None):
    """Returns (answers in a column, numbers of the blank lines). Problems also skip these lines.

    Args:
        path: str.
        as_label: function of a cell that returns the answer, or None if the cell is not a number.
        layout: corpora.tables.Layout of a labelled file, which may be CSV or JSON lines; None for predictions, which
            are lines with tabs.
    """
    kind = plain_text.kind(path) if layout else None
    layout, lines = layout or tables.Layout(("label",), header=False), []
    if kind in JSON_LINES:
        rows = [*read_fields(path, layout.json_fields)]
        layout = layout._replace(columns=(), header=False)
    elif kind == CSV:
        rows = [(at, cells) for at, _, cells in read_cells(path, layout._replace(columns=layout.columns or ("1",)))]
    else:
        lines = [*enumerate(read_lines(path), 1)]
        rows = [(at, line.split("\t")) for at, line in lines if line.strip()]
    column = header = 0
    if rows:
        # only the first column of a file of predictions is needed; its texts may be missing
        (first, cells), layout = rows[0], layout._replace(columns=layout.columns[:1])
        (column, *_), _, names = tables.columns_of(f"{path}, line {first}", cells, layout)
        if names:
            header, rows = first, rows[1:]
    for at, row in rows:
        if column >= len(row):
            raise UserError(f"{path}, line {at}: found {counted(len(row), 'column')}. Expected at least {column + 1}.")
    cells = [(at, row[column].strip()) for at, row in rows]
    end = cells[-1][0] if cells else len(lines) + 1
    blanks = [at - header for at, line in lines if header < at < end and not line.strip()]
    answers = [as_label(cell) for _, cell in cells]
    for (at, cell), answer in zip(cells, answers, strict=True):
        if answer is None:
            raise UserError(f"{path}, line {at}: found {shown(cell)} in column {column + 1}. Expected a number.")
    return answers, blanks


def warn_of_forms(path, answers, golds):
    """Warns if the predicted answers, a list of str, differ in Unicode form from the expected answers."""
    if warning := warning_of_forms(answers, [golds], "answer"):
        LOGGER.warning(f"{path}: {warning}")


def check_count(path, count, reference, unit):
    """Raises `UserError` unless a file has one prediction for each answer in the reference."""
    if count != len(reference.answers):
        raise UserError(
            f"{path} has {counted(count, unit)}, but {reference.path} has {len(reference.answers):,}. Expected as many "
            "predictions as references, in the same order."
        )


@dataclasses.dataclass(frozen=True)
class AnswerMetric:
    """A metric of answers, computed in two steps. The second step can be repeated for many samples of the answers.

    Attributes:
        rows: function of (predicted, expected), two lists of answers, that returns an array with a row per answer.
        score: function of one or more such rows that returns a float.
        check: function that raises `UserError` if the metric needs a package that is not installed.
        allows: function of the list of all answers that returns whether the metric is meaningful for them.
        positive: function of the list of all answers that returns the label that the metric is about, or None if it is
            about all labels.
        is_registered: bool, whether evaluations during training compute the metric from answers. If False, they compute
            a metric of this name in the graph.
    """

    rows: Callable
    score: Callable
    check: Callable = lambda: None
    allows: Callable = lambda answers: True
    positive: Callable | None = None
    is_registered: bool = True

    @property
    def __wrapped__(self):
        """A function from the module that defines the metric, which `inspect` uses to find this module."""
        return self.rows

    def __call__(self, predicted, expected):
        """Returns the score of answers, a float."""
        return float(self.score(self.rows(predicted, expected)))


def _labels():
    with needs("scikit-learn", "labels", "this metric"):
        import sklearn.metrics
    return sklearn.metrics


def _numbers():
    with needs("scipy", "labels", "this metric"):
        import scipy.stats
    return scipy.stats


def _pairs(predicted, expected):
    return np.transpose([predicted, expected])


def _codes(predicted, expected):
    """Returns int [answers, 2], the index of each predicted and expected label in the alphabetical list of labels."""
    return np.unique(_pairs(predicted, expected), return_inverse=True)[1].reshape(-1, 2)


def _is_positive(predicted, expected):
    """Returns bool [answers, 2], whether a label is the alphabetically last one, such as 1, true, yes or positive."""
    labels = sorted({*predicted, *expected})
    if len(labels) > 2:
        raise UserError(
            f"f1_binary: found {len(labels)} labels ({shown(', '.join(labels))}). Expected two; for more, use f1_macro."
        )
    return _pairs(predicted, expected) == labels[-1]


def _correlation(correlate):
    """Returns a function that computes a correlation, or 0 if all predictions or all expected answers are equal."""

    def score(rows):
        return 0.0 if (rows == rows[0]).all(axis=0).any() else correlate(*rows.T)

    return score


def _hits(predicted, expected):
    return np.array([a == b for a, b in zip(predicted, expected, strict=True)], float)


CLASS_METRICS = {
    "accuracy": AnswerMetric(_hits, np.mean, is_registered=False),
    "f1_macro": AnswerMetric(
        _codes,
        lambda rows: _labels().f1_score(rows[:, 1], rows[:, 0], average="macro", zero_division=0.0),
        check=_labels,
    ),
    "f1_binary": AnswerMetric(
        _is_positive,
        lambda rows: _labels().f1_score(rows[:, 1], rows[:, 0], zero_division=0.0),
        check=_labels,
        allows=lambda answers: len(set(answers)) == 2,
        positive=max,
    ),
    "mcc": AnswerMetric(_codes, _correlation(lambda a, b: _labels().matthews_corrcoef(b, a)), check=_labels),
}
NUMBER_METRICS = {
    "pearson": AnswerMetric(_pairs, _correlation(lambda a, b: _numbers().pearsonr(a, b).statistic), check=_numbers),
    "spearman": AnswerMetric(_pairs, _correlation(lambda a, b: _numbers().spearmanr(a, b).statistic), check=_numbers),
}


def scored_task(name):
    """Returns the `Task` subclass with this name. Raises `UserError` unless its answers can be scored."""
    names = tuple(other for other in registry.list_tasks() if registry.task(other).metrics)
    return registry.task(typed_value("--task", name, str, Choices(names)))


def metric_names(task, answers, requested=()):
    """Returns the names of the metrics of a task's answers.

    Args:
        task: str, the name of a task with metrics of answers.
        answers: list of all answers, both expected and predicted.
        requested: names of metrics. If this is empty, the result has all metrics that suit the answers (`f1_binary` for
            two labels, `entity_…` for entity tags).

    Raises:
        UserError: a metric is unknown, belongs to another task, or needs a package that is not installed.
    """
    metrics = registry.task(task).metrics
    for name in requested:
        typed_value("--metrics", name, str, Choices(tuple(metrics)))
    names = requested or [name for name, metric in metrics.items() if metric.allows(answers)]
    for name in names:
        metrics[name].check()
    return list(names)


def make_report(task, names, expected, predicted, baseline=None, resamples=RESAMPLES):
    """Scores answers, and compares them with the answers of a baseline system if these are given.

    The answers are resampled with replacement and scored, with the same samples for all metrics and both systems (Efron
    1979; Koehn 2004). A resample consists of whole tagged sentences or whole questions.

    Args:
        task: str, the name of a task with metrics of answers.
        names: list of str, names of the task's metrics.
        expected, predicted: lists of answers.
        baseline: list of the answers of a baseline system, or None.
        resamples: int, how often the answers are resampled.

    Returns:
        {"task", "answers", "resamples", "seed", "metrics": {name: {"score", "interval": [low, high]}}}. A metric about
        one label also has "positive", the label. With a baseline, each metric also has "baseline", "baseline_interval",
        "difference", "difference_interval" and "p_value". The p-value is the probability that two equally good systems
        would differ by at least this much.
    """
    systems = [predicted] if baseline is None else [predicted, baseline]
    metrics = [registry.task(task).metrics[name] for name in names]
    # Both systems at once, because the rows of `f1_binary` depend on all labels.
    answers, count = [*itertools.chain(*systems)], len(expected)
    rows = [np.split(metric.rows(answers, expected * len(systems)), len(systems)) for metric in metrics]

    def scores(at):
        return [[m.score(row[at]) for row in metric_rows] for m, metric_rows in zip(metrics, rows, strict=True)]

    draw = np.random.default_rng(SEED)
    whole = np.array(scores(slice(None)))
    # the scores of samples, [resamples, names, systems]
    samples = np.array([scores(draw.integers(count, size=count)) for _ in range(resamples)])
    report = {"task": task, "answers": count, "resamples": resamples, "seed": SEED, "metrics": {}}
    for number, name in enumerate(names):
        score, sample = whole[number], samples[:, number]
        entry = {"score": score[0], "interval": _interval(sample[:, 0])}
        if baseline is not None:
            differences = sample[:, 0] - sample[:, 1]
            entry["baseline"], entry["baseline_interval"] = score[1], _interval(sample[:, 1])
            entry["difference"], entry["difference_interval"] = score[0] - score[1], _interval(differences)
            entry["p_value"] = _p_value(score[0] - score[1], differences)
        if find_label := metrics[number].positive:
            entry["positive"] = find_label([*expected, *answers])
        report["metrics"][name] = {key: np.asarray(value).tolist() for key, value in entry.items()}
    return report


def _interval(sample):
    return np.percentile(sample, _ENDS)


def _p_value(difference, differences):
    """Returns the fraction of resamples whose difference is at least as far from the mean as `difference` is from 0."""
    # As in sacreBLEU, 1 is added to the numerator and to the denominator.
    if difference == 0:
        return 1.0
    as_large = np.abs(differences - differences.mean()) >= abs(difference)
    return (as_large.sum() + 1) / (len(differences) + 1)


def as_text(report):
    """Formats a report from `make_report` as lines of text."""
    width = max(map(len, report["metrics"]))
    lines = []
    for name, entry in report["metrics"].items():
        line = f"{name:{width}} = {_score_text(entry['score'], entry['interval'])}"
        if "positive" in entry:
            line += f"  label {shown(entry['positive'])}"
        if "baseline" in entry:
            line += (
                f"  baseline {_score_text(entry['baseline'], entry['baseline_interval'])}"
                f"  difference {_score_text(entry['difference'], entry['difference_interval'], '+')}"
                f"  p = {entry['p_value']:.3f}"
            )
        lines.append(line)
    count, unit = report["answers"], registry.task(report["task"]).unit
    return [*lines, f"{count:,} {unit}{'s' * (count != 1)}; brackets contain 95 % of {report['resamples']:,} resamples"]


def _score_text(score, interval, sign=""):
    low, high = interval
    return f"{score:{sign}.4f} [{low:{sign}.4f}, {high:{sign}.4f}]"
