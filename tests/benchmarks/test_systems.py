"""Systems that are compared by training them: their settings are known, and they have the weights that are claimed."""

import math

import pytest

from benchmarks import digits, table2
from t2t_lite import registry
from t2t_lite.models.fine_tuning import parameters
from t2t_lite.models.shapes_only import shapes_only

RANDOM_POSITIONS = "universal_transformer_position_random_timing_tiny"


def weights_of(model, hparams_set, hparams, vocab_size):
    """Returns how many weights a model has."""
    found = registry.hparams(hparams_set).of_model(registry.model(model)).parse(hparams)
    return sum(math.prod(weight.shape) for weight in parameters(shapes_only(registry.model(model), found, vocab_size)))


@pytest.mark.slow
@pytest.mark.parametrize("side", table2.SYSTEMS)
def test_systems_of_table_2_have_about_as_many_weights(side):
    system = table2.SYSTEMS[side]
    found = weights_of(side, system.hparams_set, f"{table2.SHARED},{system.hparams}", 8_000)
    assert found == pytest.approx(3.5e6 if side == "transformer_moe" else 2.3e6, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("side", digits.SETS)
def test_models_for_digits_have_as_many_weights(side):
    adaptive = "adaptive_" if side == "adaptive" else ""
    hparams = f"{digits.SHARED},{digits.SETS[side]}"
    assert weights_of("universal_transformer", adaptive + RANDOM_POSITIONS, hparams, 13) == pytest.approx(
        0.46e6, rel=0.03
    )
