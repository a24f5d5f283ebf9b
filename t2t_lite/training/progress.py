"""What a run says: at its start what it trains on, then a line at regular intervals of steps."""

import collections
import contextlib
import logging
import math
import sys
import time

import numpy as np
import tensorflow as tf

from t2t_lite.console import clock
from t2t_lite.data.splits import FILE_TAGS
from t2t_lite.errors import counted
from t2t_lite.models.fine_tuning import parameters
from t2t_lite.reserved_names import BEFORE
from t2t_lite.tasks.sequence_to_sequence import SequenceToSequenceTask
from t2t_lite.training.generators import layers_that_draw

_LOGGER = logging.getLogger("t2t_lite")
_BAR = 24  # characters


def announce(config, data, train_step, output_dir, gives_up=()):
    """Logs the start of a run.

    Args:
        config: dict, as in `hparams.json`.
        data: TrainingData.
        train_step: TrainStep.
        output_dir: str.
        gives_up: list of str, the settings that make the run not reproducible, and their purpose.
    """
    model, replicas, carried = train_step.model, train_step.replicas, train_step.carried
    hparams, replicas_count, accumulation = config["hparams"], replicas.count, train_step.accumulation
    weights, trained = (
        sum(math.prod(v.shape) for v in each) for each in (parameters(model), model.trainable_variables)
    )
    trained = f", of which {trained:,} are trained" if trained < weights else ""
    left_out = f" ({data.dropped:,} {data.source.left_out} are left out)" if data.dropped else ""
    if any(data.cut.values()):
        cut = ", ".join(f"{count:,} {FILE_TAGS[split]}" for split, count in data.cut.items())
        left_out += f" (longer than {data.max_length} ids and cut: {cut})"
    kept = "" if accumulation == hparams["gradient_accumulation_steps"] else ", to keep the batches of a step"
    exactly = f"but for: {'; '.join(gives_up)}" if gives_up else "the same command on this machine gives the same bits"
    further = []
    if data.ladder:
        each = "" if replicas_count == 1 else ", on each replica"
        shapes = f"{len(data.ladder.shapes)} shapes ({' x '.join(['rows', *data.ladder.features])})"
        further = [f"XLA compiles {shapes}, each when it first comes{each}: {data.ladder}"]
    if carried:
        further = [
            f"state: carried from step to step in {counted(len(carried.now), 'lane')} of {data.source.rows} rows, "
            f"{carried.bytes / 1e6:,.1f} MB; segments of {data.source.length} ids, {data.source.rows_per_example} a row"
        ]
    for line in (
        replicas.description,
        f"problem {config['problem']}: {data.examples:,} training examples{left_out}",
        f"model {config['model']}, set {config['hparams_set'] or '(own)'}: {weights:,} parameters{trained}, "
        f"{hparams['dtype_policy']}",
        f"batches: up to {hparams['batch_size']:,} tokens per replica, "
        f"{hparams['batch_size'] * replicas_count * accumulation:,} tokens per step (all replicas): "
        f"{counted(replicas_count, 'replica')}, accumulation {accumulation}{kept}",
        *further,
        f"seed {hparams['random_seed']}: reproducible, {exactly}",
        f"output: {output_dir}",
    ):
        _LOGGER.info(line)
    if not replicas.is_chief:
        _LOGGER.info("the first worker's log tells of the training")
        _LOGGER.setLevel(logging.WARNING)
    if replicas_count > 1 and (drawing := layers_that_draw(model)):
        _LOGGER.warning(
            f"model {config['model']}: {', '.join(drawing)} have generators of their own, which draw the same numbers "
            "on all replicas. Those of t2t_lite.layers.Dropout differ."
        )


def fetch(results):
    """Copies the results of steps to the host in one transfer.

    Args:
        results: list of nested dicts of float32 scalars or vectors, all with the same names.

    Returns:
        list of nested dicts of float, or of lists of float.
    """
    leaves = tf.nest.flatten(results)
    shapes = [tuple(getattr(leaf, "shape", ())) for leaf in leaves[: len(leaves) // len(results)]]
    values = tf.concat([tf.reshape(leaf, [-1]) for leaf in leaves], 0) if any(shapes) else tf.stack(leaves)
    ends = np.cumsum([max(sum(shape), 1) for shape in shapes])
    found = []
    for row in values.numpy().reshape(len(results), -1):
        parts = [part.reshape(shape).tolist() for part, shape in zip(np.split(row, ends[:-1]), shapes, strict=True)]
        found.append(tf.nest.pack_sequence_as(results[0], parts))
    return found


class TrainingProgress:
    """Collects the metrics of steps and shows them: a bar on a terminal, plain lines in a file.

    Args:
        log: RunLog.
        train_steps: int, where the run ends.
        feed: Feed, which knows how long steps have waited for their batches.
        examples: int, number of sentences in an epoch: the training examples, or their segments.
        sentences: int, number of sentences read before.
        task: Task, what the loss and the targets are.

    Attributes:
        sentences: int, number of sentences read so far.
    """

    def __init__(self, log, train_steps, feed, examples=1, sentences=0, task=SequenceToSequenceTask):
        self._log = log
        self._train_steps = train_steps
        self._feed = feed
        self._examples = examples
        self.sentences = sentences
        self._task = task
        self._terminal = sys.stderr.isatty()
        self._reset()
        self._pace = None  # seconds per step, over the last windows
        self._first = True

    def _reset(self):
        self._window, self._target_tokens, self._cells, self._counts = [], [], 0, collections.Counter()
        self._sentences_before = self.sentences
        self._start_clock()

    def _start_clock(self):
        """Starts the clock for the window's next steps."""
        self._untimed = len(self._window)
        self._started, self._waited_before = time.monotonic(), self._feed.seconds_waited

    @property
    def epochs(self):
        """The number of epochs so far, a float."""
        return self.sentences / self._examples

    @contextlib.contextmanager
    def pause(self):
        """Context manager whose time does not count as training, for checkpoints and evaluation."""
        begun = time.monotonic()
        yield
        self._started += time.monotonic() - begun

    def add(self, batches, metrics):
        """Adds a step's StepBatches and its metrics, as `fetch` returns them."""
        self._window.append(metrics)
        self._target_tokens.append(batches.counts["targets"])
        self._cells += batches.cells
        self._counts.update(batches.counts)
        self.sentences += batches.sentences
        if self._first:  # tracing takes longer than many steps, and is not counted
            self._first = False
            self._start_clock()

    def flush(self, step, learning_rate):
        """Writes a line for the steps since the last one, if there were any."""
        if not self._window:
            return
        seconds = max(time.monotonic() - self._started, 1e-9)
        timed = self._target_tokens[self._untimed :]
        pace = seconds / max(len(timed), 1)
        self._pace = pace if self._pace is None else 0.5 * (self._pace + pace)
        last, losses = self._window[-1], self._means("nats")
        loss = losses.pop("targets")
        others = {f"loss_{feature}": value for feature, value in losses.items()}
        others |= {f"cost_{feature}": value for feature, value in self._means("cost").items()}
        if last.get("added"):
            others["layer_losses"] = sum(metrics["added"]["layers"] for metrics in self._window) / len(self._window)
        shares = self._shares()
        values = {
            "epochs": self.epochs,
            "loss": loss,
            **({"perplexity": math.exp(min(loss, 80.0))} if self._task.has_perplexity else {}),
            "objective": self._means("objective")["targets"],
            **others,
            "learning_rate": float(learning_rate),
            "target_tokens_per_second": sum(timed) / seconds,
            "target_tokens_per_step": sum(self._target_tokens) / len(self._window),
            "sentences_per_step": (self.sentences - self._sentences_before) / len(self._window),
            "padding": 1.0 - self._tokens() / max(self._cells, 1),
            "gradient_norm": last["gradient_norm"],
            "skipped_steps": int(sum(metrics["skipped"] for metrics in self._window)),
            **({"loss_scale": last["loss_scale"]} if "loss_scale" in last else {}),
            "seconds_per_step": pace,
            "waiting_for_data": (self._feed.seconds_waited - self._waited_before) / seconds,
            "eta_seconds": self._seconds_left(step),
        }
        self._clear()
        _LOGGER.info(self._line(step, values, others) + _spread(shares))
        self._log.write("progress", step, **values, **shares)
        for name, layers in shares.items():
            each = ((f"{name}/{i}/{j}", share) for i, layer in enumerate(layers) for j, share in enumerate(layer))
            values.update(each)
        self._log.scalars(step, values)
        self._reset()

    def _tokens(self):
        """Returns the number of ids of the window that are no padding."""
        unpredicted = self._counts["inputs"] - self._counts["targets"] if self._task.sparse_targets else 0
        return self._counts.total() - self._counts[BEFORE] + unpredicted

    def _means(self, name):
        """Returns {feature: mean per id}, over the window's steps, of the sums that have this name."""
        sums = {f: sum(metrics[name][f] for metrics in self._window) for f in self._window[0][name]}
        return {feature: total / max(self._counts[feature], 1) for feature, total in sums.items()}

    def _shares(self):
        """Returns {name_feature: list by layer of lists of shares} of what the window's steps have counted."""
        found = {}
        for name, features in self._window[0].get("shares", {}).items():
            for feature in features:
                by_layer = zip(*(metrics["shares"][name][feature] for metrics in self._window), strict=True)
                counts = [np.sum(layer, axis=0) for layer in by_layer]  # of layers with unequal numbers of experts
                found[f"{name}_{feature}"] = [np.round(layer / max(layer.sum(), 1), 4).tolist() for layer in counts]
        return found

    def _line(self, step, v, others):
        scale = f"loss scale {v['loss_scale']:,.0f}  " if "loss_scale" in v else ""
        loss = f"nats (perplexity {v['perplexity']:.2f})" if "perplexity" in v else "squared error"
        return (
            f"step {step:,}/{self._train_steps:,}  epoch {v['epochs']:.2f}  "
            f"loss {v['loss']:.{3 if self._task.has_perplexity else 5}f} {loss}  "
            f"objective {v['objective']:.3f}  "
            f"{''.join(f'{name} {value:.3f}  ' for name, value in others.items())}lr {v['learning_rate']:.2e}  "
            f"{v['target_tokens_per_second']:,.0f} target tokens/s  padding {100 * v['padding']:.1f}%  "
            f"gradient {v['gradient_norm']:.2f}  skipped {v['skipped_steps']}  {scale}"
            f"waiting for data {100 * v['waiting_for_data']:.1f}%  ETA {self._eta(step)}"
        )

    def _seconds_left(self, step):
        return (self._train_steps - step) * (self._pace or 0.0)

    def _eta(self, step):
        return clock(self._seconds_left(step))

    def draw(self, step):
        """Updates the bar on a terminal."""
        if not self._terminal:
            return
        done = _BAR * step // self._train_steps
        eta = f"  ETA {self._eta(step)}" if self._pace else ""
        bar = "#" * done + "-" * (_BAR - done)
        self._print(f"\r[{bar}] step {step:,}/{self._train_steps:,}{eta}\033[K")

    def _clear(self):
        if self._terminal:
            self._print("\r\033[K")

    @staticmethod
    def _print(text):
        with contextlib.suppress(OSError):  # a terminal that was closed: the run has yet to be saved
            print(text, end="", file=sys.stderr, flush=True)


def _spread(shares):
    """Returns the words of a line for {name: list by layer of lists of shares}: the least one and the largest."""
    spreads = ((name, [share for layer in layers for share in layer]) for name, layers in shares.items())
    return "".join(f"  {name} {min(each):.1%} to {max(each):.1%}" for name, each in spreads)


def sentences_read(lines, step, batches_read):
    """Returns how many sentences a run had read at a checkpoint according to its log, or else an estimate.

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
