"""Reads and writes the logs of a run: `train.log` and TensorBoard's events (docs/train_log.md lists the fields)."""

import contextlib
import json
import math
import os
import time

import tensorflow as tf

from t2t_lite.errors import UserError, shown
from t2t_lite.files import exists, list_files, read_bytes, replacing
from t2t_lite.files.file_errors import translated
from t2t_lite.files.safe_json import check_schema, parse_json

# The types of the fields that are read; docs/train_log.md lists all fields.
_COUNTS = ("step", "best_step", "sentences", "data_batch")
_MEASURES = (
    "loss?", "perplexity?", "token_accuracy?", "bleu?", "chrf?", "chrf++?", "ter?", "exact_sequence_accuracy?",
    "learning_rate?", "target_tokens_per_second?", "value?",
)  # fmt: skip
_SIGNATURES = ("bleu_signature?", "chrf_signature?", "chrf++_signature?", "ter_signature?")
_LINE = {
    "event": str, "step": int, "best_step?": int, "sentences?": int, "data_batch?": int, "split?": str, "metric?": str,
    "settings?": dict | None, **dict.fromkeys(_MEASURES, float | None), **dict.fromkeys(_SIGNATURES, str | None),
}  # fmt: skip
_LINES = {"best": {"best_step": int, "metric": str, "value": float}, "checkpoint": {"data_batch": int}}


class RunLog:
    """Writes the JSON lines and TensorBoard events of one output_dir.

    Every line has "time" (Unix seconds), "event" and "step"; docs/train_log.md lists the events and their fields.

    Args:
        output_dir: str.
        is_silent: bool, whether to write nothing, because another machine writes the log.
        name: str, file name of the JSON lines.
    """

    def __init__(self, output_dir, is_silent=False, name="train.log"):
        self._is_silent = is_silent
        self._path = os.path.join(output_dir, name)
        self._output_dir = output_dir
        self._writers = {}
        self._writes = 0

    def write(self, event, step, **values):
        """Appends one event to the log."""
        if self._is_silent:
            return
        line = {"time": round(time.time(), 3), "event": event, "step": int(step)}
        line = json.dumps(line | {name: _storable(value) for name, value in values.items()})
        if self._writes == 0 and self._ends_in_mid_line():
            line = f"\n{line}"
        self._writes += 1
        with translated(self._path, "write"), tf.io.gfile.GFile(self._path, "a") as file:
            file.write(line + "\n")

    def _ends_in_mid_line(self):
        """Returns whether a kill truncated the last line, in which case a line appended to it would be lost."""
        if not exists(self._path):
            return False
        with tf.io.gfile.GFile(self._path, "rb") as file:
            return not (b"\n" + file.read()).endswith(b"\n")

    def read(self):
        """Returns the lines of the log that have been written so far: see `read_lines`."""
        return read_lines(self._path)

    def scalars(self, step, values, folder=""):
        """Writes scalars to TensorBoard, under the run name `folder`."""
        self._summarize("scalars", step, {name: tf.constant(float(value)) for name, value in values.items()}, folder)

    def forget_events_after(self, step):
        """Removes TensorBoard's events of steps after `step`, which a resumed run repeats. Call it before writing."""
        if self._is_silent:
            return
        for folder in (self._output_dir, os.path.join(self._output_dir, "eval")):
            for path in list_files(folder, r"events\.out\.tfevents\..*"):
                records = _records(path)
                remaining = [record for record in records if tf.compat.v1.Event.FromString(record).step <= step]
                if len(remaining) < len(records):
                    with replacing(path) as temporary, tf.io.TFRecordWriter(temporary) as file:
                        for record in remaining:
                            file.write(record)

    def text(self, step, name, markdown, folder=""):
        """Writes a text to TensorBoard."""
        self._summarize("text", step, {name: tf.constant(markdown)}, folder)

    def _summarize(self, plugin, step, tensors, folder):
        """Replaces tf.summary.scalar and tf.summary.text, which need the tensorboard package."""
        if self._is_silent:
            return
        path = os.path.join(self._output_dir, folder)
        with translated(path, "write"):
            if folder not in self._writers:
                self._writers[folder] = tf.summary.create_file_writer(path)
            with self._writers[folder].as_default():
                for name, tensor in tensors.items():
                    metadata = tf.compat.v1.SummaryMetadata(
                        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name=plugin), display_name=name
                    )
                    tf.summary.write(name, tensor, step=int(step), metadata=metadata)
            self._writers[folder].flush()


def _records(path):
    """Returns the records of an event file, a list of bytes, except a last record that a kill truncated."""
    records = []
    with contextlib.suppress(tf.errors.DataLossError):
        for record in tf.data.TFRecordDataset(path):
            records.append(record.numpy())
    return records


def lineage(lines):
    """Returns the lines of a run's log, a list of dicts, without lines of steps that were later repeated.

    If a run was resumed from a checkpoint, the lines that had already been logged for later steps are omitted.
    """
    remaining = []
    for line in lines:
        if line["event"] in ("start", "resume"):
            remaining = [earlier for earlier in remaining if earlier["step"] <= line["step"]]
        remaining.append(line)
    return remaining


def read_lines(path):
    """Returns all lines of a run's log, a list of dicts, or [] if the file is missing. Truncated lines are skipped.

    Raises:
        UserError: a line has a form that no run writes; the message gives the line number.
    """
    if not exists(path):
        return []
    lines = []
    for number, text in enumerate(read_bytes(path).decode(errors="replace").splitlines(), 1):
        try:
            json.loads(text)
        except ValueError:
            continue
        except RecursionError:  # the line is not truncated but damaged, which `_checked` reports
            pass
        lines.append(_checked(text, f"{path}: line {number}"))
    return lines


def _checked(text, where):
    line = parse_json(text, where, schema=_LINE)
    check_schema(line, _LINES.get(line["event"], {}), where)
    for name, value in line.items():
        if (isinstance(value, int) and not -(2**63) <= value < 2**63) or (name in _COUNTS and value < 0):
            raise UserError(f"{where}: {shown(name)}: {shown(value)} is out of range.")
    return line


def _storable(value):
    """Rounds floats, and replaces NaN and infinity, which JSON lacks, with None."""
    if not isinstance(value, float):
        return value
    return rounded(value) if math.isfinite(value) else None


def rounded(value):
    """Rounds a float to the six significant digits that a log has."""
    return float(f"{value:.6g}")
