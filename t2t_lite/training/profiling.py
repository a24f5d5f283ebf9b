"""Profiles training steps: XLA compilations, and a trace for TensorBoard's profiler (tensor2tensor's --profile)."""

import contextlib
import math
import re
import time

import tensorflow as tf

from t2t_lite.cli.console import waiting
from t2t_lite.data.width_ladder import shape_text
from t2t_lite.errors import LOGGER, UserError
from t2t_lite.training.run_context import kept_states

_STEPS_BEFORE = 10  # number of steps before the profile starts, so that it excludes graph tracing and compilation
_TRACED_STEPS = 5
# The errors that XLA raises. InternalError is not listed, because TensorFlow also raises it for a lost machine.
_NOT_COMPILED = tf.errors.InvalidArgumentError, tf.errors.UnimplementedError, tf.errors.FailedPreconditionError
_TRACEBACK = re.compile(
    r"Graph execution error|Detected at node|File \"|Stack trace|<stack traces|The op is created|\[\[|tf2xla"
)


class StepProfiler(contextlib.AbstractContextManager):
    """Context manager that traces steps 11 to 15 of a training loop, counted from the start of this process.

    The trace is written to `<output_dir>/plugins/profile/<time>/`, where TensorBoard's profile tab finds it.

    Args:
        output_dir: str.
        is_on: bool. If False, nothing is traced.
    """

    def __init__(self, output_dir, is_on):
        self._output_dir, self._is_on, self._done = output_dir, is_on, 0

    def before_step(self):
        """Starts or stops the trace; must be called before each step."""
        if self._is_on and self._done == _STEPS_BEFORE:
            tf.profiler.experimental.start(self._output_dir)
        elif self._is_on and self._done == _STEPS_BEFORE + _TRACED_STEPS:
            self._stop()
        self._done += 1

    def _stop(self):
        self._is_on = False
        tf.profiler.experimental.stop()
        LOGGER.info(
            f"profile of {self._done - _STEPS_BEFORE} steps: {self._output_dir}/plugins/profile "
            "(to view: pip install tensorboard tensorboard-plugin-profile; tensorboard --logdir=<output_dir>)"
        )

    def __exit__(self, *_):
        if self._is_on and self._done > _STEPS_BEFORE:
            self._stop()
        elif self._is_on:
            LOGGER.warning(
                f"--profile: no trace was written, because tracing starts after {_STEPS_BEFORE} steps and only "
                f"{self._done} ran."
            )


class Compilations:
    """Logs the batch shapes for which XLA compiles a training step; without XLA, nothing is logged.

    Args:
        context: RunContext.
        train_step: TrainStep.
    """

    def __init__(self, context, train_step):
        self._context, self._train_step = context, train_step
        self._met = set()  # {(replica, shape)}, because each replica has a program per shape
        self._first = None

    def check(self):
        """Compiles a step for the first shape on every replica, to find out whether XLA can compile the model.

        Raises:
            UserError: if XLA cannot compile the model.
        """
        if not self._train_step.xla_compile:
            return
        batch = self._context.data.source.narrowest()
        shape, started = self._shape(batch), time.monotonic()
        waits = waiting("XLA compiles the training step for the first batch shape")
        with self._explaining(), kept_states(self._train_step.model), waits:
            self._train_step.compile_for(batch)
        self._met = {(replica, shape) for replica in range(self._train_step.replicas.count)}
        self._first = shape, time.monotonic() - started

    @contextlib.contextmanager
    def watched(self, step, batches):
        """Context manager that logs new batch shapes in a step, and the time of the step.

        Args:
            step: int, the number of the current step.
            batches: list of all batches of the step, dicts of features [rows, length] or [rows].

        Yields:
            bool, whether the step has new shapes.

        Raises:
            UserError: if XLA cannot compile the model for one of these shapes.
        """
        if self._first:
            self._say(step - 1, [self._first[0]], self._first[1])
            self._first = None
        shapes = [self._shape(batch) for batch in batches if self._train_step.xla_compile]
        met = {(i // self._train_step.accumulation, shape) for i, shape in enumerate(shapes)}
        new = sorted({shape for _, shape in met - self._met})
        started = time.monotonic()
        with self._explaining() if new else contextlib.nullcontext():
            yield bool(new)
        self._met |= met
        if new:
            self._say(step, new, time.monotonic() - started)

    def _shape(self, batch):
        """Returns the number of rows of a batch and the width of each feature (1 for a feature with one id per row)."""
        ids = [batch[feature] for feature in self._train_step.features]
        return len(ids[0]), *(math.prod(one.shape[1:]) for one in ids)

    def _say(self, step, shapes, seconds):
        shapes = ", ".join(map(shape_text, shapes))
        axes = " x ".join(["rows", *self._train_step.features])
        LOGGER.info(f"step {step:,}: XLA compiled {shapes} ({axes}) in {seconds:.1f} s")
        self._context.log.write("compile", step, shapes=shapes, seconds=round(seconds, 3))

    @contextlib.contextmanager
    def _explaining(self):
        try:
            yield
        except _NOT_COMPILED as error:
            kinds = sorted(set(re.findall(r"No registered '(\w+)' OpKernel", error.message)))
            lines = (line.strip() for line in re.sub(r"\{\{.*?\}\}", "", error.message).splitlines())
            message = next(
                (line.rstrip(".") for line in lines if line and not _TRACEBACK.match(line)), "XLA gives no reason"
            )
            reason = f"XLA does not support {', '.join(kinds)}" if kinds else message
            node = re.search(r"\{\{node (\S+?)\}\}", error.message)
            reason += f" (at {node[1]})" if node else ""
            raise UserError(
                f"--xla_compile: XLA cannot compile the model {self._context.config['model']}: {reason}. Train with "
                "--noxla_compile, or change the model."
            ) from error
