"""What a run says while it trains: progress lines, `train.log` and TensorBoard."""

import json
import logging
import math
import os
import sys
import time

import numpy as np
import tensorflow as tf

_LOGGER = logging.getLogger("t2t_lite")
_BAR = 24  # characters


class RunLog:
    """`train.log` (JSON lines) and TensorBoard events of one output_dir.

    Every line of `train.log` has "time" (Unix seconds), "event" and "step"; the events are "start", "resume",
    "progress", "checkpoint", "evaluation", "hparams_change", "skipped" and "end".

    Args:
        output_dir: str.
        is_silent: bool, write nothing: another machine does.
    """

    def __init__(self, output_dir, is_silent=False):
        self._is_silent = is_silent
        self._path = os.path.join(output_dir, "train.log")
        self._output_dir = output_dir
        self._writers = {}

    def write(self, event, step, **values):
        """Appends one line to `train.log`."""
        if self._is_silent:
            return
        line = json.dumps({"time": round(time.time(), 3), "event": event, "step": int(step), **values})
        with tf.io.gfile.GFile(self._path, "a") as file:
            file.write(line + "\n")

    def read(self):
        """Returns the lines written so far as dicts; a last line that was cut off by a kill is left out."""
        if not tf.io.gfile.exists(self._path):
            return []
        found = []
        with tf.io.gfile.GFile(self._path) as file:
            for line in file:
                try:
                    found.append(json.loads(line))
                except ValueError:
                    continue
        return found

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
        self.scalars(step, {}, folder)
        with self._writers[folder].as_default():
            _write_summary("text", name, tf.constant(markdown), step)
        self._writers[folder].flush()


def _write_summary(plugin, name, tensor, step):
    """What tf.summary.scalar and .text do; those need the tensorboard package, which only the reader should need."""
    metadata = tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name=plugin), display_name=name
    )
    tf.summary.write(name, tensor, step=int(step), metadata=metadata)


class Progress:
    """Gathers the metrics of steps and shows them: a bar on a terminal, plain lines in a file.

    Args:
        log: RunLog.
        train_steps: int, where the run ends.
        every: int, steps between two lines.
    """

    def __init__(self, log, train_steps, every):
        self._log = log
        self._train_steps = train_steps
        self._every = every
        self._terminal = sys.stderr.isatty()
        self._reset()
        self._pace = None  # seconds a step, over the last windows
        self._first = True

    def _reset(self):
        self._window, self._cells, self._real, self._sentences = [], 0, 0, 0
        self._started, self._untimed = time.monotonic(), 0

    def pause(self):
        """Context in which time does not count as training: checkpoints and evaluation."""
        return _Pause(self)

    def add(self, step, batches, metrics, learning_rate):
        """Takes one step's batches and the dict that `TrainStep` returned; writes a line when it is time."""
        for batch in batches:
            for ids in batch.values():
                ids = ids.numpy()
                self._cells += ids.size
                self._real += int(np.count_nonzero(ids))
            self._sentences += len(batch["targets"])
        self._window.append(metrics)
        if self._first:  # tracing takes longer than many steps: it is no part of the speed
            float(metrics["tokens"])
            self._started, self._untimed, self._first = time.monotonic(), 1, False
        if step % self._every == 0 or step == self._train_steps:
            self.flush(step, learning_rate)
        elif self._terminal:
            self._draw(step)

    def flush(self, step, learning_rate):
        """Writes the line of the steps since the last one; nothing when there were none."""
        if not self._window:
            return
        sums = {key: sum(float(m[key]) for m in self._window) for key in ("objective", "nats", "tokens", "skipped")}
        seconds = max(time.monotonic() - self._started, 1e-9)
        tokens = max(sums["tokens"], 1.0)
        timed = self._window[self._untimed :]
        pace = seconds / max(len(timed), 1)
        self._pace = pace if self._pace is None else 0.5 * (self._pace + pace)
        values = {
            "loss": sums["nats"] / tokens,
            "perplexity": math.exp(min(sums["nats"] / tokens, 80.0)),
            "objective": sums["objective"] / tokens,
            "learning_rate": float(learning_rate),
            "target_tokens_per_second": sum(float(m["tokens"]) for m in timed) / seconds,
            "target_tokens_a_step": sums["tokens"] / len(self._window),
            "sentences_a_step": self._sentences / len(self._window),
            "padding": 1.0 - self._real / max(self._cells, 1),
            "gradient_norm": float(self._window[-1]["gradient_norm"]),
            "skipped_steps": int(sums["skipped"]),
            "seconds_a_step": pace,
        }
        self._clear()
        _LOGGER.info(self._line(step, values))
        self._log.write("progress", step, **{k: _rounded(v) for k, v in values.items()})
        self._log.scalars(step, values)
        self._reset()

    def _line(self, step, v):
        skipped = f"  {v['skipped_steps']} steps skipped" if v["skipped_steps"] else ""
        return (
            f"step {step:,}/{self._train_steps:,}  loss {v['loss']:.3f} nats (perplexity {v['perplexity']:.2f})  "
            f"objective {v['objective']:.3f}  lr {v['learning_rate']:.2e}  "
            f"{v['target_tokens_per_second']:,.0f} target tokens/s  padding {100 * v['padding']:.1f}%  "
            f"gradient {v['gradient_norm']:.2f}{skipped}  ETA {self._eta(step)}"
        )

    def _eta(self, step):
        seconds = int((self._train_steps - step) * (self._pace or 0))
        hours, minutes = seconds // 3600, seconds // 60 % 60
        return f"{hours}:{minutes:02d}:{seconds % 60:02d}" if hours else f"{minutes}:{seconds % 60:02d}"

    def _draw(self, step):
        done = _BAR * step // self._train_steps
        eta = f"  ETA {self._eta(step)}" if self._pace else ""
        bar = "#" * done + "-" * (_BAR - done)
        print(f"\r[{bar}] step {step:,}/{self._train_steps:,}{eta}\033[K", end="", file=sys.stderr, flush=True)

    def _clear(self):
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class _Pause:
    def __init__(self, progress):
        self._progress = progress

    def __enter__(self):
        self._at = time.monotonic()

    def __exit__(self, *_):
        self._progress._started += time.monotonic() - self._at


def _rounded(value):
    """Six significant digits; what is not finite has no JSON and becomes None."""
    if isinstance(value, int):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None
