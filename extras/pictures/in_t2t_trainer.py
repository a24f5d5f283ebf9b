"""`t2t-trainer --summary`."""

from t2t_lite.cli.modes import Mode

HELP = """\
--summary=OUTPUT_DIR,… draws the curves of runs (curves.png) and, of several, their best evaluations as bars (bars.png).
"""


def define_flags(flags):
    """Declares --summary."""
    flags.DEFINE_paths("summary", [], "Draw the curves of these output_dirs into the first one's curves.png, and stop.")


def _draw(flags):
    from t2t_lite.extras.pictures.run_bars import draw_summary

    print("\n".join(draw_summary(flags.summary)))


MODES = {"summary": Mode("--summary", run=_draw, is_lenient=True)}
