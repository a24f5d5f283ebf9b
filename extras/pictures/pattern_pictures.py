"""Draws a model's self-attention patterns as matrices of queries and keys."""

import numpy as np

from t2t_lite.errors import UserError, counted
from t2t_lite.extras.pictures.attention_patterns import attention_patterns
from t2t_lite.settings.ranges import PATTERN_LENGTH
from t2t_lite.visualization import drawing
from t2t_lite.visualization.drawing import Plot
from t2t_lite.visualization.sentence_attention import TITLES

_USUAL = 256

_COLUMNS, _SIZE = 3, 4.4  # number of matrices per row, and the size of a matrix in inches
_SEEN, _HIDDEN, _LATER = (0, 114, 178), (217, 217, 217), (255, 255, 255)


def draw_patterns(model, length):
    """Draws one matrix per pattern of a model, with queries as rows and keys as columns; returns a `Plot`.

    Args:
        model: see `attention_patterns`.
        length: int, the number of positions.

    Raises:
        UserError: the model's layers have no patterns.
    """
    patterns = attention_patterns(model, length)
    columns = min(_COLUMNS, len(patterns))
    rows = -(-len(patterns) // columns)
    figure = drawing.new_figure(max(_SIZE * columns, 5.5), (_SIZE + 0.4) * rows + 0.6)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, pattern in zip(grid.flat, patterns, strict=False):
        before = pattern.before
        extent = (-before - 0.5, length - 0.5, length - 0.5, -0.5)
        axes.imshow(_colors(pattern), extent=extent)
        if before:
            axes.axvline(-0.5, color=drawing.INK, linewidth=0.8, linestyle=":")
        key = "key: position that is read" + (" (negative: in the memory)" if before else "")
        axes.set(xlabel=key, ylabel="query: position that reads")
        seen = pattern.visible.sum(1).mean()
        title = f"{TITLES[pattern.kind]}, {_layers(pattern.layers)}\n{pattern.name}"
        axes.set_title(f"{title}\na query sees {seen:,.1f} keys on average", fontsize=10, parse_math=False)
    for axes in [*grid.flat][len(patterns) :]:
        axes.set_axis_off()
    legend = "Blue: keys that the query sees. Grey: keys that it does not see"
    legend += ", although they are earlier. White: later keys." if any(p.kind == "decoder" for p in patterns) else "."
    figure.suptitle(f"{counted(length, 'position')}, numbered from 0\n{legend}", fontsize=11)
    return Plot(figure)


def has_patterns(model):
    """Returns whether some layer has a memory, or does not see all positions (in decoders: all earlier ones)."""
    try:
        return any(not pattern.is_full or pattern.before for pattern in attention_patterns(model, PATTERN_LENGTH.least))
    except UserError:
        return False


def usual_length(run):
    """Returns the default of --length for a run: the length in training, clipped to the range of the flag.

    Args:
        run: `t2t_lite.runs.opening.Run`, or None.
    """
    if run is None:
        return _USUAL
    length = run.hparams.get("segment_length") or run.problem.max_length(run.hparams)
    return int(np.clip(length, PATTERN_LENGTH.least, PATTERN_LENGTH.most))


def _layers(numbers):
    """Formats sorted layer numbers, such as "layer 2", "layers 1 to 4" or "layers 1, 3, 5"."""
    if len(numbers) == 1:
        return f"layer {numbers[0]}"
    is_run = len(numbers) > 2 and numbers == [*range(numbers[0], numbers[-1] + 1)]
    return f"layers {f'{numbers[0]} to {numbers[-1]}' if is_run else ', '.join(map(str, numbers))}"


def _colors(pattern):
    """Returns the colors of a pattern's cells, uint8 [T, M + T, 3]."""
    length, width = pattern.visible.shape
    is_later = np.arange(width) - pattern.before > np.arange(length)[:, None]
    is_later = is_later & (pattern.kind == "decoder")
    colors = np.where(pattern.visible[..., None], np.uint8(_SEEN), np.uint8(_HIDDEN))
    return np.where(is_later[..., None], np.uint8(_LATER), colors)
