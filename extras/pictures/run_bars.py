"""Draws the best evaluations of runs as a bar chart, next to the numbers in the paper's table 3."""

import itertools
import os

from t2t_lite.extras.pictures.curves import draw_curves, points, read_log, short_names
from t2t_lite.runs.run_config import read_run_config
from t2t_lite.visualization import drawing

# Table 3 of the paper, on newstest2013: (perplexity per piece, BLEU).
TABLE_3 = {
    "transformer_base_v1": (4.92, 25.8),
    "transformer_h1": (5.29, 24.9), "transformer_h4": (5.00, 25.5), "transformer_h16": (4.91, 25.8),
    "transformer_h32": (5.01, 25.4),
    "transformer_k128": (5.16, 25.1), "transformer_k256": (5.01, 25.4),
    "transformer_l2": (6.11, 23.7), "transformer_l4": (5.19, 25.3), "transformer_l8": (4.88, 25.5),
    "transformer_hs256": (5.75, 24.5), "transformer_hs1024": (4.66, 26.0),
    "transformer_ff1024": (5.12, 25.4), "transformer_ff4096": (4.75, 26.2),
    "transformer_dr0": (5.77, 24.6), "transformer_dr2": (4.95, 25.5),
    "transformer_ls0": (4.67, 25.3), "transformer_ls2": (5.47, 25.7),
    "transformer_learned_positions": (4.92, 25.7),
    "transformer_big_v1": (4.33, 26.4),
}  # fmt: skip
_MEASURES = ("perplexity, dev", "BLEU, dev")


def best_evaluations(output_dir):
    """Returns the lowest dev perplexity and the highest dev BLEU in a run's log; a missing score is None.

    Raises:
        UserError: the log is missing or empty.
    """
    lines = read_log(output_dir)
    perplexities, scores = (points(lines, "evaluation", name)[1] for name in ("perplexity", "bleu"))
    return min(perplexities, default=None), max(scores, default=None)


def draw_bars(path, output_dirs):
    """Draws bars for the best dev perplexity and the best dev BLEU of each run.

    If a run's hparams set is a row of table 3, the paper's number is shown next to the run. The paper's numbers are for
    WMT 2014; on other data, only the differences between rows can be compared.

    Args:
        path: str, path of the picture: .png, .svg or .pdf.
        output_dirs: list of str.

    Raises:
        UserError: a run has no log.
    """
    sets = [(read_run_config(folder) or {}).get("hparams_set") for folder in output_dirs]
    rows = list(zip(short_names(output_dirs), map(best_evaluations, output_dirs), map(TABLE_3.get, sets), strict=True))
    figure = drawing.new_figure(10, 1.2 + 0.3 * len(rows))
    for number, (axes, measure) in enumerate(zip(figure.subplots(1, 2, sharey=True), _MEASURES, strict=True)):
        paper_values = [(at, theirs[number]) for at, (_, _, theirs) in enumerate(rows) if theirs]
        run_values = [(at, values[number]) for at, (_, values, _) in enumerate(rows) if values[number] is not None]
        height = 0.38 if paper_values and run_values else 0.7
        _bars(axes, run_values, -height / 2 if paper_values else 0, height, drawing.color(0), "best evaluation")
        _bars(axes, paper_values, height / 2 if run_values else 0, height, drawing.FAINT, "the paper's table 3")
        drawing.style_axes(axes, measure, "", "")
        axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)  # puts the first row at the top
        axes.grid(visible=False, axis="y")
        axes.margins(x=0.12)
    labelled = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in figure.axes]
    handles = {label: handle for handle, label in itertools.chain(*labelled)}
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=2, frameon=False)
    drawing.write_picture(path, figure)


def draw_summary(output_dirs):
    """Writes the runs' curves (curves.png) and, if there are several runs, bars (bars.png) to the first folder.

    Returns:
        list of str, the paths of the pictures.

    Raises:
        UserError: a run has no log.
    """
    curves, bars = (os.path.join(output_dirs[0], name) for name in ("curves.png", "bars.png"))
    draw_curves(output_dirs, curves)
    if len(output_dirs) == 1:
        return [curves]
    draw_bars(bars, output_dirs)
    return [curves, bars]


def _bars(axes, values, offset, height, color, label):
    """Draws values, a list of (row, value), as labelled bars."""
    if values:
        places, lengths = zip(*values, strict=True)
        bars = axes.barh([at + offset for at in places], lengths, height, color=color, label=label)
        axes.bar_label(bars, fmt="%.2f" if max(lengths) < 10 else "%.1f", padding=3, fontsize=8)
