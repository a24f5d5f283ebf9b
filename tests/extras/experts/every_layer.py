"""Rows of the table of layers: a mixture of experts."""

from t2t_lite import layers
from tests.layers.harness import Row

ROWS = {"MixtureOfExperts": Row(layers.MixtureOfExperts, {"filter_size": 16, "num_experts": 4}, matrices=False)}
