"""The models that `benchmarks/extras/universal/digits.py` compares have the same number of weights."""

import pytest

from benchmarks.extras.universal import digits
from tests.benchmarks.weights import weights_of

RANDOM_POSITIONS = "universal_transformer_position_random_timing_tiny"


@pytest.mark.slow
@pytest.mark.parametrize("side", digits.SETS)
def test_models_for_digits_have_as_many_weights(side):
    adaptive = "adaptive_" if side == "adaptive" else ""
    hparams = f"{digits.SHARED},{digits.SETS[side]}"
    assert weights_of("universal_transformer", adaptive + RANDOM_POSITIONS, hparams, 13) == pytest.approx(
        0.46e6, rel=0.03
    )
