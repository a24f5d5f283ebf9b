"""Generates data with an Apache Beam pipeline, for corpora that need a cluster (`t2t-datagen --runner=…`).

The tasks are those of `sharding`: one worker reads the samples and splits them into chunks, and any worker can encode a
chunk or assemble a shard. Workers exchange files in `data_dir`, which all workers must be able to access. The resulting
files are byte for byte the same as those of a local run, and an interrupted run resumes in the same way.
"""

import contextlib
import errno
import logging
import re

from t2t_lite import files
from t2t_lite.data import sharding
from t2t_lite.errors import LOGGER, Failure, UserError, counted, needs


def write_shards(source, paths, *, seed, groups, features, options, is_ordered=False):
    """Writes the samples of a source to shards with two pipelines, like `sharding.write_shards`.

    Args:
        source: `generation.Source`, which is opened on a worker.
        paths, seed, groups, features, is_ordered: see `sharding.write_shards`.
        options: {name of an option of Beam: list of its values}, see `parse_options`.

    Returns:
        (facts of each group, result of `Source.counts` on the worker).

    Raises:
        UserError: as for `sharding.write_shards`; also if Apache Beam is not installed, or has no such runner.
        Failure: the pipeline failed.
    """
    import_beam()
    chunks, runner = sharding.Chunks(paths, seed, groups, features, is_ordered), options["runner"][-1]
    with sharding.removed_on_failure(paths):
        LOGGER.info(f"{runner}: reading and encoding")
        _run(options, lambda beam: [beam.Create([None]), beam.FlatMap(_tasks, source, paths, chunks)])
        index = files.read_json(
            _read_path(paths), {"chunks": int, "noted": {"removed": {str: int}, "units": {str: int}}}
        )
        for number in range(index["chunks"]):
            chunks.add(sharding.read_index(sharding.chunk_path(paths, number), len(paths), len(groups), features))
        LOGGER.info(f"{runner}: assembling {counted(index['chunks'], 'chunk')} into {counted(len(paths), 'shard')}")
        _run(options, lambda beam: [beam.Create(list(chunks.shard_tasks()))])
    return chunks.facts(), index["noted"]


def import_beam():
    """Returns the module `apache_beam`. Raises `UserError` if Apache Beam is not installed."""
    with needs("Apache Beam", "beam", "--runner"):
        import apache_beam
    return apache_beam


def parse_options(runner, text):
    """Returns a pipeline's options, {name: list of values}, and logs those that Beam's Python package does not know.

    Args:
        runner: str, name of the runner.
        text: str, options of Beam, `name=value,…`. An option without a value is just a name, and its value is True.
            Some options, such as experiments, may be repeated.

    Raises:
        UserError: Beam does not have the runner.
    """
    options = {"runner": [runner]}
    for word in filter(None, text.split(",")):
        name, _, value = word.strip().removeprefix("--").partition("=")
        options.setdefault(name, []).append(value if "=" in word else True)
    beam, runner = import_beam(), options["runner"][-1]
    try:
        beam.runners.runner.create_runner(runner)
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise UserError(
            f"--runner={runner}: Apache Beam has no such runner ({str(error).splitlines()[0]}). Expected "
            "DirectRunner, FlinkRunner, SparkRunner, DataflowRunner, or another runner of Apache Beam."
        ) from None
    options_of_beam = beam.options.pipeline_options.PipelineOptions([]).get_all_options()
    unknown = [name for name in options if name not in options_of_beam]
    if unknown:
        LOGGER.info(f"Beam for Python does not know {', '.join(unknown)}, and passes them on to {runner}")
    return options


def _tasks(_, source, paths, chunks):
    """Yields the tasks of all chunks, then writes the number of chunks and the result of `Source.counts` to a file."""
    count = 0
    samples, encode = source.open()
    for task in chunks.tasks(samples, encode):
        count += 1
        yield task
    files.write_json(_read_path(paths), {"chunks": count, "noted": source.counts()})


def _read_path(paths):
    return f"{paths[0]}.chunk-read.json"


def _call(task):
    function, *arguments = task
    function(*arguments)


def _run(options, sources):
    """Runs tasks on all workers; `sources(beam)` returns a list of transforms that yield the tasks."""
    beam = import_beam()
    pairs = [(name, value) for name, values in options.items() for value in values]
    words = [f"--{name}" if value is True else f"--{name}={value}" for name, value in pairs]
    beam_options = beam.options.pipeline_options.PipelineOptions(words)
    with _users_errors(), _no_tracebacks(), beam.Pipeline(options=beam_options) as tasks:
        for transform in sources(beam):
            tasks = tasks | transform
        tasks | beam.Reshuffle() | beam.Map(_call)


@contextlib.contextmanager
def _users_errors():
    """Re-raises `UserError` and full-disk errors that a runner has wrapped in another exception."""
    try:
        yield
    except Exception as error:
        text = str(error)
        if isinstance(error, UserError):
            error.args = (re.sub(r" \[while running .*\]$", "", text),)
            raise
        kinds = {f"{kind.__module__}.{kind.__name__}": kind for kind in (UserError, sharding.ChangedSource)}
        names = "|".join(map(re.escape, kinds))
        if match := re.search(rf"({names}): (.*?)(?: \[while running|$)", text, re.MULTILINE):
            raise kinds[match[1]](match[2]) from None
        if "No space left on device" in text:
            raise OSError(errno.ENOSPC, "No space left on device") from None
        if isinstance(error, RuntimeError):
            raise Failure(
                f"the pipeline failed: {text.strip().splitlines()[-1] if text.strip() else error!r}"
            ) from error
        raise


@contextlib.contextmanager
def _no_tracebacks():
    """Prevents Beam from logging tracebacks of errors that it also raises."""
    logger = logging.getLogger("apache_beam.runners.common")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
