"""Writes points for TensorBoard with a given wall time, which `tf.summary` does not support."""

import os
import socket
import time

import tensorflow as tf


class EventWriter:
    """Adds points to a folder of event files; the first point creates the file.

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
        points = [tf.compat.v1.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        event = _event(wall_time=seconds, step=step, summary=tf.compat.v1.Summary(value=points))
        if not self._file:  # after all that can fail
            now = time.time()
            # TensorBoard reads a folder's files in the order of their names.
            name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}.{time.monotonic_ns()}"
            self._file = tf.io.TFRecordWriter(os.path.join(self._folder, name))
            self._file.write(_event(wall_time=now, file_version="brain.Event:2"))
        self._file.write(event)
        self._file.flush()


def _event(**fields):
    return tf.compat.v1.Event(**fields).SerializeToString()
