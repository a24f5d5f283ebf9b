"""Systems that are compared by training them: their settings are known, and they have the weights that are claimed."""

import pytest

from benchmarks import table2
from t2t_lite import registry
from tests.benchmarks.weights import weights_of


@pytest.mark.slow
@pytest.mark.parametrize("side", sorted(table2.SYSTEMS.keys() & {*registry.list_models()}))
def test_systems_of_table_2_have_about_as_many_weights(side):
    system = table2.SYSTEMS[side]
    found = weights_of(side, system.hparams_set, f"{table2.SHARED},{system.hparams}", 8_000)
    assert found == pytest.approx(3.5e6 if side == "transformer_moe" else 2.3e6, rel=0.06)
