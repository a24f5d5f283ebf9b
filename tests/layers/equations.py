"""The paper's equations written plainly in NumPy, to compare layers with."""

import math

import numpy as np
from keras import ops


def array(tensor):
    return ops.convert_to_numpy(tensor)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalized(x, epsilon=1e-5):
    """Equation 4 of Ba et al. 2016, with gain 1 and bias 0."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)


def gelu(x):
    """x Φ(x), not its approximation by tanh (Hendrycks and Gimpel 2016)."""
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def attention_in_numpy(layer, query, value, visible, key=None):
    """MultiHead(Q, K, V) of section 3.2.2, head by head; `visible`: bool, of shape [B, T, S] or [B, h, T, S]."""
    heads, outputs, key = layer.num_heads, [], value if key is None else key
    wq, wk, wv = (array(getattr(layer, f"{role}_projection").kernel) for role in ("query", "key", "value"))
    for i in range(heads):
        k_columns = slice(i * layer.query_size, (i + 1) * layer.query_size)
        v_columns = slice(i * layer.value_size, (i + 1) * layer.value_size)
        q, k, v = query @ wq[:, k_columns], key @ wk[:, k_columns], value @ wv[:, v_columns]
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(layer.query_size)
        seen = visible[:, i] if np.ndim(visible) == 4 else visible
        outputs.append(softmax(np.where(seen, scores, -np.inf)) @ v)
    return np.concatenate(outputs, -1) @ array(layer.output_projection.kernel)
