"""Transformer-XL's score, written as loops."""

import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.equations import array, softmax
from tests.layers.patterns import X, made


@pytest.mark.parametrize("clamp_length", [0, 3])
def test_the_score_of_transformer_xl(clamp_length):
    """Equation of section 3.3 with a vector for every pair, states of a memory in front."""
    layer = made(("full", ()), {"type": "memory", "clamp_length": clamp_length})
    kernels = {role: array(getattr(layer, f"{role}_projection").kernel) for role in ("query", "key", "position")}
    heads = {role: (X[0, :9] @ kernels[role]).reshape(9, 4, 3) for role in ("query", "key")}
    u, v = array(layer.content_bias), array(layer.position_bias)
    scores = np.full((4, 5, 9), -np.inf)
    for i in range(4, 9):
        for j in range(i + 1):
            angles = min(i - j, clamp_length or 9) * 10000.0 ** (-np.arange(0, 8, 2) / 8)
            r = (np.concatenate([np.sin(angles), np.cos(angles)]) @ kernels["position"]).reshape(4, 3)
            for h in range(4):
                q = heads["query"][i, h]
                scores[h, i - 4, j] = ((q + u[h]) @ heads["key"][j, h] + (q + v[h]) @ r[h]) / np.sqrt(3)
    context = layers.Context(ops.convert_to_tensor(X[:1, :4]))
    _, weights = layer(X[:1, 4:9], use_causal_mask=True, context=context, return_attention_scores=True)
    np.testing.assert_allclose(array(weights)[0], softmax(scores), atol=1e-6)
