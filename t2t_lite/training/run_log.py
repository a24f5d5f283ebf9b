"""What a run leaves in writing: `train.log` and TensorBoard's events (docs/training.md has the fields)."""

import json
import math
import os
import time

import tensorflow as tf


class RunLog:
    """JSON lines and TensorBoard events of one output_dir.

    Every line has "time" (Unix seconds), "event" and "step"; docs/training.md lists the events and their fields.

    Args:
        output_dir: str.
        is_silent: bool, write nothing: another machine does.
        name: str, of the file of lines.
    """

    def __init__(self, output_dir, is_silent=False, name="train.log"):
        self._is_silent = is_silent
        self._path = os.path.join(output_dir, name)
        self._output_dir = output_dir
        self._writers = {}
        self._writes = 0

    def write(self, event, step, **values):
        """Appends one line."""
        if self._is_silent:
            return
        line = {"time": round(time.time(), 3), "event": event, "step": int(step)}
        line = json.dumps(line | {name: _rounded(value) for name, value in values.items()})
        if self._writes == 0 and self._ends_in_mid_line():
            line = f"\n{line}"
        self._writes += 1
        with tf.io.gfile.GFile(self._path, "a") as file:
            file.write(line + "\n")

    def _ends_in_mid_line(self):
        """Whether a kill cut the last line off: another one behind it would be lost with it."""
        if not tf.io.gfile.exists(self._path):
            return False
        with tf.io.gfile.GFile(self._path, "rb") as file:
            return not (b"\n" + file.read()).endswith(b"\n")

    def read(self):
        """Returns the lines written so far, as `parse_lines` does."""
        if not tf.io.gfile.exists(self._path):
            return []
        with tf.io.gfile.GFile(self._path, "rb") as file:
            return parse_lines(file.read().decode(errors="replace"))

    def scalars(self, step, values, folder=""):
        """Writes scalars to TensorBoard, as `folder`'s run."""
        if self._is_silent:
            return
        if folder not in self._writers:
            self._writers[folder] = tf.summary.create_file_writer(os.path.join(self._output_dir, folder))
        with self._writers[folder].as_default():
            for name, value in values.items():
                _write_summary("scalars", name, tf.constant(float(value)), step)
        self._writers[folder].flush()

    def text(self, step, name, markdown, folder=""):
        """Writes a text to TensorBoard."""
        if self._is_silent:
            return
        self.scalars(step, {}, folder)
        with self._writers[folder].as_default():
            _write_summary("text", name, tf.constant(markdown), step)
        self._writers[folder].flush()


def lineage(lines):
    """Returns those of a log's lines that led to the run's newest state, a list of dicts.

    What a run wrote behind the checkpoint from which it was resumed is left out: these steps are done again.
    """
    kept = []
    for line in lines:
        if line["event"] in ("start", "resume"):
            kept = [before for before in kept if before["step"] <= line["step"]]
        kept.append(line)
    return kept


def parse_lines(text):
    """Returns the dicts of a log's text, a list; a line that was cut off by a kill is left out."""
    found = []
    for line in text.splitlines():
        try:
            line = json.loads(line)
        except ValueError:
            continue
        if isinstance(line, dict) and {"event", "step"} <= line.keys():
            found.append(line)
    return found


def _write_summary(plugin, name, tensor, step):
    """What tf.summary.scalar and .text do; those need the tensorboard package, which only the reader should need."""
    metadata = tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name=plugin), display_name=name
    )
    tf.summary.write(name, tensor, step=int(step), metadata=metadata)


def _rounded(value):
    """Six significant digits; what is not finite has no JSON and becomes None."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None
