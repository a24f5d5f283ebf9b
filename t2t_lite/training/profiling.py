"""A trace of some steps, for TensorBoard's profiler (tensor2tensor: --profile, --dbgprofile)."""

import contextlib
import logging

import tensorflow as tf

_LOGGER = logging.getLogger("t2t_lite")
_FIRST = 10  # steps before the trace, for tracing and compilation
_STEPS = 5


class StepProfiler(contextlib.AbstractContextManager):
    """Context manager of a training loop that traces steps 11 to 15 of this process.

    The trace goes to `<output_dir>/plugins/profile/<time>/`, where TensorBoard's profile tab finds it.

    Args:
        output_dir: str.
        is_on: bool; False: it does nothing.
    """

    def __init__(self, output_dir, is_on):
        self._output_dir = output_dir
        self._done = 0 if is_on else None
        self._is_tracing = False

    def before_step(self):
        """Call it before each step."""
        if self._done is None:
            return
        if self._done == _FIRST:
            tf.profiler.experimental.start(self._output_dir)
            self._is_tracing = True
        elif self._done == _FIRST + _STEPS:
            self._stop()
            self._done = None
            return
        self._done += 1

    def _stop(self):
        self._is_tracing = False
        tf.profiler.experimental.stop()
        _LOGGER.info(
            f"profile of {self._done - _FIRST} steps: {self._output_dir}/plugins/profile "
            "(pip install tensorboard-plugin-profile; tensorboard --logdir of this output_dir)"
        )

    def __exit__(self, *_):
        if self._is_tracing:
            self._stop()
        elif self._done is not None:
            _LOGGER.warning(f"--profile: no trace, since it begins after {_FIRST} steps and these were {self._done}.")
