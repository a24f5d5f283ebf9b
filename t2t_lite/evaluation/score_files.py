"""Scores of translations in files and folders, also those of tensor2tensor's own BLEU."""

import functools
import json
import logging
import math
import os
import re
import socket
import time
import unicodedata

import sacrebleu.metrics

from t2t_lite import files
from t2t_lite.corpora import plain_text, wmt_files
from t2t_lite.corpora.archives import unpacked_if_packed
from t2t_lite.corpora.scripts import lacks_spaces
from t2t_lite.errors import UserError, counted
from t2t_lite.evaluation import scores
from t2t_lite.evaluation.scores import check_texts
from t2t_lite.evaluation.tokenizations import DEFAULT
from t2t_lite.files import resumable
from t2t_lite.files.file_system import list_names, status
from t2t_lite.files.pipes import is_device, open_device

_LOGGER = logging.getLogger("t2t_lite")
_SECONDS_OF_WRITING = 60  # a file that has not grown for this long is no longer being written
_LAST_CODE_POINT = 0x20000  # the planes beyond have no punctuation or symbols


class _Pipe:
    """A source for `plain_text.read_lines` that is not seekable, such as bash's <(zcat file)."""

    def __init__(self, path):
        self._path = path

    def __str__(self):
        return self._path

    def open(self):
        return unpacked_if_packed(open_device(self._path, "rb"), self._path)


def read_lines(path, side=""):
    """Returns the lines of a file or a pipe, a list of str; - is standard input.

    Args:
        path: str.
        side: what to read of a test set of WMT (`wmt_files`), such as `wmt_files.SOURCE`; "": it is lines, too.

    Raises:
        UserError: the file is missing, unreadable, empty or damaged.
    """
    path = "/dev/stdin" if path == "-" else path
    if side and wmt_files.is_test_set(path):
        return wmt_files.read_side(path, side)
    return list(plain_text.read_lines(_Pipe(path) if is_device(path) else path))


def read_references(paths):
    """Returns a list of lists of str, one per file; of a test set in XML, one per complete reference.

    Raises:
        UserError: as `read_lines`, or for unequal numbers of lines.
    """
    references = []
    for path in paths:
        is_set = wmt_files.is_test_set(path)
        found = wmt_files.read_sides(path, wmt_files.REFERENCE) if is_set else [read_lines(path)]
        if references and len(found[0]) != len(references[0]):
            raise UserError(
                f"{path} has {counted(len(found[0]), 'line')}, {paths[0]} has {len(references[0])}: "
                "expected references of one text."
            )
        references += found
    return references


def read_translation(path, other_path, count, advice="Expected as many.", side=wmt_files.TRANSLATION):
    """Returns `read_lines` of a file. Raises `UserError` unless there are `count` of them, as in the other file."""
    lines = read_lines(path, side)
    if len(lines) != count:
        raise UserError(f"{path} has {counted(len(lines), 'line')}, {other_path} has {count}. {advice}")
    return lines


def tensor2tensor_scores(translation, references, variant="both"):
    """Returns {"BLEU_uncased": float, "BLEU_cased": float}, or one of them, computed as in tensor2tensor."""
    return {
        f"BLEU_{case}": tensor2tensor_bleu(*check_texts(translation, references), case == "uncased")
        for case in ("uncased", "cased")
        if variant in (case, "both")
    }


def note_tensor2tensors_words(lines):
    """Logs that tensor2tensor's scores mean little if a reference, a list of str, has hardly any spaces."""
    if lacks_spaces(lines):
        _LOGGER.info(
            "BLEU_uncased and BLEU_cased, tensor2tensor's, take a line without spaces for one word: they mean "
            "little for this reference."
        )


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
    """Scores new translations in a folder until none has appeared for `wait_minutes`.

    Args:
        folder: path of translations `…-<step>`.
        reference_path, references: path of the first reference, and lists of str, one per reference translation.
        metrics, tokenize, ter: as for `corpus_scores`.
        variant: which of tensor2tensor's BLEU to compute: "cased", "uncased" or "both".
        event_dir: folder for TensorBoard's points and the last scored step, or None.
        tag_suffix: str, appended to the points' tags.
        min_steps: int, translations of fewer steps are skipped; -1: those that have been scored before.
        wait_minutes: int.
        report_zero: whether the curve begins with a 0 at step 0; None: if nothing has been scored before.
        as_json: whether to yield JSON.

    Yields:
        list of lines to print for each translation.

    Raises:
        UserError: the folder does not exist, a file has another number of lines, or event_dir is not writable.
    """
    if not wait_minutes:
        _last_file(folder)  # raises if there is nothing, before any folder is created
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
            is_first = count == 1  # its warnings concern the references, too
            if not is_first:
                scores.warn_of_texts(translation, references, {}, file.path)
            where = file.path if is_first else None
            of_sacrebleu = scores.corpus_scores(translation, references, metrics, tokenize, ter, where)
            if event_dir:
                tags = {tag + tag_suffix: value for tag, value in points.items()}
                if report_zero and is_first:
                    writer.add(dict.fromkeys(tags, 0.0), 0, _oldest(folder))
                writer.add(tags, file.step, file.seconds)
                files.write_bytes(_last_step_path(event_dir), b"%d\n" % file.step)
            yield (_json if as_json else _text)(file, points, of_sacrebleu, is_first)
    if not count:
        _LOGGER.info(f"{folder}: nothing from step {min_steps} on; the last one is of step {_last_file(folder).step}.")


def _last_file(folder):
    """Returns the `StepFile` of the last step. Raises `UserError` if there is none."""
    if not files.is_folder(folder):
        raise UserError(f"--translations_dir={folder}: no such folder. Check the path, or wait by --wait_minutes.")
    existing = resumable.find(folder, resumable.TRANSLATIONS)
    if not existing:
        raise UserError(f"--translations_dir={folder}: holds no translation (a file …-<step>). Run t2t-translate-all.")
    return existing[-1]


def _json(file, points, by_name, is_first):
    line = {"translation": file.path, "step": file.step, "tensor2tensor": points, "scores": scores.by_title(by_name)}
    return [json.dumps(line, ensure_ascii=False)]


def _text(file, points, by_name, is_first):
    """A table printed line by line, headed by signatures; columns are as wide as their titles, but at least six."""
    names = ["step", *points, *scores.titles(by_name)]
    values = [str(file.step), *(f"{value:.2f}" for value in [*points.values(), *(s.score for s in by_name.values())])]
    widths = [max(len(name), 9 if name == "step" else 6) for name in names]
    rows = [names, values] if is_first else [values]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [*scores.signature_lines(by_name), *lines] if is_first else lines


def _missing(file, reference_path, count):
    """Returns what is missing from a file that is apparently still being written, or "" for any other file."""
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
    """Returns the time of a folder's oldest file; that of …-flags.txt is the start of the run."""
    statuses = [status(os.path.join(folder, name)) for name in list_names(folder)]
    return min(found.modified_ns for found in statuses if not found.is_folder) / 1e9


def _last_step(event_dir):
    """Returns the last step that was scored, or -1."""
    path = event_dir and _last_step_path(event_dir)
    if not path or not files.exists(path):
        return -1
    text = files.read_bytes(path).strip()
    if not re.fullmatch(rb"[0-9]{1,18}", text):
        raise UserError(
            f"{path}: {text[:20].decode(errors='replace')!r}, expected a step. Delete it to score all again."
        )
    return int(text)


def _last_step_path(event_dir):
    return os.path.join(event_dir, "last_evaluated_step.txt")  # tensor2tensor's name


class EventWriter:
    """Adds points with a given wall time, which `tf.summary` does not support, to a folder of event files.

    The first point creates the file.

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
        """Adds {tag: float} at a step (x) and a time in seconds since 1970, and flushes it to disk."""
        import tensorflow as tf

        v1 = tf.compat.v1
        points = [v1.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        event = v1.Event(wall_time=seconds, step=step, summary=v1.Summary(value=points))
        if not self._file:  # after all that can fail
            now = time.time()
            # TensorBoard reads a folder's files in the order of their names.
            name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}.{time.monotonic_ns()}"
            self._file = tf.io.TFRecordWriter(os.path.join(self._folder, name))
            self._file.write(v1.Event(wall_time=now, file_version="brain.Event:2").SerializeToString())
        self._file.write(event.SerializeToString())
        self._file.flush()


def tensor2tensor_bleu(hypotheses, references, lowercase=False):
    """Returns BLEU-4 of a corpus, from 0 to 100.

    An order for which the hypotheses have no n-grams counts as entirely correct, and the others are smoothed even if
    not a single word is correct. sacreBLEU's score is 0 in both cases.

    Args:
        hypotheses: list of str, detokenized text, one per sentence.
        references: list of lists of str, one per reference translation. tensor2tensor has only one; with several,
            n-grams and lengths are compared as in sacreBLEU.
        lowercase: bool, whether to ignore case.
    """
    hypotheses, *references = (
        [" ".join(tokens(text.lower() if lowercase else text)) for text in texts] for texts in (hypotheses, *references)
    )
    bleu = sacrebleu.metrics.BLEU(tokenize="none", force=True).corpus_score(hypotheses, references)
    logarithms, smooth = [], 1
    for correct, total in zip(bleu.counts, bleu.totals, strict=True):
        if total:
            smooth *= 1 if correct else 2
            logarithms.append(math.log(correct / total if correct else 1 / (smooth * total)))
    return 100 * bleu.bp * math.exp(sum(logarithms) / len(bleu.totals)) if logarithms else 0.0


def tokens(text):
    """Returns the words, punctuation marks and symbols of a text; a mark next to a digit may be part of the number."""
    for pattern, parts in _rules():
        text = pattern.sub(parts, text)
    return text.split()


@functools.cache
def _rules():
    """Returns pairs of an expression and its replacement. The backslash does not count as punctuation there."""
    characters = [chr(code) for code in range(_LAST_CODE_POINT) if code != ord("\\")]
    marks, symbols = (
        "".join(re.escape(c) for c in characters if unicodedata.category(c).startswith(kind)) for kind in "PS"
    )
    rules = (rf"([^\d])([{marks}])", r"\1 \2 "), (rf"([{marks}])([^\d])", r" \1 \2"), (f"([{symbols}])", r" \1 ")
    return [(re.compile(pattern), parts) for pattern, parts in rules]
