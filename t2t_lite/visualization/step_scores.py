"""The scores of a run's checkpoints as one picture."""

from t2t_lite.files import write_picture


def draw_step_scores(scores, best_step, path, title=""):
    """Draws each score over the steps into one PNG.

    Args:
        scores: {name of the score: list of (step, value)}.
        best_step: int, marked by a star.
        path: str, of the picture.
        title: str.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5 * len(scores), 4.5), layout="constrained")
    for number, (name, points) in enumerate(scores.items()):
        axes = figure.add_subplot(1, len(scores), number + 1)
        steps, values = zip(*sorted(points), strict=True)
        axes.plot(steps, values, "o-", color=f"C{number}", markersize=4)
        best = dict(points)[best_step]
        axes.plot([best_step], [best], "*", color=f"C{number}", markersize=14, label=f"step {best_step:,}: {best:.2f}")
        axes.set(xlabel="step", ylabel=name)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.suptitle(title)
    write_picture(path, figure)
