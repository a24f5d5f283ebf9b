"""The curves of training runs, from their `train.log`, as one picture."""

import os

from t2t_lite.data.files import read_bytes, write_picture
from t2t_lite.errors import UserError
from t2t_lite.training.run_log import lineage, parse_lines

_SHOWN = {"bleu": "BLEU", "bracketing_f1": "bracketing F1"}


def read_log(output_dir):
    """Returns the lines of a run's `train.log` that led to its newest state (`lineage`), a list of dicts.

    Raises:
        UserError: no such log, or nothing in it.
    """
    path = os.path.join(output_dir, "train.log")
    lines = lineage(parse_lines(read_bytes(path).decode(errors="replace")))
    if not any(line["event"] in ("progress", "evaluation") for line in lines):
        raise UserError(f"{path}: no step is logged in it yet. Expected the log of a run that has trained.")
    return lines


def points(lines, event, name):
    """Returns (steps, values) of what the lines of one event have under `name`."""
    found = [(line["step"], line[name]) for line in lines if line["event"] == event and line.get(name) is not None]
    return [step for step, _ in found], [value for _, value in found]


def draw_curves(runs, path):
    """Draws loss, score, learning rate and speed of runs over their steps into one PNG.

    Args:
        runs: {name: output_dir}; curves of several runs are laid over one another.
        path: str, of the picture.

    Raises:
        UserError: a run has no log.
    """
    logs = {name: read_log(folder) for name, folder in runs.items()}
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.5), layout="constrained")
    (losses, scores), (rates, speeds) = figure.subplots(2, 2, sharex=True)
    score = _score(logs)
    for number, (name, lines) in enumerate(logs.items()):
        color = f"C{number}"
        of_run = f"{name}: " if len(logs) > 1 else ""
        losses.plot(*points(lines, "progress", "loss"), color=color, alpha=0.6, label=f"{of_run}training, with dropout")
        losses.plot(*points(lines, "evaluation", "loss"), "o-", color=color, markersize=3, label=f"{of_run}dev")
        if score:
            scores.plot(*points(lines, "evaluation", score), "o-", color=color, markersize=3, label=name)
        axes_of_best = {"loss": losses, score: scores}
        for line in [line for line in lines if line["event"] == "best" and line["metric"] in axes_of_best][-1:]:
            best = {"color": color, "markersize": 13, "label": f"{of_run}in best/"}
            axes_of_best[line["metric"]].plot([line["best_step"]], [line["value"]], "*", **best)
        rates.plot(*points(lines, "progress", "learning_rate"), color=color, label=name)
        speeds.plot(*points(lines, "progress", "target_tokens_per_second"), color=color, label=name)
        skipped = [line["step"] for line in lines if line["event"] == "skipped"]
        losses.plot(skipped, [0] * len(skipped), "x", color=color)
    of_sample = f"{_SHOWN.get(score, score)}, dev sample" if score else "no evaluation"
    labels = ("loss (nats a target token)", of_sample, "learning rate", "target tokens a second")
    for axes, label in zip((losses, scores, rates, speeds), labels, strict=True):
        axes.set(xlabel="step", ylabel=label)
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.tick_params(labelbottom=True)
        axes.grid(alpha=0.3)
    speeds.yaxis.set_major_formatter("{x:,.0f}")
    losses.legend()
    if scores.get_legend_handles_labels()[0]:
        scores.legend()
    figure.suptitle(" / ".join(runs))
    write_picture(path, figure)


def _score(logs):
    """Returns the name of the evaluations' score: BLEU, or what the problem has instead; None without evaluation."""
    names = {name for lines in logs.values() for line in lines if line["event"] == "evaluation" for name in line}
    wanted = ("bleu", "f1", "exact_sequence_accuracy", "accuracy")
    return next((name for name in wanted if name in names), None)
