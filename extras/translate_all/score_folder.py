"""Scores the translations in a folder, one per step, and writes the scores as a curve for TensorBoard."""

import json
import os
import re
import socket
import time

from t2t_lite import files
from t2t_lite.errors import LOGGER, UserError, counted
from t2t_lite.evaluation import scores
from t2t_lite.evaluation.score_files import read_translation, tensor2tensor_scores
from t2t_lite.evaluation.tokenizations import DEFAULT
from t2t_lite.files import resumable
from t2t_lite.files.file_system import list_names, status

_SECONDS_OF_WRITING = 60  # a file that has not changed for this long counts as complete


def score_folder(
    folder,
    reference_path,
    references,
    *,
    metrics=scores.DEFAULT_METRICS,
    tokenize=DEFAULT,
    ter=None,
    variant="both",
    event_dir=None,
    tag_suffix="",
    min_steps=-1,
    wait_minutes=0,
    report_zero=None,
    as_json=False,
):
    """Scores new translations in a folder until no translation has appeared for `wait_minutes`.

    Args:
        folder: path of the folder with the translations `…-<step>`.
        reference_path, references: path of the first reference, and the lines of each reference, lists of str.
        metrics, tokenize, ter: as for `corpus_scores`.
        variant: which BLEU of tensor2tensor to compute: "cased", "uncased" or "both".
        event_dir: folder for TensorBoard's curves and the last scored step, or None.
        tag_suffix: str, appended to the tags of the curves.
        min_steps: int, the first step to score; -1 skips the translations that have already been scored.
        wait_minutes: int.
        report_zero: whether the curve begins with 0 at step 0. None means: only if scoring starts at step 0.
        as_json: whether to yield JSON.

    Yields:
        For each translation, a list of lines to print.

    Raises:
        UserError: the folder does not exist, a file does not have as many lines as the reference, or event_dir is not
            writable.
    """
    if not wait_minutes:
        _last_file(folder)  # fails if there are no translations, before any folder is created
    if event_dir:
        files.check_outputs({"--reference": reference_path}, {"--event_dir": _last_step_path(event_dir)})
        files.make_folder(event_dir)
        files.check_writable(event_dir)
    min_steps = min_steps if min_steps >= 0 else _last_step(event_dir) + 1
    report_zero = min_steps == 0 if report_zero is None else report_zero
    count, lines = 0, len(references[0])

    def missing(file):
        return _missing(file, reference_path, lines)

    with EventWriter(event_dir) as writer:
        translations = resumable.follow(folder, resumable.TRANSLATIONS, min_steps, wait_minutes, missing)
        for count, file in enumerate(translations, 1):
            translation = read_translation(file.path, reference_path, lines)
            points = tensor2tensor_scores(translation, references, variant)
            is_first = count == 1  # the first warnings also concern the references and are logged only once
            if not is_first:
                scores.warn_of_texts(translation, references, {}, file.path)
            where = file.path if is_first else None
            file_scores = scores.corpus_scores(translation, references, metrics, tokenize, ter, where)
            if event_dir:
                tags = {tag + tag_suffix: value for tag, value in points.items()}
                if report_zero and is_first:
                    writer.add(dict.fromkeys(tags, 0.0), 0, _oldest(folder))
                writer.add(tags, file.step, file.seconds)
                files.write_bytes(_last_step_path(event_dir), b"%d\n" % file.step)
            yield (_json if as_json else _text)(file, points, file_scores, is_first)
    if not count:
        LOGGER.info(f"{folder}: no translation from step {min_steps} on; the last step is {_last_file(folder).step}.")


def _last_file(folder):
    """Returns the `StepFile` of the last step. Raises `UserError` if there are no translations."""
    if not files.is_folder(folder):
        raise UserError(f"--translations_dir={folder}: no such folder. Check the path, or wait with --wait_minutes.")
    existing = resumable.find(folder, resumable.TRANSLATIONS)
    if not existing:
        raise UserError(f"--translations_dir={folder}: no translations (files …-<step>). Run t2t-translate-all.")
    return existing[-1]


def _json(file, points, by_name, is_first):
    line = {"translation": file.path, "step": file.step, "tensor2tensor": points, "scores": scores.by_title(by_name)}
    return [json.dumps(line, ensure_ascii=False)]


def _text(file, points, by_name, is_first):
    """Formats a row of a table that is printed row by row; signatures and column names precede the first row."""
    names = ["step", *points, *(scores.METRICS[name] for name in by_name)]
    values = [str(file.step), *(f"{value:.2f}" for value in [*points.values(), *(s.score for s in by_name.values())])]
    widths = [max(len(name), 9 if name == "step" else 6) for name in names]
    rows = [names, values] if is_first else [values]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [*scores.signature_lines(by_name), *lines] if is_first else lines


def _missing(file, reference_path, count):
    """Returns a message if a file seems incomplete because it is still being written, otherwise ""."""
    text = files.read_bytes(file.path)
    has_end = text.endswith(b"\n")
    lines = text.count(b"\n") + (bool(text) and not has_end)
    is_old = time.time() - file.seconds > _SECONDS_OF_WRITING
    if is_old or lines > count or (lines == count and has_end):
        return ""
    return (
        f"{file.path}: {counted(lines, 'line')}{'' if has_end else ' without a final line end'}, but {reference_path} "
        f"has {count}. Expected the same number. If the file is still being written, run this command again later, or "
        "add --wait_minutes."
    )


def _oldest(folder):
    """Returns the time of a folder's oldest file, usually …-flags.txt, whose time is the start of the run."""
    statuses = [status(os.path.join(folder, name)) for name in list_names(folder)]
    return min(file_status.modified_ns for file_status in statuses if not file_status.is_folder) / 1e9


def _last_step(event_dir):
    """Returns the last scored step, or -1 if there is none."""
    path = event_dir and _last_step_path(event_dir)
    if not path or not files.exists(path):
        return -1
    text = files.read_bytes(path).strip()
    if not re.fullmatch(rb"[0-9]{1,18}", text):
        raise UserError(f"{path}: {text[:20].decode(errors='replace')!r} is not a step. Delete the file to score all.")
    return int(text)


def _last_step_path(event_dir):
    return os.path.join(event_dir, "last_evaluated_step.txt")  # tensor2tensor's name


class EventWriter:
    """Adds points to a folder of event files; unlike `tf.summary`, takes the wall time of each point.

    The event file is created with the first point.

    Args:
        folder: path of an existing folder.

    Example:
        >>> with EventWriter(folder) as writer:                                     # doctest: +SKIP
        ...     writer.add({"BLEU_cased": 27.3}, step=100000, seconds=1700000000.0)
    """

    def __init__(self, folder):
        self._folder, self._file = folder, None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._file:
            self._file.close()

    def add(self, values, step, seconds):
        """Adds {tag: float} at a step and a time in seconds since 1970, and flushes the file."""
        import tensorflow as tf

        v1 = tf.compat.v1
        points = [v1.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        event = v1.Event(wall_time=seconds, step=step, summary=v1.Summary(value=points))
        if not self._file:  # created last, after everything that can fail
            now = time.time()
            # TensorBoard reads the files of a folder in order of their names.
            name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}.{time.monotonic_ns()}"
            self._file = tf.io.TFRecordWriter(os.path.join(self._folder, name))
            self._file.write(v1.Event(wall_time=now, file_version="brain.Event:2").SerializeToString())
        self._file.write(event.SerializeToString())
        self._file.flush()
