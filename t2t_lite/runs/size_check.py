"""Refuses settings that do not match a checkpoint's size, before memory is allocated for the model."""

import math

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.runs.config import hparams_of
from t2t_lite.runs.weights import check_fits, saved_shapes

_SLACK = 2**22  # numbers, 16 MiB
_LEAST_WEIGHTS_OF_A_LAYER = 12


def check_size(checkpoint, config, name="model"):
    """Raises `UserError` if `hparams.json` describes a model much larger than the checkpoint.

    Args:
        checkpoint: str, without suffix.
        config: dict, the contents of `hparams.json`.
        name: str, the model's name in the checkpoint.
    """
    from t2t_lite.models.transformer import Transformer

    shapes = saved_shapes(checkpoint, name)
    saved = sum(math.prod(shape) for shape in shapes.values())
    hparams, model_class = hparams_of(config), registry.model(config["model"])
    needed, depth = _estimate(hparams, config)
    is_ours = model_class is Transformer
    if needed <= 2 * saved + _SLACK and not (is_ours and depth * _LEAST_WEIGHTS_OF_A_LAYER > len(shapes)):
        return
    if is_ours:
        raise UserError(
            f"{checkpoint}: not of this model: hparams.json beside it asks for {depth:,} layers and some {needed:,} "
            f"numbers; there are {saved:,} in {len(shapes):,} weights. Expected the settings that it was trained with."
        )
    # Exact for any model, also with weights shared between layers, but as slow as building it, and so done last.
    from t2t_lite.models.describe import shapes_only

    sizes = config["vocab_size"], config["target_vocab_size"]
    check_fits(checkpoint, shapes_only(model_class, hparams, *sizes), name=name)


def _estimate(h, config):
    """Returns (approximate number of a Transformer's parameters, number of its layers) for these settings."""
    depths = h.num_encoder_layers or h.num_hidden_layers, h.num_decoder_layers or h.num_hidden_layers
    keys, values = h.attention_key_channels or h.hidden_size, h.attention_value_channels or h.hidden_size
    layer = 2 * h.hidden_size * (h.filter_size + keys + values)
    positions = 2 * h.max_position if h.pos == "emb" else 0
    pieces = config["vocab_size"] + (config["target_vocab_size"] or 0)
    depth = sum(map(abs, depths))
    embeddings = (h.embedding_size or h.hidden_size) * pieces
    return depth * layer + embeddings + h.hidden_size * (positions + 2 * h.max_relative_position), depth
