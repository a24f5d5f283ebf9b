"""Draws the learning-rate schedule and the positional encoding that hyperparameters define."""

import numpy as np
from keras import ops

from t2t_lite.layers import SinusoidalPositionEmbedding
from t2t_lite.models.arguments import settings_without_effect
from t2t_lite.training.optimization.schedules import ProductSchedule
from t2t_lite.visualization import drawing

_POINTS = 2000  # maximum number of points on the curve
_POSITIONS = 128


def draw_hparams(hparams, train_steps, path, title=""):
    """Draws the learning-rate schedule and, if the model has sinusoids, the encodings of the first 128 positions.

    Args:
        hparams: HParams.
        train_steps: int, the last step of the schedule.
        path: str, path of the picture: .png, .svg or .pdf.
        title: str.

    Raises:
        UserError: the schedule is invalid: see `ProductSchedule`.
    """
    idle = settings_without_effect(hparams.model_class) if hparams.model_class else ()
    sinusoids = hparams.pos == "timing" and "pos" not in idle
    figure = drawing.new_figure(11 if sinusoids else 6, 4)
    rates, *others = figure.subplots(1, 1 + sinusoids, squeeze=False)[0]
    steps, values = schedule_points(hparams, train_steps)
    rates.plot(steps, values, color=drawing.color(0))
    top = int(np.argmax(values))
    rates.plot([steps[top]], [values[top]], "o", color=drawing.color(0), markersize=5)
    rates.annotate(
        f"{values[top]:.2e} at step {steps[top]:,}", (steps[top], values[top]), (8, 0), textcoords="offset points"
    )
    drawing.style_axes(rates, "step", "learning rate")
    rates.set_ylim(bottom=0, top=1.08 * max(values) or 1)
    rates.set_xlim(left=0)
    for axes in others:
        image = axes.imshow(
            position_encodings(hparams).T, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest"
        )
        axes.set(xlabel="position", ylabel=f"dimension ({hparams.position_layout})")
        figure.colorbar(image, ax=axes, label="positional encoding")
    figure.suptitle(title, parse_math=False)
    drawing.write_picture(path, figure)


def schedule_points(hparams, train_steps):
    """Returns (steps, learning rates), both [n], for at most 2,000 steps plus the end of the warm-up."""
    steps = np.unique(np.linspace(1, max(train_steps, 1), _POINTS).round().astype(int))
    warmup = hparams.learning_rate_warmup_steps
    steps = np.union1d(steps, [warmup]) if 1 <= warmup <= train_steps else steps
    rates = ProductSchedule(hparams, train_steps)(steps - 1)  # a schedule's argument is the number of completed updates
    return steps, np.broadcast_to(ops.convert_to_numpy(rates), steps.shape)


def position_encodings(hparams):
    """Returns the encodings of the first 128 positions, float32 [128, hidden_size]."""
    layer = SinusoidalPositionEmbedding(hparams.position_layout)
    layer.build((None, None, hparams.hidden_size))
    return ops.convert_to_numpy(layer.encode(np.arange(_POSITIONS)))
