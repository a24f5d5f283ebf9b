"""Draws the curves of runs from their train.log: loss of training and dev, BLEU of the dev sample.

python benchmarks/plot_curve.py curve.png name=train/train.log [name=other/train.log …]
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def points(lines, event, value):
    """Returns the steps and values of one kind of line."""
    found = [(line["step"], line[value]) for line in lines if line["event"] == event and value in line]
    return [step for step, _ in found], [value for _, value in found]


def main(picture, *runs):
    """Writes the picture."""
    figure, (losses, scores) = plt.subplots(1, 2, figsize=(11, 4))
    for run in runs:
        name, path = run.split("=", 1)
        with open(path) as file:
            lines = [json.loads(line) for line in file]
        losses.plot(*points(lines, "progress", "loss"), label=f"{name}: training (dropout on)", alpha=0.7)
        losses.plot(*points(lines, "evaluation", "loss"), "o-", label=f"{name}: dev")
        scores.plot(*points(lines, "evaluation", "bleu"), "o-", label=name)
    losses.set(xlabel="step", ylabel="loss (nats a target token)", ylim=(0, None))
    scores.set(xlabel="step", ylabel="sacreBLEU of the dev sample", ylim=(0, None))
    for axes in (losses, scores):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
