"""Adaptive computation time: each position decides after how many steps it halts (Graves 2016).

Mirrors `universal_transformer_act` of tensor2tensor's models/research/universal_transformer_util.py.
"""

import numbers
from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_lite.layers.base import GLOROT, Initializer, Layer, own_initializer
from t2t_lite.layers.checks import check_choices, check_positive, check_rates, shape_of
from t2t_lite.layers.dense import Dense

ACT_TYPES = ("basic", "accumulated", "global")


class Ponder(NamedTuple):
    """The halting state of each position.

    Attributes:
        probability: float32 [B, T], the sum of the halting probabilities; 1 once the position has halted.
        remainder: float32 [B, T], 1 minus the sum of the halting probabilities before the step in which the position
            halted; 0 if it has not halted.
        steps: float32 [B, T], the number of steps in which the position was running.
    """

    probability: Any
    remainder: Any
    steps: Any

    @classmethod
    def of(cls, inputs):
        """Returns the state before the first step, for inputs [B, T, hidden]."""
        zeros = ops.zeros(shape_of(inputs)[:2], "float32")
        return cls(zeros, zeros, zeros)

    def advanced(self, p, threshold):
        """Advances the halting state by one step, given the step's halting probabilities.

        Args:
            p: float32 [B, T].
            threshold: float, 1 - ε; a position halts when its sum of probabilities would exceed the threshold.

        Returns:
            (weights, new Ponder). The weights, float32 [B, T], are for the state that this step computes; they are 0
            where a position had already halted.
        """

        def where(condition):
            return ops.cast(condition, "float32")

        running = where(self.probability < 1.0)
        total = self.probability + p * running
        halting, running = where(total > threshold) * running, where(total <= threshold) * running
        probability = self.probability + p * running
        remainder = self.remainder + halting * (1.0 - probability)
        probability = probability + halting * remainder
        return p * running + halting * remainder, Ponder(probability, remainder, self.steps + running + halting)

    @property
    def cost(self):
        """Graves' ponder cost, float32 [B, T]: the number of steps plus the remainder."""
        return self.steps + self.remainder


class _Gate(Dense):
    """A dense layer that keeps float weights in a quantized model, because sums near 1 - ε need the precision."""

    def quantize(self, mode=None, type_check=True, config=None):
        """Does nothing: the layer keeps its float weights."""


@keras.saving.register_keras_serializable("t2t_lite")
class AdaptiveComputation(Layer):
    """Computes the halting probabilities σ(w·s + b) of states [B, T, hidden], and combines states into the output.

    With "basic", the output is a running average, w_n s_n + (1 - w_n) out_{n-1}, in which the weights of the states do
    not sum to 1. With "accumulated", the output is Graves' sum of w_n s_n; its weights sum to 1 unless a position has
    not halted by the last step. With "global", the output is the same as with "basic", but all positions of a row halt
    together: see `average`.

    Args:
        act_type: "basic", "accumulated" or "global".
        epsilon: float in [0, 1): a position halts once its probabilities sum to more than 1 - ε.
        bias_init: float, initial value of b.
        cost_weight: float, weight of the ponder cost in the loss; 0 means no cost.
        kernel_initializer: initializer of w, see `keras.layers.Dense`.

    Raises:
        ValueError: `act_type` is unknown, or `epsilon` or `cost_weight` is out of its range.
    """

    def __init__(
        self,
        act_type: str = "basic",
        epsilon: float = 0.01,
        bias_init: float = 1.0,
        cost_weight: float = 0.01,
        kernel_initializer: Initializer = GLOROT,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_choices(ACT_TYPES, act_type=act_type)
        check_rates(epsilon=epsilon)
        if cost_weight != 0:
            check_positive(cost_weight=cost_weight)
        if not isinstance(bias_init, numbers.Real):
            raise ValueError(f"`bias_init` must be a number: received bias_init={bias_init!r}.")
        self.act_type = act_type
        self.is_global = act_type == "global"  # all positions of a row halt together
        self.threshold = 1.0 - epsilon
        self.cost_weight = cost_weight
        # The gate computes in the dtype of its weights, because sums near 1 - ε would be too coarse in 16 bits.
        initializers = {
            "kernel_initializer": own_initializer(kernel_initializer),
            "bias_initializer": keras.initializers.Constant(bias_init),
        }
        self.gate = _Gate(1, **initializers, dtype=self.variable_dtype, name="gate")
        self.input_spec = keras.InputSpec(ndim=3)

    @property
    def has_costs(self):
        """Whether the ponder cost is part of the loss."""
        return self.cost_weight != 0

    def build(self, input_shape):
        """Creates the weights w and b of the gate."""
        self.require_size(input_shape)
        self.gate.build(input_shape)

    def call(self, inputs):
        """Returns the halting probabilities, float32 [B, T], of states [B, T, hidden]."""
        return ops.cast(ops.sigmoid(self.gate(inputs))[..., 0], "float32")

    def compute_output_spec(self, inputs):
        """Returns the symbolic output, which is float32 under any dtype policy."""
        return keras.KerasTensor(inputs.shape[:-1], dtype="float32")

    def compute_output_shape(self, input_shape):
        """Returns the shape [B, T] of the halting probabilities."""
        return input_shape[:-1]

    def average(self, p, visible):
        """Returns the mean probability over the positions that each position sees, for "global".

        tensor2tensor averages the probabilities over the whole width of the batch. Here the average leaves out padding
        and positions that attention does not see. A row therefore does not depend on other rows, and a prediction
        does not depend on later targets.

        Args:
            p: float32 [B, S].
            visible: bool, broadcastable to [B, T, S].

        Returns:
            float32 [B, T].
        """
        seen = ops.cast(visible, "float32") * ops.expand_dims(ops.ones_like(p), 1)
        return ops.sum(seen * ops.expand_dims(p, 1), axis=-1) / ops.maximum(ops.sum(seen, axis=-1), 1.0)

    def mixed(self, output, state, weights):
        """Mixes a step's state into the previous output, both [B, T, hidden], using the state's weights [B, T]."""
        weights = ops.cast(ops.expand_dims(weights, -1), state.dtype)
        return state * weights + (output if self.act_type == "accumulated" else output * (1.0 - weights))
