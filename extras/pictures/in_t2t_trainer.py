"""--summary=OUTPUT_DIR,… draws the curves of runs (curves.png) and, of several, their best evaluations (bars.png)."""

from t2t_lite.cli.commands import Mode


def define_flags(flags):
    """Declares the flag."""
    flags.DEFINE_paths("summary", [], "Draw the curves of these output_dirs into the first one's curves.png, and stop.")


def run(flags):
    """Draws, and prints the runs' best evaluations."""
    from t2t_lite.extras.pictures.run_bars import draw_summary

    print("\n".join(draw_summary(flags.summary)))


MODES = {"summary": Mode("--summary", run=run, asked=lambda flags: flags.summary, check=lambda flags: None)}
