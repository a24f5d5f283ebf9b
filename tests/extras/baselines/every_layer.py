"""Rows of the table of layers: a convolution."""

from t2t_lite import layers
from tests.layers.harness import Row

ROWS = {"Convolution": Row(layers.Convolution, {"filters": 6, "kernel_size": 3})}
