"""Refuses settings that do not match a checkpoint's size, before memory is allocated for the model."""

import math

from t2t_lite import registry
from t2t_lite.models.outputs import shapes_only
from t2t_lite.runs.run_config import hparams_of
from t2t_lite.runs.weights import check_fits, saved_shapes

_SLACK = 2**22  # numbers, 16 MiB
_LEAST_WEIGHTS_OF_A_LAYER = 12


def check_size(checkpoint, config, name="model"):
    """Raises `UserError` if `hparams.json` describes a model much larger than the checkpoint, or much deeper.

    Args:
        checkpoint: str, without suffix.
        config: dict, the contents of `hparams.json`.
        name: str, the model's name in the checkpoint.
    """
    shapes = saved_shapes(checkpoint, name)
    saved = sum(math.prod(shape) for shape in shapes.values())
    hparams = hparams_of(config)
    num_parameters, depth = _estimate(hparams, config)
    if num_parameters <= 2 * saved + _SLACK and depth * _LEAST_WEIGHTS_OF_A_LAYER <= len(shapes):
        return
    # Exact for any model, also with weights shared between layers, but as slow as building it, so it comes last.
    sizes = config["vocab_size"], config["target_vocab_size"]
    features = registry.problem(config["problem"]).features
    check_fits(checkpoint, shapes_only(registry.model(config["model"]), hparams, *sizes, features), name=name)


def _estimate(h, config):
    """Returns (approximate number of a Transformer's parameters, layers of its deeper stack) for these settings."""
    depths = h.num_encoder_layers or h.num_hidden_layers, h.num_decoder_layers or h.num_hidden_layers
    keys, values = h.attention_key_channels or h.hidden_size, h.attention_value_channels or h.hidden_size
    layer = 2 * h.hidden_size * (h.filter_size + keys + values)
    positions = 2 * h.max_position if h.pos == "emb" else 0
    pieces = config["vocab_size"] + (config["target_vocab_size"] or 0)
    embeddings = (h.embedding_size or h.hidden_size) * pieces
    rest = h.hidden_size * (positions + 2 * h.max_relative_position)
    return sum(depths) * layer + embeddings + rest, max(depths)
