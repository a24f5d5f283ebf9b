"""Adaptive computation time is tensor2tensor's loop, whose steps can be followed by hand."""

import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.extras.universal.adaptive_computation import Ponder
from tests.extras.universal.act_in_numpy import act_in_numpy
from tests.layers.equations import array

STATES = np.random.default_rng(0).normal(size=(3, 6, 8)).astype("float32")
MATRIX = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))[0].astype("float32")


def recurred(halting, states, num_steps, visible=None):
    """Returns (output, Ponder) of num_steps steps s ← s · MATRIX, with nothing added before them."""
    output, ponder = ops.zeros_like(states), Ponder.of(states)
    for _ in range(num_steps):
        p = halting(states)
        p = p if visible is None else halting.average(p, visible)
        weights, ponder = ponder.advanced(p, halting.threshold)
        states = ops.matmul(states, MATRIX)
        output = halting.mixed(output, states, weights)
    return array(output), ponder


@pytest.mark.parametrize("bias", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("act_type", ["basic", "accumulated", "global"])
def test_it_is_the_loop_of_tensor2tensor(act_type, bias):
    """With biases by which few positions halt before the last step, some, and most."""
    halting = layers.AdaptiveComputation(act_type, bias_init=bias)
    halting.build(STATES.shape)
    w, b = array(halting.gate.kernel)[:, 0], bias
    expected, steps, remainders, computed = act_in_numpy(STATES, lambda s: s @ MATRIX, lambda s, _: s, (w, b), act_type)
    output, ponder = recurred(halting, STATES, 4, np.ones((1, 1, 6), "bool") if act_type == "global" else None)
    np.testing.assert_allclose(output, expected, atol=1e-6)
    steps, remainders = (np.broadcast_to(x.reshape(3, -1), (3, 6)) for x in (steps, remainders))
    np.testing.assert_array_equal(array(ponder.steps), steps)
    np.testing.assert_allclose(array(ponder.remainder), remainders, atol=3e-7)
    assert computed <= 4 and (bias > 0 or act_type == "global" or len(np.unique(steps)) > 1)


def test_three_positions_by_hand():
    """One halts at once, one in its second step, one only because the third step is the last."""
    ponder, weights = Ponder.of(np.zeros((1, 3, 8), "float32")), []
    for p in ([0.995, 0.75, 0.25], [0.5, 0.75, 0.25], [0.5, 0.5, 0.25]):
        found, ponder = ponder.advanced(ops.convert_to_tensor([p], "float32"), 0.99)
        weights.append(array(found)[0].tolist())
    assert weights == [[1.0, 0.75, 0.25], [0.0, 0.25, 0.25], [0.0, 0.0, 0.25]]
    assert array(ponder.steps).tolist() == [[1.0, 2.0, 3.0]]
    assert array(ponder.remainder).tolist() == [[1.0, 0.25, 0.0]]
    assert array(ponder.probability).tolist() == [[1.0, 1.0, 0.75]]
    assert array(ponder.cost).tolist() == [[2.0, 2.25, 3.0]]
    # A running average, whose weights are w_n · Π (1 - w_m) over later steps m, and Graves' sum.
    states = np.array([4.0, 8.0, 16.0], "float32")
    for act_type, expected in (("basic", [4.0, 4.25, 4 * 0.140625 + 8 * 0.1875 + 4]), ("accumulated", [4.0, 5.0, 7.0])):
        halting, output = layers.AdaptiveComputation(act_type), ops.zeros((1, 3, 1))
        for state, weight in zip(states, weights, strict=True):
            output = halting.mixed(output, ops.full((1, 3, 1), state), ops.convert_to_tensor([weight], "float32"))
        assert array(output)[0, :, 0].tolist() == expected


def test_a_global_average_is_of_what_each_position_sees():
    p = np.array([[0.1, 0.3, 0.8]], "float32")
    halting = layers.AdaptiveComputation("global")
    padded = np.array([[[True, True, False]]])
    np.testing.assert_allclose(array(halting.average(p, padded)), [[0.2]])
    causal = np.tri(3, dtype=bool)[None]
    np.testing.assert_allclose(array(halting.average(p, causal)), [[0.1, 0.2, 0.4]], atol=1e-6)


def test_probabilities_are_float32_in_half_precision():
    halting = layers.AdaptiveComputation(dtype="mixed_bfloat16")
    p = halting(ops.cast(STATES, "bfloat16"))
    assert "float32" in str(p.dtype)
    states, (weights, _) = ops.cast(STATES, "bfloat16"), Ponder.of(STATES).advanced(p, halting.threshold)
    assert "bfloat16" in str(halting.mixed(ops.zeros_like(states), states, weights).dtype)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"act_type": "random"}, "`act_type`.*basic, accumulated, global.*'random'"),
        ({"epsilon": 1.0}, "`epsilon`"),
        ({"cost_weight": -0.1}, "`cost_weight`"),
        ({"bias_init": "one"}, "`bias_init`.*'one'"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        layers.AdaptiveComputation(**arguments)


def test_defaults_are_those_of_tensor2tensor():
    halting = layers.AdaptiveComputation()
    halting.build(STATES.shape)
    assert (halting.act_type, halting.threshold, halting.cost_weight) == ("basic", 0.99, 0.01)
    assert array(halting.gate.bias).tolist() == [1.0] and halting.has_costs
    assert not layers.AdaptiveComputation(cost_weight=0).has_costs
