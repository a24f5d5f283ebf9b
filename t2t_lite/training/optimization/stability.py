"""Numerical stability: loss scaling for float16, and skipping steps whose loss or gradient is not finite."""

import io
import os

import keras
import numpy as np
import tensorflow as tf

from t2t_lite.errors import LOGGER, Failure, UserError
from t2t_lite.files import write_bytes
from t2t_lite.settings.ranges import LOSS_SCALE


def make_loss_scale(hparams):
    """Creates the LossScale of a run, or returns None if the dtype policy does not compute in float16.

    Args:
        hparams: HParams, of which dtype_policy, mixed_precision_optimizer_init_loss_scale and loss_scale_growth_steps
            are used.

    Raises:
        UserError: if the policy stores weights in float16.
    """
    policy = keras.DTypePolicy(hparams.dtype_policy)
    if policy.compute_dtype != "float16":
        return None
    if policy.variable_dtype == "float16":
        raise UserError(
            f"dtype_policy={policy.name}: most updates are too small to change float16 weights. "
            "Expected mixed_float16, which computes in float16 and stores weights in float32."
        )
    return LossScale(hparams.mixed_precision_optimizer_init_loss_scale, hparams.loss_scale_growth_steps)


def is_to_blame(scale):
    """Returns whether a lower loss scale may help after a non-finite step; `scale` is a number or a tensor."""
    return scale > LOSS_SCALE.least


class LossScale(tf.Module):
    """The loss scale: a factor that multiplies the loss before the backward pass, and divides the gradients after it.

    As in `keras.optimizers.LossScaleOptimizer` and `torch.amp.GradScaler`, the scale is halved after a step whose loss
    or gradient is not finite, and doubled after `growth_steps` finite steps. Keras' class cannot be used, because each
    replica would decide from its own gradients whether to skip a step.

    Args:
        initial: float, the initial scale. Powers of 2 only change the exponents of gradients.
        growth_steps: int, the number of finite steps after which the scale is doubled.

    Attributes:
        value: tf.Variable, float32 [], in the range `LOSS_SCALE`.
        good_steps: tf.Variable, int64 [], the number of finite steps since the scale last changed.
    """

    def __init__(self, initial, growth_steps):
        super().__init__()
        self.growth_steps = growth_steps
        self.value = tf.Variable(initial, dtype=tf.float32, trainable=False)
        self.good_steps = tf.Variable(0, dtype=tf.int64, trainable=False)

    def update(self, skipped, frozen=False):
        """Updates the scale after a step.

        Args:
            skipped: bool [], whether the step was skipped. Must be the same on all replicas.
            frozen: bool [], whether the scale stays as it is.
        """
        good_steps = tf.where(skipped, tf.zeros_like(self.good_steps), self.good_steps + 1)
        grows = good_steps >= self.growth_steps
        factor = tf.where(skipped, 0.5, tf.where(grows, 2.0, 1.0))
        scale = tf.clip_by_value(self.value * factor, LOSS_SCALE.least, LOSS_SCALE.most)
        good_steps = tf.where(grows, tf.zeros_like(good_steps), good_steps)
        self.value.assign(tf.where(frozen, self.value, scale))
        self.good_steps.assign(tf.where(frozen, self.good_steps, good_steps))


class SkippedSteps:
    """Counts the steps that were skipped because the loss or gradient was not finite, and ends the run after too many.

    Args:
        output_dir: str, the folder where the last step's batches and the run's state are saved for debugging.
        log: RunLog.
        most: int, the number of consecutive skipped steps after which the run ends.
        save_state: function of (step, StepBatches, path without suffix) that writes a checkpoint of the state after the
            step, or None if another machine writes it.

    Attributes:
        in_a_row: int, the number of consecutive skipped steps, not counting steps for which the loss scale may have
            been too high.
    """

    def __init__(self, output_dir, log, most, save_state):
        self._output_dir = output_dir
        self._log = log
        self._most = most
        self._save_state = save_state
        self.in_a_row = 0

    def watch(self, step, batches, metrics):
        """Checks a step, given its number, its StepBatches and its metrics from `progress.fetch`.

        Raises:
            Failure: if too many steps were skipped. The message names the folder with the batches and the state of the
                run.
        """
        if not metrics["skipped"]:
            self.in_a_row = 0
            return
        scale = {name: value for name, value in metrics.items() if name == "loss_scale"}
        self._log.write("skipped", step, objective=str(metrics["objective"]["targets"]), **scale)
        if scale and is_to_blame(scale["loss_scale"]):
            LOGGER.info(
                f"step {step:,}: the loss or its gradient overflows float16 at loss scale {scale['loss_scale']:,.0f}; "
                "the step is skipped and the scale is halved."
            )
            return
        self.in_a_row += 1
        LOGGER.warning(f"step {step:,}: the loss or its gradient is not finite; the step is skipped.")
        if self.in_a_row < self._most:
            return
        folder = os.path.join(self._output_dir, f"not-finite-step-{step}")
        if self._save_state:
            self._save(folder, step, batches)
        raise Failure(
            f"the loss or its gradient was not finite for {self.in_a_row} consecutive steps, up to step {step}. The "
            f"last step's batches and the state of the run are in {folder}. Lower learning_rate_constant, raise "
            f"learning_rate_warmup_steps{', set dtype_policy=mixed_bfloat16' if scale else ''} or set clip_grad_norm, "
            "and resume from an earlier checkpoint."
        )

    def _save(self, folder, step, batches):
        arrays = {f"{key}_{i}": ids for i, batch in enumerate(batches.batches) for key, ids in batch.items()}
        packed = io.BytesIO()  # `savez` must seek in its file, which is impossible in a remote file
        np.savez(packed, **arrays)
        tf.io.gfile.makedirs(folder)
        write_bytes(os.path.join(folder, "batches.npz"), packed.getvalue())
        self._save_state(step, batches, os.path.join(folder, f"model.ckpt-{step}"))
