"""Draws the curves of training runs, from their `train.log`, in one picture."""

import os

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.evaluation.metrics import metrics_of
from t2t_lite.files import exists
from t2t_lite.runs.log import lineage, read_lines
from t2t_lite.visualization import drawing

_LONGEST_NAME = 40  # maximum number of characters, so that two legends fit side by side


def read_log(output_dir):
    """Returns the entries in a run's `train.log` that led to its newest state (`lineage`), a list of dicts.

    Raises:
        UserError: if the log is missing or empty, or has an invalid line.
    """
    path = os.path.join(output_dir, "train.log")
    if not exists(path):
        raise UserError(f"{path}: no such file. Expected the --output_dir of t2t-trainer.")
    lines = lineage(read_lines(path))
    if not any(line["event"] in ("progress", "evaluation") for line in lines):
        raise UserError(f"{path} does not have any steps yet. Expected the log of a run that has trained.")
    return lines


def points(lines, event, name):
    """Returns (steps, values) of a field in the log entries of one kind of event."""
    pairs = [(line["step"], line[name]) for line in lines if line["event"] == event and line.get(name) is not None]
    return [step for step, _ in pairs], [value for _, value in pairs]


def short_names(paths):
    """Returns a short label for each path: as many of its last components as are needed to distinguish the paths."""
    parts = [[part for part in os.path.abspath(path).split(os.sep) if part] or [os.sep] for path in paths]
    most = max(map(len, parts))
    count = next((n for n in range(1, most) if len({tuple(p[-n:]) for p in parts}) == len(parts)), most)
    names = ["/".join(words[-count:]) for words in parts]
    names = [name if len(name) <= _LONGEST_NAME else f"{name[:15]}…{name[-_LONGEST_NAME + 16 :]}" for name in names]
    # Truncated names may be equal, so equal names are numbered.
    names = [name if names.count(name) == 1 else f"{number} {name}" for number, name in enumerate(names, 1)]
    # matplotlib interprets $ as mathematics, and omits labels that begin with _ from legends.
    printable = ["".join(c if c.isprintable() else "�" for c in name).replace("$", r"\$") for name in names]
    return [f"\u200b{name}" if name.startswith("_") else name for name in printable]


def draw_curves(output_dirs, path):
    """Draws each run's loss, score, learning rate and speed against the steps, all in one picture.

    Args:
        output_dirs: list of str, the runs, whose curves share the axes and are labelled with `short_names`.
        path: str, the path of the picture.

    Raises:
        UserError: if a run does not have a log.
    """
    names = short_names(output_dirs)
    logs = {name: read_log(folder) for name, folder in zip(names, output_dirs, strict=True)}
    from matplotlib.lines import Line2D

    figure = drawing.new_figure(11, 7.5)
    (losses, scores), (rates, speeds) = figure.subplots(2, 2, sharex=True)
    score = _score(logs)
    for number, lines in enumerate(logs.values()):
        color = drawing.color(number)
        losses.plot(*points(lines, "progress", "loss"), color=color, alpha=0.6)
        losses.plot(*points(lines, "evaluation", "loss"), "o-", color=color, markersize=3)
        if score:
            scores.plot(*points(lines, "evaluation", score), "o-", color=color, markersize=3)
        axes_of_best = {"loss": losses, score: scores}
        for line in [line for line in lines if line["event"] == "best" and line["metric"] in axes_of_best][-1:]:
            axes_of_best[line["metric"]].plot([line["best_step"]], [line["value"]], "*", color=color, markersize=13)
        rates.plot(*points(lines, "progress", "learning_rate"), color=color)
        speeds.plot(*points(lines, "progress", "target_tokens_per_second"), color=color)
        skipped = [line["step"] for line in lines if line["event"] == "skipped"]
        losses.plot(skipped, [0] * len(skipped), "x", color=color)
    shown = "BLEU" if score == "bleu" else score and score.replace("_f1", " F1")
    score_label = f"{shown}, dev" if score else "no evaluation"
    labels = ("loss (nats per target token)", score_label, "learning rate", "target tokens per second")
    for axes, label in zip((losses, scores, rates, speeds), labels, strict=True):
        drawing.style_axes(axes, "step", label, thousands="xy" if axes is speeds else "x")
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.tick_params(labelbottom=True)
    color = drawing.color(0) if len(logs) == 1 else "gray"
    styles = {"training, with dropout": {"alpha": 0.6}, "dev": {"marker": "o", "markersize": 3}}
    styles |= {"best checkpoint": {"marker": "*", "markersize": 11, "linestyle": ""}}
    losses.legend(
        frameon=False, handles=[Line2D([], [], color=color, label=label, **style) for label, style in styles.items()]
    )
    if len(logs) > 1:  # the runs' legend is below the axes, because names are long
        handles = [Line2D([], [], color=drawing.color(number), label=name) for number, name in enumerate(logs)]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(logs), 3), frameon=False)
    else:
        figure.suptitle(names[0])
    drawing.write_picture(path, figure)


def _score(logs):
    """Returns the last of the evaluations' metrics that is not a loss, such as BLEU; None if there is none."""
    lines = [line for lines in logs.values() for line in lines if line["event"] == "evaluation"]
    names = [name for line in lines for name in metrics_of(line) if not registry.is_loss(name)]
    return names[-1] if names else None
