"""A histogram of the lengths of a corpus's examples."""

import numpy as np

from t2t_lite import files

_COLORS = ("#0072b2", "#d55e00")  # told apart by the color-blind, and in grey by their lightness
_MOST_BARS = 150
_SHOWN = 0.999  # share of the examples that the axis reaches; single long ones would press the rest together


def write_histogram(path, lengths, max_length, title):
    """Writes a PNG of length histograms.

    Args:
        path: path of the PNG, on any file system that `tf.io.gfile` supports.
        lengths: {name of a side: {ids with EOS: examples}}.
        max_length: int, marked by a line if it is within the axis, otherwise mentioned in text.
        title: str.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import StrMethodFormatter

    end = max(_reach(of_side) for of_side in lengths.values())
    end = max_length if end * 0.6 < max_length <= end * 1.4 else end
    width = -(-end // _MOST_BARS)
    edges = np.arange(0.5, end + width + 0.5, width)
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for (name, of_side), color in zip(lengths.items(), _COLORS, strict=False):
        counts, _ = np.histogram(list(of_side), edges, weights=list(of_side.values()))
        axes.stairs(counts, edges, color=color, linewidth=1.5, label=name)
        axes.stairs(counts, edges, color=color, fill=True, alpha=0.15)
    _mark(axes, max_length, edges[-1])
    beyond = {name: sum(n for length, n in of_side.items() if length > edges[-1]) for name, of_side in lengths.items()}
    axes.set_title(title)
    axes.set_xlabel("ids an example, end of sentence included" + _beyond_text(beyond))
    axes.set_ylabel("examples" if width == 1 else f"examples, {width} lengths a step")
    axes.set_xlim(0, edges[-1] * 1.02)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    files.write_picture(path, figure)


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
    found = ", ".join(f"{count:,} of {name}" for name, count in beyond.items() if count)
    return f"\nlonger, not shown: {found}" if found else ""
