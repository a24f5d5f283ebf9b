"""Adaptive computation time, whose steps are followed by hand; test_universal_stack.py has tensor2tensor's loop."""

import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.extras.universal.adaptive_computation import Ponder
from tests.layers.equations import array

STATES = np.random.default_rng(0).normal(size=(3, 6, 8)).astype("float32")


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
