"""t2t-bleu's --translations_dir: scores each translation of a folder as it appears, and writes them for TensorBoard."""

import json
import logging
import os
import time

from t2t_lite.bin import _scoring
from t2t_lite.errors import UserError

_LOGGER = logging.getLogger("t2t_lite")
_SECONDS_OF_WRITING = 60  # a file that has not grown for so long is not being written any more


def score(flags, references):
    """Scores and prints the files that have not been scored, until none came for --wait_minutes.

    Raises:
        UserError: no such folder, a file with another number of lines, or an --event_dir that cannot be written.
    """
    from t2t_lite import files
    from t2t_lite.evaluation import events, scores
    from t2t_lite.files import step_files

    if not flags.wait_minutes:
        _last_file(flags.translations_dir)  # raises where nothing is; before anything is made
    if flags.event_dir:
        files.check_outputs({"--reference": flags.reference}, {"--event_dir": _last_step_path(flags.event_dir)})
        files.make_folder(flags.event_dir)
        files.check_writable(flags.event_dir)
    min_steps = flags.min_steps if flags.min_steps >= 0 else _last_step(flags.event_dir) + 1
    report_zero = min_steps == 0 if flags.report_zero is None else flags.report_zero

    def missing(file):
        return _missing(file, flags.reference[0], len(references[0]))

    follow = step_files.follow(flags.translations_dir, step_files.TRANSLATIONS, min_steps, flags.wait_minutes, missing)
    count = 0
    with events.EventWriter(flags.event_dir) as writer:
        for count, file in enumerate(follow, 1):
            translation = _scoring.read_translation(file.path, flags.reference[0], len(references[0]))
            _scoring.warn_of_text(translation, flags.metrics, file.path)
            points = _scoring.tensor2tensor_scores(translation, references, flags.bleu_variant)
            found = scores.corpus_scores(translation, references, flags.metrics, flags.tokenization)
            if flags.event_dir:
                if report_zero and count == 1:
                    zeros = dict.fromkeys(_tags(points, flags.tag_suffix), 0.0)
                    writer.add(zeros, 0, _oldest(flags.translations_dir))
                writer.add(_tags(points, flags.tag_suffix), file.step, file.seconds)
                files.write_bytes(_last_step_path(flags.event_dir), b"%d\n" % file.step)
            show = _json if flags.json else _text
            print("\n".join(show(file, points, found, is_first=count == 1)), flush=True)
    if not count:
        last = _last_file(flags.translations_dir)
        _LOGGER.info(
            f"{flags.translations_dir}: nothing from step {min_steps} on; the last one is of step {last.step}."
        )


def _last_file(folder):
    """Returns the `StepFile` of the last step. Raises `UserError` where there is none."""
    import tensorflow as tf

    from t2t_lite.files import step_files

    if not tf.io.gfile.isdir(folder):
        raise UserError(f"--translations_dir={folder}: no such folder. Check the path, or wait by --wait_minutes.")
    found = step_files.find(folder, step_files.TRANSLATIONS)
    if not found:
        raise UserError(f"--translations_dir={folder}: holds no translation (a file …-<step>). Run t2t-translate-all.")
    return found[-1]


def _json(file, points, found, is_first):
    from t2t_lite.evaluation.scores import METRICS

    of_sacrebleu = {METRICS[name]: {"score": s.score, "signature": s.signature} for name, s in found.items()}
    line = {"translation": file.path, "step": file.step, "tensor2tensor": points, "scores": of_sacrebleu}
    return [json.dumps(line, ensure_ascii=False)]


def _text(file, points, found, is_first):
    """A table line by line: columns as wide as their titles, but at least six; signatures stand at its head."""
    names = ["step", *points, *_scoring.titles(found)]
    values = [str(file.step), *(f"{value:.2f}" for value in [*points.values(), *(s.score for s in found.values())])]
    widths = [max(len(name), 9 if name == "step" else 6) for name in names]
    rows = [names, values] if is_first else [values]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [*_scoring.signature_lines(found), *lines] if is_first else lines


def _tags(points, suffix):
    return {tag + suffix: value for tag, value in points.items()}


def _missing(file, reference_path, count):
    """Returns what a file that seems to be in the middle of being written lacks, "" for any other."""
    from t2t_lite import files

    text = files.read_bytes(file.path)
    has_end = text.endswith(b"\n")
    lines = text.count(b"\n") + (bool(text) and not has_end)
    is_old = time.time() - file.seconds > _SECONDS_OF_WRITING
    if is_old or lines > count or (lines == count and has_end):
        return ""
    return (
        f"{file.path}: {lines} lines, {reference_path} has {count}{'' if has_end else ', the last without its end'}: "
        "still being written. Run the same command again later, or let it wait by --wait_minutes."
    )


def _oldest(folder):
    """Returns the time of a folder's oldest file: that of …-flags.txt is the start of the run."""
    import tensorflow as tf

    found = [tf.io.gfile.stat(os.path.join(folder, name)) for name in tf.io.gfile.listdir(folder)]
    return min(status.mtime_nsec for status in found if not status.is_directory) / 1e9


def _last_step(event_dir):
    """Returns the last step that was scored, -1 for none."""
    import tensorflow as tf

    from t2t_lite import files

    path = event_dir and _last_step_path(event_dir)
    if not path or not tf.io.gfile.exists(path):
        return -1
    text = files.read_bytes(path).strip()
    if not text.isdigit():
        raise UserError(
            f"{path}: {text[:20].decode(errors='replace')!r}, expected a step. Delete it to score all again."
        )
    return int(text)


def _last_step_path(event_dir):
    return os.path.join(event_dir, "last_evaluated_step.txt")  # tensor2tensor's name
