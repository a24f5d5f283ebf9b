"""Rows of the table of layers: those of the Universal Transformer."""

from t2t_lite import layers
from tests.layers.harness import Row


def _universal():
    parts = {"signals": lambda: layers.StepSignals(2), "halting": layers.AdaptiveComputation}
    return Row(
        layers.UniversalStack,
        {"layers": [lambda: layers.TransformerEncoderLayer(2, 16, name="encoder")], "num_steps": 2, **parts},
    )


ROWS = {
    "AdaptiveComputation": Row(layers.AdaptiveComputation, {}, matrices=False),
    "StepSignals": Row(layers.StepSignals, {"num_steps": 3}, matrices=False),
    "UniversalStack": _universal(),
}
