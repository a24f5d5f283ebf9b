"""Transformer-XL's score, written as loops."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.extras.memory.memory import MemoryScore
from tests.layers.equations import array, softmax

X = np.random.default_rng(0).normal(size=(2, 9, 8)).astype("float32")


def attention(**options):
    """A layer with weights of the size of the inputs, so that a wrong row shows."""
    layer = layers.MultiHeadAttention(2, score={"type": "memory", **options})
    layer.build((None, None, 8))
    rng = np.random.default_rng(1)
    layer.set_weights([rng.normal(size=weight.shape) / 2 for weight in layer.weights])
    return layer


@pytest.mark.parametrize("clamp_length", [0, np.int64(3)])
def test_the_score_of_transformer_xl(clamp_length):
    """Equation of section 3.3 with a vector for every pair, states of a memory in front."""
    layer = attention(clamp_length=clamp_length)
    kernels = {role: array(getattr(layer, f"{role}_projection").kernel) for role in ("query", "key", "position")}
    heads = {role: (X[0] @ kernels[role]).reshape(9, 2, 4) for role in ("query", "key")}
    u, v = array(layer.content_bias), array(layer.position_bias)
    scores = np.full((2, 5, 9), -np.inf)
    for i in range(4, 9):
        for j in range(i + 1):
            angles = min(i - j, clamp_length or 9) * 10000.0 ** (-np.arange(0, 8, 2) / 8)
            r = (np.concatenate([np.sin(angles), np.cos(angles)]) @ kernels["position"]).reshape(2, 4)
            for h in range(2):
                q = heads["query"][i, h]
                scores[h, i - 4, j] = ((q + u[h]) @ heads["key"][j, h] + (q + v[h]) @ r[h]) / 2
    context = layers.Context(ops.convert_to_tensor(X[:1, :4]))
    _, weights = layer(X[:1, 4:9], use_causal_mask=True, context=context, return_attention_scores=True)
    np.testing.assert_allclose(array(weights)[0], softmax(scores), atol=1e-6)


def test_sinusoids_are_dropped_at_their_own_rate():
    def rates(layer):
        found = [array(layer(X, use_causal_mask=True, training=training)) for training in (True, False)]
        return np.abs(found[0] - found[1]).max()

    assert rates(attention(position_dropout=0.5)) > 0.01 and rates(attention()) < 1e-6


def test_weights_begin_as_the_authors_and_settings_as_the_arguments():
    keras.utils.set_random_seed(0)
    layer = layers.MultiHeadAttention(20, score="memory")
    layer.build((None, None, 800))
    for weight in (layer.content_bias, layer.position_bias):
        assert array(weight).std() == pytest.approx(0.02, rel=0.15) and weight.shape == (20, 40)
    assert not layer.position_projection.use_bias
    defaults = {field.metadata["argument"]: field.default for field in MemoryScore.HPARAMS.values()}
    assert defaults == {"self_attention.clamp_length": 0, "self_attention.position_dropout": 0.0}
    assert (layer.score.clamp_length, layer.score.position_dropout) == (0, 0.0)
    assert layer.score.extra_memory(layer, 7, 2) == 20 * (2 * 7 + 40) * 2
    assert layer.score.extra_flops(layer, 7) == 2 * (2 * 7) * 20 * 40


@pytest.mark.parametrize("options", [{"clamp_length": -1}, {"clamp_length": 1.5}, {"position_dropout": 1.0}])
def test_bad_options(options):
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=f"{name}.*{value}"):
        attention(**options)
