"""What a run says while it trains: a line of progress every so many steps."""

import logging
import math
import sys
import time

import numpy as np

from t2t_lite.console import clock

_LOGGER = logging.getLogger("t2t_lite")
_BAR = 24  # characters


class Progress:
    """Gathers the metrics of steps and shows them: a bar on a terminal, plain lines in a file.

    Args:
        log: RunLog.
        train_steps: int, where the run ends.
        every: int, steps between two lines.
        examples: int, of the training data: so many sentences are an epoch.
        sentences: int, read before.

    Attributes:
        sentences: int, read up to now.
    """

    def __init__(self, log, train_steps, every, examples=1, sentences=0):
        self._log = log
        self._train_steps = train_steps
        self._every = every
        self._examples = examples
        self.sentences = sentences
        self._terminal = sys.stderr.isatty()
        self._reset()
        self._pace = None  # seconds a step, over the last windows
        self._first = True

    def _reset(self):
        self._window, self._cells, self._real, self._sentences_before = [], 0, 0, self.sentences
        self._started, self._untimed = time.monotonic(), 0

    @property
    def epochs(self):
        """How often the data were read up to now, a float."""
        return self.sentences / self._examples

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
            self.sentences += len(batch["targets"])
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
            "epochs": self.epochs,
            "loss": sums["nats"] / tokens,
            "perplexity": math.exp(min(sums["nats"] / tokens, 80.0)),
            "objective": sums["objective"] / tokens,
            "learning_rate": float(learning_rate),
            "target_tokens_per_second": sum(float(m["tokens"]) for m in timed) / seconds,
            "target_tokens_a_step": sums["tokens"] / len(self._window),
            "sentences_a_step": (self.sentences - self._sentences_before) / len(self._window),
            "padding": 1.0 - self._real / max(self._cells, 1),
            "gradient_norm": float(self._window[-1]["gradient_norm"]),
            "skipped_steps": int(sums["skipped"]),
            "seconds_a_step": pace,
            "eta_seconds": self._seconds_left(step),
        }
        self._clear()
        _LOGGER.info(self._line(step, values))
        self._log.write("progress", step, **values)
        self._log.scalars(step, values)
        self._reset()

    def _line(self, step, v):
        return (
            f"step {step:,}/{self._train_steps:,}  epoch {v['epochs']:.2f}  "
            f"loss {v['loss']:.3f} nats (perplexity {v['perplexity']:.2f})  "
            f"objective {v['objective']:.3f}  lr {v['learning_rate']:.2e}  "
            f"{v['target_tokens_per_second']:,.0f} target tokens/s  padding {100 * v['padding']:.1f}%  "
            f"gradient {v['gradient_norm']:.2f}  skipped {v['skipped_steps']}  ETA {self._eta(step)}"
        )

    def _seconds_left(self, step):
        return (self._train_steps - step) * (self._pace or 0.0)

    def _eta(self, step):
        return clock(self._seconds_left(step))

    def _draw(self, step):
        done = _BAR * step // self._train_steps
        eta = f"  ETA {self._eta(step)}" if self._pace else ""
        bar = "#" * done + "-" * (_BAR - done)
        print(f"\r[{bar}] step {step:,}/{self._train_steps:,}{eta}\033[K", end="", file=sys.stderr, flush=True)

    def _clear(self):
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def sentences_read(lines, step, batches_read):
    """Returns how many sentences a run had read at a checkpoint, by what its log says; an estimate where that lacks.

    Args:
        lines: list of dicts, the log's.
        step: int, of the checkpoint.
        batches_read: int, at the checkpoint.
    """
    known = [line for line in lines if line["event"] == "checkpoint" and line["step"] <= step and "sentences" in line]
    if not known:
        return 0
    last = known[-1]
    return round(last["sentences"] * batches_read / max(last["data_batch"], 1))


class _Pause:
    def __init__(self, progress):
        self._progress = progress

    def __enter__(self):
        self._at = time.monotonic()

    def __exit__(self, *_):
        self._progress._started += time.monotonic() - self._at
