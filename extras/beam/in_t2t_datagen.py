"""`t2t-datagen --runner`."""

from t2t_lite.bin import t2t_datagen
from t2t_lite.cli.modes import Mode
from t2t_lite.errors import UserError


def define_flags(flags):
    """Declares Beam's flags."""
    flags.DEFINE_string("runner", None, "Use Apache Beam: DirectRunner, FlinkRunner, SparkRunner, DataflowRunner.")
    flags.DEFINE_string("beam_pipeline_options", "", "Beam's own options: name=value,name=value; a name for a switch.")


def check(flags):
    """Raises `UserError` for options without a runner."""
    if flags.beam_pipeline_options and not flags.runner:
        raise UserError("--beam_pipeline_options: only with --runner, which says who runs the pipeline.")


def _generate(flags):
    from t2t_lite.extras.beam.beam_pipeline import parse_options

    t2t_datagen.generate(flags, beam_options=parse_options(flags.runner, flags.beam_pipeline_options))


MODES = {"beam": Mode("--runner", t2t_datagen.READ, run=_generate)}
