"""What layers of two streams cost, and count: queries, too."""

import pytest

from t2t_lite.extras.xlnet.xlnet import XLNet
from tests.layers.equations import array
from tests.models.costly import INPUTS, check_costs, layers_of

BATCH = {"inputs": INPUTS, "targets": INPUTS * (INPUTS > 5)}


@pytest.mark.slow
def test_costs_are_of_the_positions_of_their_features():
    check_costs(XLNet, {}, BATCH)


@pytest.mark.slow
def test_experts_count_the_queries_of_a_second_stream():
    pytest.importorskip("t2t_lite.extras.experts")
    experts = {"type": "local_moe", "num_experts": 3, "k": 2}
    model = XLNet(12, **layers_of(XLNet), feed_forward=experts)
    outputs = model(BATCH, training=True)
    positions = (INPUTS != 0).sum() + len(INPUTS) + (INPUTS > 5).sum()  # each row has a last one
    for use in outputs["shares"]["expert_use"]["inputs"]:
        assert array(use).sum() == 2 * positions
