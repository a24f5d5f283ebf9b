"""--runner generates by Apache Beam, on a cluster if need be. It needs the extra [beam]."""

import functools

from t2t_lite.errors import UserError


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_string("runner", None, "Use Apache Beam: DirectRunner, FlinkRunner, SparkRunner, DataflowRunner.")
    flags.DEFINE_string("beam_pipeline_options", "", "Beam's own options: name=value,name=value; a name for a switch.")


def check(flags):
    """Raises `UserError` for options without a runner."""
    if flags.beam_pipeline_options and not flags.runner:
        raise UserError("--beam_pipeline_options: only with --runner, which says who runs the pipeline.")


def attributes(flags):
    """Returns {attribute of the problems that are generated: value}."""
    if not flags.runner:
        return {}
    from t2t_lite.extras.beam.beam_pipeline import parse_options, write_shards

    options = parse_options(flags.runner, flags.beam_pipeline_options)
    return {"write_shards": functools.partial(write_shards, options=options)}
