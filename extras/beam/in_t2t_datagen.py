"""--runner generates with Apache Beam, for example on a cluster. It needs: pip install 't2t_lite[beam]'."""

import functools

from t2t_lite.errors import UserError


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_string("runner", None, "Use Apache Beam: DirectRunner, FlinkRunner, SparkRunner, DataflowRunner.")
    flags.DEFINE_string("beam_pipeline_options", "", "Options of Beam: name=value,name=value; just name for a switch.")


def check(flags):
    """Raises `UserError` if there are options but no runner."""
    if flags.beam_pipeline_options and not flags.runner:
        raise UserError("--beam_pipeline_options needs --runner, such as --runner=DirectRunner.")


def attributes(flags):
    """Returns {attribute: value} to be set on the problems that are generated."""
    if not flags.runner:
        return {}
    from t2t_lite.extras.beam.beam_pipeline import parse_options, write_shards

    options = parse_options(flags.runner, flags.beam_pipeline_options)
    return {"write_shards": functools.partial(write_shards, options=options)}
