"""--runner=NAME generates data with Apache Beam. Needs: pip install 't2t_lite[beam]'."""

import functools

from t2t_lite.errors import UserError


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_string("runner", None, "Use Apache Beam: DirectRunner, FlinkRunner, SparkRunner or DataflowRunner.")
    flags.DEFINE_string("beam_pipeline_options", "", "Beam's options: name=value,name=value; a name alone means true.")


def check(flags):
    """Raises `UserError` if --beam_pipeline_options is set without --runner."""
    if flags.beam_pipeline_options and not flags.runner:
        raise UserError("--beam_pipeline_options needs --runner, such as --runner=DirectRunner.")


def attributes(flags):
    """Returns the attributes, {name: value}, to set on the problems that are generated."""
    if not flags.runner:
        return {}
    from t2t_lite.extras.beam.beam_pipeline import parse_options, write_shards

    options = parse_options(flags.runner, flags.beam_pipeline_options)
    return {"write_shards": functools.partial(write_shards, options=options)}
