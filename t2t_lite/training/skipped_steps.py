"""Steps whose loss or gradient was not finite: counted, and too many in a row end the run."""

import io
import logging
import os

import numpy as np

from t2t_lite.data.files import write_bytes
from t2t_lite.errors import Failure

_LOGGER = logging.getLogger("t2t_lite")


class SkippedSteps:
    """Watches the results of steps.

    Args:
        output_dir: str, where the batches of the last step are kept for study.
        log: RunLog.
        most: int, steps in a row that are borne.
    """

    def __init__(self, output_dir, log, most):
        self._output_dir = output_dir
        self._log = log
        self._most = most
        self._in_a_row = 0

    def watch(self, step, batches, result):
        """Takes what `TrainStep` returned for a step.

        Raises:
            Failure: it was one too many; the message names the file with its batches.
        """
        if not float(result["skipped"]):
            self._in_a_row = 0
            return
        self._in_a_row += 1
        self._log.write("skipped", step, objective=str(float(result["objective"])))
        _LOGGER.warning(f"step {step:,}: the loss or its gradient is not finite; the step is skipped.")
        if self._in_a_row < self._most:
            return
        path = os.path.join(self._output_dir, f"not-finite-step-{step}.npz")
        arrays = {f"{key}_{i}": batch[key].numpy() for i, batch in enumerate(batches) for key in batch}
        packed = io.BytesIO()  # savez seeks, which remote files cannot
        np.savez(packed, **arrays)
        write_bytes(path, packed.getvalue())
        raise Failure(
            f"the loss or its gradient was not finite for {self._in_a_row} steps in a row, up to step {step}. The last "
            f"batch is in {path}. Lower learning_rate_constant, raise learning_rate_warmup_steps or set "
            "clip_grad_norm, and start again from an earlier checkpoint."
        )
