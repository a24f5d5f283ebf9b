"""Generation by Beam, of a problem that has the attribute `beam_options`, such as {"runner": "DirectRunner"}."""

import functools


def writer(problem):
    """Returns what writes the shards in place of `generation.write_here`, or None."""
    if options := getattr(problem, "beam_options", None):
        from t2t_lite.extras.beam.beam_pipeline import write_shards

        return functools.partial(write_shards, options=options)
