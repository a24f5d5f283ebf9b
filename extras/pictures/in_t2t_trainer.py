"""--summary=RUN,RUN draws curves of runs (curves.png) and their best evaluations (bars.png)."""

from t2t_lite.cli.commands import Mode


def define_flags(flags):
    """Declares the flag."""
    flags.DEFINE_paths("summary", [], "Draw the runs in these folders as curves and bars in the first one, and exit.")


def run(flags):
    """Draws the pictures and prints their paths."""
    from t2t_lite.extras.pictures.run_bars import draw_summary

    print("\n".join(draw_summary(flags.summary)))


MODES = {"summary": Mode("--summary", run=run, selected_by=lambda flags: flags.summary, check=lambda flags: None)}
