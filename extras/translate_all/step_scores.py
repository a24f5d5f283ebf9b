"""The scores of a run's checkpoints as one picture."""

from t2t_lite.visualization import pictures


def draw_step_scores(scores, best_step, path, title=""):
    """Draws each score over the steps.

    Args:
        scores: {name of the score: list of (step, value)}.
        best_step: int, marked by a star.
        path: str, path of the picture: .png, .svg or .pdf.
        title: str.
    """
    figure = pictures.new_figure(5.5 * len(scores), 4.5)
    for number, (name, points) in enumerate(scores.items()):
        axes, color = figure.add_subplot(1, len(scores), number + 1), pictures.color(number)
        steps, values = zip(*sorted(points), strict=True)
        axes.plot(steps, values, "o-", color=color, markersize=4)
        best = dict(points)[best_step]
        axes.plot([best_step], [best], "*", color=color, markersize=14, label=f"step {best_step:,}: {best:.2f}")
        pictures.style_axes(axes, "step", name)
        axes.legend(frameon=False)
    figure.suptitle(title, parse_math=False)
    pictures.write_picture(path, figure)
