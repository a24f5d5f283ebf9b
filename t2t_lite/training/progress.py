"""Progress messages of a run: a summary at the start, metrics of steps, and a progress bar on a terminal."""

import collections
import contextlib
import logging
import math
import time

import numpy as np
import tensorflow as tf

from t2t_lite.cli import console
from t2t_lite.cli.console import SECONDS, clock, columns, fit, move
from t2t_lite.data.splits import FILE_TAGS
from t2t_lite.errors import LOGGER, counted
from t2t_lite.models.fine_tuning import parameters
from t2t_lite.settings.reserved_names import BEFORE
from t2t_lite.tasks.task import SequenceToSequenceTask
from t2t_lite.training.run_context import layers_that_draw

_BAR = 16  # characters
_NARROWEST = 70  # columns of the narrowest terminal that shows the bar
_SECONDS_MOVING = 0.5
_SECONDS_PLAIN = 60  # time until the next line, in seconds, even if --log_step_count_steps steps take longer
# The fields that the progress line only shows if their values exceed a threshold, {name in the log: (threshold, text)}.
_RARE = {
    "skipped_steps": (0, "skipped {}"),
    "waiting_for_data": (0.1, "waiting for data {:.0%}"),
    "padding": (0.4, "padding {:.0%}"),
    "gradient_norm": (100.0, "gradient {:,.0f}"),
}
_STARVED = 0.1  # experts are shown if they get less than this fraction of an equal share of the positions


def announce(context, train_step, gives_up=()):
    """Logs a summary of the settings when a run starts.

    Args:
        context: RunContext.
        train_step: TrainStep.
        gives_up: list of str, the settings that make the run irreproducible, with their reasons.
    """
    config, data, replicas = context.config, context.data, context.replicas
    model, carried = train_step.model, train_step.carried
    hparams, replicas_count, accumulation = config["hparams"], replicas.count, context.accumulation
    weights, trained = (
        sum(math.prod(v.shape) for v in each) for each in (parameters(model), model.trainable_variables)
    )
    trained = f", of which {trained:,} are trained" if trained < weights else ""
    left_out = f" ({data.dropped:,} {data.source.left_out} are omitted)" if data.dropped else ""
    if any(data.cut.values()):
        cut = ", ".join(f"{count:,} {FILE_TAGS[split]}" for split, count in data.cut.items())
        left_out += f" (truncated to {data.source.longest} ids: {cut})"
    remark = "" if accumulation == hparams["gradient_accumulation_steps"] else " (same batches per step)"
    exactly = (
        f"except for: {'; '.join(gives_up)}" if gives_up else "the same command on this machine gives identical results"
    )
    further = []
    if ladder := data.source.ladder:
        each = "" if replicas_count == 1 else ", on each replica"
        shapes = f"{len(ladder.shapes)} shapes ({' x '.join(['rows', *ladder.features])})"
        further = [f"XLA compiles {shapes}, each at its first occurrence{each}: {ladder}"]
    if carried:
        further = [carried.description(data.source)]
    for line in (
        replicas.description,
        f"problem {config['problem']}: {counted(data.examples, 'training example')}{left_out}",
        f"model {config['model']}, set {config['hparams_set'] or '(own)'}: {weights:,} parameters{trained}, "
        f"{hparams['dtype_policy']}",
        f"batches: up to {hparams['batch_size']:,} tokens per replica, "
        f"{hparams['batch_size'] * replicas_count * accumulation:,} tokens per step (all replicas): "
        f"{counted(replicas_count, 'replica')}, accumulation {accumulation}{remark}",
        *further,
        f"seed {hparams['random_seed']}: reproducible, {exactly}",
        f"output: {context.output_dir}",
    ):
        LOGGER.info(line)
    if not replicas.is_chief:
        LOGGER.info("see the first worker's log for progress")
        LOGGER.setLevel(logging.WARNING)
    if replicas_count > 1 and (drawing := layers_that_draw(model)):
        LOGGER.warning(
            f"model {config['model']}: {', '.join(drawing)} have random generators that sample the same numbers on all "
            "replicas. t2t_lite.layers.Dropout samples different numbers on each replica."
        )


def fetch(results):
    """Copies the results of steps to the host in one transfer.

    Args:
        results: list of nested dicts of float32 scalars or vectors, all with the same keys.

    Returns:
        list of nested dicts of float, or of lists of float.
    """
    leaves = tf.nest.flatten(results)
    shapes = [tuple(getattr(leaf, "shape", ())) for leaf in leaves[: len(leaves) // len(results)]]
    values = tf.concat([tf.reshape(leaf, [-1]) for leaf in leaves], 0) if any(shapes) else tf.stack(leaves)
    ends = np.cumsum([max(sum(shape), 1) for shape in shapes])
    on_host = []
    for row in values.numpy().reshape(len(results), -1):
        parts = [part.reshape(shape).tolist() for part, shape in zip(np.split(row, ends[:-1]), shapes, strict=True)]
        on_host.append(tf.nest.pack_sequence_as(results[0], parts))
    return on_host


class TrainingProgress:
    """Collects the metrics of training steps, shows progress, and logs the metrics of each window of steps.

    Args:
        log: RunLog.
        train_steps: int, the step at which the run ends.
        feed: Feed, which measures how long steps wait for their batches.
        examples: int, the number of sentences (training examples or their segments) per epoch.
        sentences: int, the number of sentences that earlier processes of the run read.
        task: Task, which determines the unit of the loss and whether targets are sparse.

    Attributes:
        sentences: int, the number of sentences read so far.
    """

    def __init__(self, log, train_steps, feed, examples=1, sentences=0, task=SequenceToSequenceTask):
        self._log = log
        self._train_steps = train_steps
        self._feed = feed
        self._examples = examples
        self.sentences = sentences
        self._task = task
        self._shown = ProgressLine(train_steps, "nats per target token" if task.has_perplexity else "squared error")
        self._reset()
        self._pace = None  # seconds per step, a moving average over windows
        self._begun = time.monotonic()
        self._first = True

    def _reset(self):
        self._window, self._target_tokens, self._cells, self._counts = [], [], 0, collections.Counter()
        self._sentences_before = self.sentences
        self._start_clock()

    def _start_clock(self):
        """Starts the clock for the next steps of the window."""
        self._timed = []  # the number of target tokens of each timed step
        self._started, self._waited_before = time.monotonic(), self._feed.seconds_waited

    @property
    def epochs(self):
        """The number of epochs trained so far, a float."""
        return self.sentences / self._examples

    @contextlib.contextmanager
    def pause(self, is_needed=True):
        """Context manager whose time is excluded from training time, for checkpoints, evaluation and compilation."""
        begun = time.monotonic()
        yield
        self._started += time.monotonic() - begun if is_needed else 0.0

    def add(self, batches, metrics, is_timed=True):
        """Adds a step's StepBatches and its metrics from `fetch`; `is_timed` says whether to include its duration."""
        self._window.append(metrics)
        self._target_tokens.append(batches.counts["targets"])
        self._cells += batches.cells
        self._counts.update(batches.counts)
        self.sentences += batches.sentences
        if is_timed:
            self._timed.append(batches.counts["targets"])
        if self._first:  # tracing takes longer than many steps, so its time is excluded
            self._first = False
            self._shown.begin(time.monotonic() - self._begun, self._means("nats")["targets"])
            self._start_clock()

    @property
    def is_due(self):
        """Whether progress should be shown now. If so, fetch the metrics before `show`."""
        return self._shown.is_due

    def show(self, step):
        """Shows the progress since the last `flush`."""
        if self._window:
            self._shown.show(step, self._values(step), self._shares())

    def leave(self, step):
        """Ends the progress line on a terminal, so that the next message begins a new line."""
        if self._shown.moves:
            self.show(step)
            self._shown.leave(step)

    def flush(self, step, learning_rate):
        """Logs and shows the progress since the last `flush`, if there were any steps."""
        if not self._window:
            return
        values, shares = self._values(step, learning_rate), self._shares()
        self._pace = self._recent_pace()
        self._shown.show(step, values, shares)
        self._log.write("progress", step, **values, **shares)
        for name, layers in shares.items():
            scalars = ((f"{name}/{i}/{j}", share) for i, layer in enumerate(layers) for j, share in enumerate(layer))
            values.update(scalars)
        self._log.scalars(step, values)
        self._reset()

    def _values(self, step, learning_rate=math.nan):
        """Returns the values to log for the steps since the last `flush`, {name: number}."""
        last, losses = self._window[-1], self._means("nats")
        loss = losses.pop("targets")
        others = {f"loss_{feature}": value for feature, value in losses.items()}
        others |= {f"cost_{feature}": value for feature, value in self._means("cost").items()}
        if last.get("added"):
            others["layer_losses"] = sum(metrics["added"]["layers"] for metrics in self._window) / len(self._window)
        seconds = self._seconds()
        return {
            "epochs": self.epochs,
            "loss": loss,
            **({"perplexity": math.exp(min(loss, 80.0))} if self._task.has_perplexity else {}),
            "objective": self._means("objective")["targets"],
            **others,
            "learning_rate": float(learning_rate),
            "target_tokens_per_second": sum(self._timed) / seconds,
            "target_tokens_per_step": sum(self._target_tokens) / len(self._window),
            "sentences_per_step": (self.sentences - self._sentences_before) / len(self._window),
            "padding": 1.0 - self._tokens() / max(self._cells, 1),
            "gradient_norm": last["gradient_norm"],
            "skipped_steps": int(sum(metrics["skipped"] for metrics in self._window)),
            **({"loss_scale": last["loss_scale"]} if "loss_scale" in last else {}),
            "seconds_per_step": seconds / len(self._timed) if self._timed else 0.0,
            "waiting_for_data": (self._feed.seconds_waited - self._waited_before) / seconds,
            "eta_seconds": (self._train_steps - step) * (self._recent_pace() or 0.0),
        }

    def _seconds(self):
        """Returns the duration of the timed steps in this window, in seconds."""
        return max(time.monotonic() - self._started, 1e-9)

    def _recent_pace(self):
        """Returns seconds per step, averaged over this and earlier windows, or None before the first timed step."""
        if not self._timed:
            return self._pace
        pace = self._seconds() / len(self._timed)
        return pace if self._pace is None else 0.5 * (self._pace + pace)

    def _tokens(self):
        """Returns the number of non-padding ids in this window."""
        unpredicted = self._counts["inputs"] - self._counts["targets"] if self._task.sparse_targets else 0
        return self._counts.total() - self._counts[BEFORE] + unpredicted

    def _means(self, name):
        """Returns {feature: mean per id} in this window for the metric `name`, whose values are sums per step."""
        sums = {f: sum(metrics[name][f] for metrics in self._window) for f in self._window[0][name]}
        return {feature: total / max(self._counts[feature], 1) for feature, total in sums.items()}

    def _shares(self):
        """Returns {name_feature: list of shares per layer} from the model's counts in this window."""
        shares = {}
        for name, features in self._window[0].get("shares", {}).items():
            for feature in features:
                by_layer = zip(*(metrics["shares"][name][feature] for metrics in self._window), strict=True)
                counts = [np.sum(layer, axis=0) for layer in by_layer]  # layers may have different numbers of experts
                shares[f"{name}_{feature}"] = [np.round(layer / max(layer.sum(), 1), 4).tolist() for layer in counts]
        return shares


def sentences_read(lines, step, batches_read):
    """Returns the number of sentences read before a checkpoint, taken from the run's log or estimated.

    Args:
        lines: list of dicts, the entries of the log.
        step: int, the step of the checkpoint.
        batches_read: int, the number of batches read before the checkpoint.
    """
    known = [line for line in lines if line["event"] == "checkpoint" and line["step"] <= step and "sentences" in line]
    if not known:
        return 0
    last = known[-1]
    return round(last["sentences"] * batches_read / max(last["data_batch"], 1))


class ProgressLine:
    """The progress line of a run. On a terminal, each new line replaces the previous line.

    Args:
        train_steps: int, the step at which the run ends.
        unit: str, the unit of the loss.

    Attributes:
        moves: bool, whether the line is shown on a terminal, where the next line replaces it.
    """

    def __init__(self, train_steps, unit):
        self._train_steps = train_steps
        self._unit = unit
        self.moves = console.has_moving_line()
        self._due = None  # when the next line is due; None before the first step
        self._fields, self._left_at = [], None

    def begin(self, seconds, loss):
        """Logs the time and the loss of the first step, which takes longer because it is traced."""
        LOGGER.info(f"first step: {seconds:.1f} s with tracing, loss {loss:{_digits(loss)}} {self._unit}")
        self._due = time.monotonic() + (_SECONDS_MOVING if self.moves else SECONDS)

    @property
    def is_due(self):
        """Whether the progress line should be shown again now."""
        return self._due is not None and time.monotonic() >= self._due

    def show(self, step, values, shares):
        """Shows the progress line for a step.

        Args:
            step: int.
            values: dict, the values in the run's log.
            shares: {name: list of shares per layer}.
        """
        self._due = time.monotonic() + (_SECONDS_MOVING if self.moves else _SECONDS_PLAIN)
        self._fields = self._line_fields(step, values, shares)
        if not self.moves:
            LOGGER.info("  ".join(self._fields))
            return
        width, done = columns(), _BAR * step // self._train_steps
        bar = f"[{'#' * done}{'-' * (_BAR - done)}] " if width >= _NARROWEST else ""
        move(bar + fit(self._fields, width - len(bar)))

    def leave(self, step):
        """Leaves the line of a step on the terminal, without the bar, unless an earlier call has already left it."""
        if self._fields and self._left_at != step:
            LOGGER.info(fit(self._fields, columns()))
            self._left_at = step
        move()

    def _line_fields(self, step, values, shares):
        """Returns the fields of the line. The most important come first, because narrow terminals truncate lines."""
        seconds, steps_left = values["seconds_per_step"], self._train_steps - step
        fields = [f"step {step:,}/{self._train_steps:,}", f"loss {values['loss']:{_digits(values['loss'])}}"]
        if seconds and steps_left:
            fields.append(f"ETA {clock(values['eta_seconds'])}")
        fields += _rare(values, shares)
        if seconds:
            fields.append(_speed(seconds))
        return [*fields, f"epoch {values['epochs']:.2f}"]


def _speed(seconds):
    """Formats the speed of training, as seconds per step or as steps per second."""
    if seconds >= 1:
        return f"{seconds:,.1f} s/step"
    return f"{1 / seconds:,.{2 if seconds > 0.1 else 0}f} steps/s"


def _digits(loss):
    return ".3f" if loss >= 0.1 else ".3g"


def _rare(values, shares):
    """Yields the fields of the progress line that are only shown if their values are unusual."""
    yield from (text.format(values[name]) for name, (threshold, text) in _RARE.items() if values[name] > threshold)
    if values.get("loss_scale") == 1:
        yield "loss scale 1"
    for name, layers in shares.items():
        if least := [min(layer) for layer in layers if min(layer) < _STARVED / len(layer)]:
            yield f"{name} down to {min(least):.1%}"
