"""Counts steps whose loss or gradient was not finite, and ends the run after too many in a row."""

import io
import logging
import os

import numpy as np
import tensorflow as tf

from t2t_lite.errors import Failure
from t2t_lite.files import write_bytes
from t2t_lite.training.optimization.loss_scale import is_to_blame

_LOGGER = logging.getLogger("t2t_lite")


class SkippedSteps:
    """Watches the results of steps.

    Args:
        output_dir: str, folder where the last step's batches and the run's state are saved for study.
        log: RunLog.
        most: int, the number of such steps in a row that is tolerated.
        save_state: function of (step, StepBatches, path without suffix) that writes a checkpoint there, of the state as
            it was after that step; None: another machine saves.

    Attributes:
        in_a_row: int, how many of the last steps were skipped, not counting those for which the loss scale, which has
            been lowered since, may be to blame.
    """

    def __init__(self, output_dir, log, most, save_state):
        self._output_dir = output_dir
        self._log = log
        self._most = most
        self._save_state = save_state
        self.in_a_row = 0

    def watch(self, step, batches, metrics):
        """Checks a step, given its number, StepBatches and metrics, as `progress.fetch` returns them.

        Raises:
            Failure: there were too many; the message names the folder with the batches and the state of the run.
        """
        if not metrics["skipped"]:
            self.in_a_row = 0
            return
        scale = {name: value for name, value in metrics.items() if name == "loss_scale"}
        self._log.write("skipped", step, objective=str(metrics["objective"]["targets"]), **scale)
        if scale and is_to_blame(scale["loss_scale"]):
            _LOGGER.info(
                f"step {step:,}: the loss or its gradient overflows float16 at loss scale {scale['loss_scale']:,.0f}; "
                "the step is skipped and the scale is halved."
            )
            return
        self.in_a_row += 1
        _LOGGER.warning(f"step {step:,}: the loss or its gradient is not finite; the step is skipped.")
        if self.in_a_row < self._most:
            return
        folder = os.path.join(self._output_dir, f"not-finite-step-{step}")
        if self._save_state:
            self._save(folder, step, batches)
        raise Failure(
            f"the loss or its gradient was not finite for {self.in_a_row} steps in a row, up to step {step}. Its "
            f"batches and the state of the run are in {folder}. Lower learning_rate_constant, raise "
            f"learning_rate_warmup_steps{', set dtype_policy=mixed_bfloat16' if scale else ''} or set clip_grad_norm, "
            "and start again from an earlier checkpoint."
        )

    def _save(self, folder, step, batches):
        arrays = {f"{key}_{i}": ids for i, batch in enumerate(batches.batches) for key, ids in batch.items()}
        packed = io.BytesIO()  # savez seeks, which remote files do not support
        np.savez(packed, **arrays)
        tf.io.gfile.makedirs(folder)
        write_bytes(os.path.join(folder, "batches.npz"), packed.getvalue())
        self._save_state(step, batches, os.path.join(folder, f"model.ckpt-{step}"))
