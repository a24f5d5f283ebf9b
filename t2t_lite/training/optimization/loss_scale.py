"""Dynamic loss scaling: keeps small gradients from vanishing in float16 (Micikevicius et al. 2018, section 3.2)."""

import keras
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import LOSS_SCALE


def make_loss_scale(hparams):
    """Returns the LossScale of a run, or None if the dtype policy does not compute in float16.

    Args:
        hparams: HParams: dtype_policy, mixed_precision_optimizer_init_loss_scale and loss_scale_growth_steps are used.

    Raises:
        UserError: the policy stores weights in float16.
    """
    policy = keras.DTypePolicy(hparams.dtype_policy)
    if policy.compute_dtype != "float16":
        return None
    if policy.variable_dtype == "float16":
        raise UserError(
            f"dtype_policy={policy.name}: most updates are too small to change weights in float16. "
            "Expected mixed_float16, which computes in float16 and keeps weights in float32."
        )
    return LossScale(hparams.mixed_precision_optimizer_init_loss_scale, hparams.loss_scale_growth_steps)


def is_to_blame(scale):
    """Returns whether a lower scale may help after a non-finite step; takes a number or a tensor."""
    return scale > LOSS_SCALE.least


class LossScale(tf.Module):
    """The factor of the loss before the backward pass, by which gradients are divided afterwards.

    It follows the rule of `keras.optimizers.LossScaleOptimizer` and `torch.amp.GradScaler`: it is halved after a step
    whose loss or gradient is not finite, and doubled after `growth_steps` finite ones. Keras' class cannot be used,
    because each replica would decide by its own gradients.

    Args:
        initial: float, the first scale. Powers of 2 change only the exponents of gradients.
        growth_steps: int.

    Attributes:
        value: tf.Variable, float32 [], in the range `LOSS_SCALE`.
        good_steps: tf.Variable, int64 [], since the scale was last changed.
    """

    def __init__(self, initial, growth_steps):
        super().__init__()
        self.growth_steps = growth_steps
        self.value = tf.Variable(initial, dtype=tf.float32, trainable=False)
        self.good_steps = tf.Variable(0, dtype=tf.int64, trainable=False)

    def update(self, skipped, frozen=False):
        """Updates the scale after a step.

        Args:
            skipped: bool [], the same on all replicas.
            frozen: bool [], True: nothing changes.
        """
        good_steps = tf.where(skipped, tf.zeros_like(self.good_steps), self.good_steps + 1)
        grows = good_steps >= self.growth_steps
        factor = tf.where(skipped, 0.5, tf.where(grows, 2.0, 1.0))
        scale = tf.clip_by_value(self.value * factor, LOSS_SCALE.least, LOSS_SCALE.most)
        good_steps = tf.where(grows, tf.zeros_like(good_steps), good_steps)
        self.value.assign(tf.where(frozen, self.value, scale))
        self.good_steps.assign(tf.where(frozen, self.good_steps, good_steps))
