"""Attention over long sequences, such as images and music: a point for each weight, in an image for each head."""

import numpy as np

from t2t_lite.visualization import attention_words, pictures
from t2t_lite.visualization.plot import Plot

MOST_POSITIONS = 1100  # of a map: an image of 1,024 ids, with its class and its end
SMALLEST_IN_MAP = 1e-4  # where the scale begins

_COLUMNS, _SIZE = 2, 6.5  # inches of a head's axes
_HIDDEN, _PAPER = (0.85, 0.85, 0.85), (1, 1, 1)


def draw_map(attention, layer, heads):
    """Returns a `Plot`: an image for each head, a row per query, a column per key.

    The darker, the larger the weight, on a logarithmic scale. Keys that a query does not see are grey: their weight is
    0, whatever the model has learned.

    Args:
        attention: SentenceAttention.
        layer: int, from 1.
        heads: list of int, from 1.
    """
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    columns = min(_COLUMNS, len(heads))
    rows = -(-len(heads) // columns)
    figure = pictures.new_figure(_SIZE * columns + 1, _SIZE * rows + 0.6)
    grid = figure.subplots(rows, columns, squeeze=False)
    query, key = attention_words.SIDES[attention.kind]
    scale = ScalarMappable(LogNorm(SMALLEST_IN_MAP, 1), colormaps["Blues"])
    for axes, head in zip(grid.flat, heads, strict=False):
        weights = np.asarray(attention.weights[layer - 1][head - 1], np.float32)
        colors = scale.to_rgba(np.maximum(weights, SMALLEST_IN_MAP))[..., :3]
        colors[weights < SMALLEST_IN_MAP] = _PAPER
        colors[weights == 0] = _HIDDEN
        axes.imshow(colors)
        axes.set(xlabel=f"key: {key}", ylabel=f"query: {query}", title=f"head {head}")
    for axes in [*grid.flat][len(heads) :]:
        axes.set_axis_off()
    figure.colorbar(scale, ax=grid, label="weight", shrink=0.8)
    (title, _), *_ = attention_words.caption(attention, layer)
    figure.suptitle(f"{title}. Positions count from 0. Grey: not seen.", parse_math=False)
    return Plot(figure)
