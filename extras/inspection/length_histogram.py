"""Draws histograms of example lengths, and measures the shapes of training batches."""

import dataclasses
import math

import numpy as np

from t2t_lite import registry
from t2t_lite.data import batching, record_format
from t2t_lite.visualization import drawing

_MOST_BARS = 150
# Per cent of the examples that the axis covers. If it covered the few longest, too, the rest would be compressed.
_SHOWN = 99.9
_MOST_BATCHES = 500


def write_histogram(path, lengths, max_length, title):
    """Draws one length histogram per side, in one picture.

    Args:
        path: path of the picture, on any file system that `tf.io.gfile` supports.
        lengths: {name of a side: {number of ids with EOS: number of examples}}.
        max_length: int, the length limit. It is marked by a line if the axis reaches it, and otherwise only written in
            the picture.
        title: str.
    """
    end = max(percentile(counter, _SHOWN) for counter in lengths.values())
    end = max_length if end * 0.6 < max_length <= end * 1.4 else end
    width = -(-end // _MOST_BARS)
    edges = np.arange(0.5, end + width + 0.5, width)
    figure = drawing.new_figure(8, 4.5)
    axes = figure.subplots()
    for number, (name, counter) in enumerate(lengths.items()):
        color = drawing.color(number)
        counts, _ = np.histogram(list(counter), edges, weights=list(counter.values()))
        axes.stairs(counts, edges, color=color, linewidth=1.5, label=name)
        axes.stairs(counts, edges, color=color, fill=True, alpha=0.15)
    _mark(axes, max_length, edges[-1])
    beyond = {name: sum(n for length, n in counter.items() if length > edges[-1]) for name, counter in lengths.items()}
    axes.set_title(title)
    xlabel = "ids per example, end of sentence included" + _beyond_text(beyond)
    drawing.style_axes(axes, xlabel, "examples" if width == 1 else f"examples per {width} lengths", "y")
    axes.set_xlim(0, edges[-1] * 1.02)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    drawing.write_picture(path, figure)


def percentile(lengths, percent):
    """Returns the smallest length that `percent` % of the examples do not exceed; `lengths` is {length: examples}."""
    order = sorted(lengths)
    reached = np.cumsum([lengths[length] for length in order])
    return order[int(np.searchsorted(reached, math.ceil(reached[-1] * percent / 100)))]


def _mark(axes, max_length, end):
    at, text = end, f"max_length={max_length} →"
    if max_length <= end:
        at, text = max_length + 0.5, f"max_length={max_length} "
        axes.axvline(at, color="#444444", linestyle="--", linewidth=1)
    on_white = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1}
    where = {"xycoords": ("data", "axes fraction"), "ha": "right", "va": "top"}
    axes.annotate(text, (at, 0.97), color="#444444", bbox=on_white, **where)


def _beyond_text(beyond):
    numbers = ", ".join(f"{count:,} of {name}" for name, count in beyond.items() if count)
    return f"\nlonger, not shown: {numbers}" if numbers else ""


@dataclasses.dataclass(frozen=True)
class BatchShapes:
    """The shapes of a sample of batches.

    Attributes:
        shapes: int [batches, 1 + features], the number of rows, and the width of each feature.
        tokens: int [batches, features], the number of non-padding ids.
    """

    shapes: np.ndarray
    tokens: np.ndarray

    @property
    def fill(self):
        """Shares of non-padding cells, from 0 to 1: for each feature, then for all features together."""
        cells = self.shapes[:, :1] * self.shapes[:, 1:]
        return [*(self.tokens.sum(0) / cells.sum(0)), self.tokens.sum() / cells.sum()]

    @property
    def mean_rows(self):
        """The mean number of examples per batch."""
        return self.shapes[:, 0].mean()

    @property
    def distinct(self):
        """The number of distinct shapes."""
        return len(np.unique(self.shapes, axis=0))


def measure_batches(problem, hparams, paths, encoders, examples=None):
    """Reads the first batches as in training on one replica, and returns their `BatchShapes`.

    Args:
        problem, hparams, paths, encoders: see `batching.training_batches`.
        examples: int, the number of examples in one pass. Reading stops after one pass or 500 batches.

    Raises:
        UserError: a file is damaged, or no example is within the length limits.
    """
    batches = batching.training_batches(problem, hparams, paths, encoders)
    shapes, tokens, rows = [], [], 0
    for batch in record_format.naming(batches.take(_MOST_BATCHES).as_numpy_iterator(), paths, problem.record_features):
        features = [ids.reshape(len(ids), -1) for ids in batch.values()]
        shapes.append((len(features[0]), *(ids.shape[1] for ids in features)))
        if registry.task_of(problem).sparse_targets:  # an aligned feature is 0 where nothing is predicted
            inputs = batch["inputs"]
            batch = {name: inputs if ids.shape == inputs.shape else ids for name, ids in batch.items()}
        tokens.append([np.count_nonzero(ids) for ids in batch.values()])
        rows += len(features[0])
        if examples and rows >= examples:
            break
    return BatchShapes(np.array(shapes), np.array(tokens))
