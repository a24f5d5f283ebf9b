"""Rows of the table of layers: XLNet's attention."""

from t2t_lite import layers
from tests.layers.harness import Row

ROWS = {"SegmentAttention": Row(layers.SegmentAttention, {"num_heads": 2, "clamp_length": 3})}
