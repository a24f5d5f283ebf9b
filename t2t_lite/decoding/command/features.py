"""Implements --features_file of t2t-decoder: writes an encoder's hidden states for a file's lines to an .npz file."""

import functools
import sys
import zipfile

import numpy as np
from numpy.lib import format as npy

from t2t_lite import files
from t2t_lite.cli.console import Progress
from t2t_lite.decoding.command.decode_files import part_of_file
from t2t_lite.decoding.command.lines import applied
from t2t_lite.decoding.predictor import features_pooling
from t2t_lite.errors import UserError
from t2t_lite.files.file_errors import translated
from t2t_lite.files.pipes import is_device, written_path
from t2t_lite.tasks.encoder_task import Reading
from t2t_lite.tasks.task import unit_of
from t2t_lite.text.vocabulary import EOS_ID

_POSITIONS = 2**14  # positions kept in memory until they are written; for four layers of size 768 they take 200 MB


def write_features(job, source, path, pooling=None, **options):
    """Writes the hidden states of the lines of a file.

    If `pooling` is given, the file has one array, "features" float32 [lines, n], which is NaN for skipped lines.
    Otherwise the file has "features" float32 [positions of all lines, n], and "lengths" int64 [lines], the number of
    positions per line, which is 0 for skipped lines.

    Args:
        job: DecodingJob.
        source, path: paths of the lines and of the output.
        pooling, **options: see `Predictor.features`.

    Raises:
        UserError: a file is missing, or a line cannot be read; also in the cases of `Predictor.features`.
    """
    path = written_path(job.settings.shard_name(path))
    if is_device(path):
        raise UserError(f"--features_file={path} is a device. Expected a file name, such as features.npz.")
    job.check_files({"--features_file": path})
    options["pooling"] = pooling
    pooling, _ = features_pooling(job.translator.model, pooling)
    part = part_of_file(source, job.settings, job.errors, job.reader(source))
    lines, lines_of = part.lines, job.lines_of(part.name, whole=True)
    (nothing,) = job.translator.features([Reading([[EOS_ID]])], **{**options, "pooling": pooling or "first"})
    readings = [*lines_of.readings(lines, part.first)]
    sizes = [0 if reading is None else 1 + len(reading) for reading in readings]
    rows = len(lines) if pooling else sum(sizes)
    progress = Progress("reading", f"{unit_of(job.runs[0].problem)}s", len(lines))
    features = functools.partial(
        job.translator.features, batch_size=job.settings.search.batch_size, on_progress=progress.add, **options
    )
    with files.replacing(path) as temporary, translated(path, "write"), files.create(temporary) as file:  # noqa: SIM117
        with zipfile.ZipFile(file, "w") as archive:
            with archive.open("features.npy", "w", force_zip64=True) as array:
                shape = {"descr": "<f4", "fortran_order": False, "shape": (rows, nothing.size)}
                npy.write_array_header_1_0(array, shape)
                for start, end in _parts(sizes):
                    vectors = applied(features, readings[start:end], None)
                    skipped = np.full_like(nothing, np.nan) if pooling else nothing[None][:0]
                    arrays = [skipped if one is None else one for one in vectors]
                    array.write((np.stack if pooling else np.concatenate)(arrays).astype("<f4").tobytes())
            if not pooling:
                with archive.open("lengths.npy", "w") as array:
                    npy.write_array(array, np.array(sizes, np.int64))
    progress.done()
    cut = [number for number, reading in enumerate(readings, part.first) if reading is not None and reading.truncated]
    lines_of.warn_of_long(lines_of.cut, cut)
    job.errors.done()
    print(f"written: {path}", file=sys.stderr)


def _parts(sizes):
    """Yields the ranges (start, end) of groups of one or more lines, each with up to about `_POSITIONS` positions."""
    start = total = 0
    for at, size in enumerate(sizes):
        if at > start and total + size > _POSITIONS:
            yield start, at
            start, total = at, 0
        total += size
    if start < len(sizes):
        yield start, len(sizes)
