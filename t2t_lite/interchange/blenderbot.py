"""Converts weights to and from Hugging Face's Blenderbot, a pre-norm Transformer; layouts are as in marian.py.

Blenderbot's positions are a table, which can represent any of ours. Its epsilon is always 1e-5. A pre-norm Transformer
reads the hidden features only through normalizations, and if the features are multiplied by c,

    (c·x - mean) / √(c²·variance + 1e-5) = (x - mean) / √(variance + 1e-5 / c²).

Therefore everything that is added to the features (embeddings, positions, outputs of sub-layers) is stored multiplied
by c = √(1e-5 / epsilon), and the outputs of the last normalization are divided by c, since the softmax multiplies them
by the embeddings. The result is the same as that of our model with its own epsilon.
"""

import numpy as np
from keras import ops

from t2t_lite.interchange import marian
from t2t_lite.layers import SinusoidalPositionEmbedding
from t2t_lite.layers.position_embedding import LAYOUTS

EPSILON = 1e-5
# Rows of a table of sinusoids: the maximum input length in pieces.
SINUSOIDS = 1024
_POSITIONS = "model.{}.embed_positions.weight"


def blenderbot_state(model):
    """Returns {name in BlenderbotForConditionalGeneration's state dict: float32 array} of a Transformer.

    The caller has checked that Blenderbot can represent it. Padding's row and logit bias are as in `marian_state`.
    """
    config = model.config
    scale = stream_scale(config["norm_epsilon"])
    shared = marian.rows(model.input_embedding)
    shared[0] = 0
    state = {"model.shared.weight": shared * scale, "final_logits_bias": marian.logits_bias(model)}
    for side, layer in (("encoder", model.encoder_position), ("decoder", model.decoder_position)):
        table = _table(layer, config)
        if side == "encoder" and config["target_space_embedding"]:
            table = table + np.array(ops.convert_to_numpy(model.target_space), "float32")
        state[_POSITIONS.format(side)] = table * scale
    for part, factor in _scaled_parts(model, scale):
        state[part.name] = np.ascontiguousarray((part.value() * factor).T)
    return state


def fill(model, take, scale):
    """Sets the weights of a Transformer from a Blenderbot, except embeddings, positions and softmax.

    Args:
        model: Transformer, built, pre-norm, with attention's biases.
        take: function of (name, shape) that returns the tensor of that name, an array of that shape.
        scale: float32, see `positions_of`.
    """
    for part, factor in _scaled_parts(model, scale):
        variable = getattr(part.owner, part.attribute)
        variable.assign(divided(take(part.name, tuple(reversed(variable.shape))).T, factor))


def stream_scale(epsilon):
    """Returns c, float32, by which the hidden features are multiplied in Blenderbot."""
    return np.float32((EPSILON / epsilon) ** 0.5)


def positions_of(take, shape):
    """Returns (layout, epsilon, c) if a Blenderbot's tables are sinusoids, otherwise None.

    Args:
        take: function of (name, shape) that returns the tensor of that name, an array of that shape.
        shape: (rows, hidden) of each table.
    """
    tables = [take(_POSITIONS.format(side), shape) for side in ("encoder", "decoder")]
    if not np.array_equal(*tables) or shape[1] % 2:
        return None
    scale = tables[0][0].max()  # at position 0 all sines are 0, all cosines 1
    if not 3e-3 < scale < 1e4:  # of epsilons from 1 down
        return None
    exact = EPSILON / float(scale) ** 2
    epsilon = next(value for value in (float(f"{exact:.6g}"), exact) if np.isclose(stream_scale(value), scale, 1e-6, 0))
    for layout in LAYOUTS:
        if np.allclose(tables[0] / scale, _sinusoids(layout, *shape), rtol=0, atol=1e-5):
            return layout, epsilon, scale
    return None


def fill_positions(model, take):
    """Copies a Blenderbot's tables to a Transformer with learned positions."""
    for side, layer in (("encoder", model.encoder_position), ("decoder", model.decoder_position)):
        layer.table.assign(take(_POSITIONS.format(side), tuple(layer.table.shape)))


def divided(array, scale):
    """Divides by `scale` such that multiplying the float32 result by `scale` gives `array` exactly where possible."""
    found = array / scale
    for neighbour in (np.float32(np.inf), np.float32(-np.inf)):
        other = np.nextafter(found, neighbour)
        found = np.where((found * scale != array) & (other * scale == array), other, found)
    return found


def _scaled_parts(model, scale):
    """Yields (Part, factor by which its weight is stored)."""
    for part in marian.parts(model):
        yield part, scale if part.is_added else np.float32(1)
    for side, norm, factor in (
        ("encoder", model.encoder_norm, np.float32(1)),
        ("decoder", model.decoder_norm, 1 / scale),
    ):
        for part in marian.norm_parts(f"model.{side}.layer_norm", norm):
            yield part, factor


def _table(layer, config):
    """float32 [positions, hidden]."""
    if config["position"] == "learned":
        return marian.rows(layer, "table")
    if config["position"] == "none":
        return np.zeros((SINUSOIDS, config["hidden_size"]), "float32")
    return _sinusoids(config["position_layout"], SINUSOIDS, config["hidden_size"])


def _sinusoids(layout, length, hidden_size):
    layer = SinusoidalPositionEmbedding(layout, dtype="float32")
    layer.build((None, None, hidden_size))
    return np.array(ops.convert_to_numpy(layer.encode(ops.arange(length))), "float32")
