"""A histogram of the lengths of a corpus's examples."""

import numpy as np

from t2t_lite.visualization import pictures

_MOST_BARS = 150
_SHOWN = 0.999  # share of the examples within the axis; a few long ones would compress the rest


def write_histogram(path, lengths, max_length, title):
    """Draws length histograms.

    Args:
        path: path of the picture, on any file system that `tf.io.gfile` supports.
        lengths: {name of a side: {ids with EOS: examples}}.
        max_length: int, marked by a line if it is within the axis, otherwise given in the text.
        title: str.
    """
    end = max(_reach(of_side) for of_side in lengths.values())
    end = max_length if end * 0.6 < max_length <= end * 1.4 else end
    width = -(-end // _MOST_BARS)
    edges = np.arange(0.5, end + width + 0.5, width)
    figure = pictures.new_figure(8, 4.5)
    axes = figure.subplots()
    for number, (name, of_side) in enumerate(lengths.items()):
        color = pictures.color(number)
        counts, _ = np.histogram(list(of_side), edges, weights=list(of_side.values()))
        axes.stairs(counts, edges, color=color, linewidth=1.5, label=name)
        axes.stairs(counts, edges, color=color, fill=True, alpha=0.15)
    _mark(axes, max_length, edges[-1])
    beyond = {name: sum(n for length, n in of_side.items() if length > edges[-1]) for name, of_side in lengths.items()}
    axes.set_title(title)
    xlabel = "ids per example, end of sentence included" + _beyond_text(beyond)
    pictures.style_axes(axes, xlabel, "examples" if width == 1 else f"examples, {width} lengths per step", "y")
    axes.set_xlim(0, edges[-1] * 1.02)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    pictures.write_picture(path, figure)


def _reach(lengths):
    """Returns the length that nearly all examples do not exceed."""
    order = sorted(lengths)
    share = np.cumsum([lengths[length] for length in order]) / sum(lengths.values())
    return order[int(np.searchsorted(share, _SHOWN))]


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
