"""What hyperparameters, under tensor2tensor's names, mean for the Transformer's constructor."""

import re

from t2t_lite.errors import UserError

_NAMES = {  # argument: hyperparameter
    "hidden_size": "hidden_size",
    "filter_size": "filter_size",
    "num_heads": "num_heads",
    "dropout": "layer_prepostprocess_dropout",
    "attention_dropout": "attention_dropout",
    "relu_dropout": "relu_dropout",
    "norm_epsilon": "norm_epsilon",
    "attention_bias": "attention_bias",
    "activation": "ffn_activation",
    "position_layout": "position_layout",
    "max_position": "max_position",
    "target_space_embedding": "use_target_space_embedding",
    "tie_embeddings": "shared_embedding_and_softmax_weights",
    "softmax_bias": "softmax_bias",
    "recompute_grad": "recompute_grad",
    "dtype": "dtype_policy",
}
_MADE_OF = {  # arguments whose values are written otherwise
    "norm": "layer_preprocess_sequence",
    "position": "pos",
    "key_dim": "attention_key_channels",
    "value_dim": "attention_value_channels",
    "neighborhood": "attention_neighborhood",
}
_NORMS = {("none", "dan"): "post", ("n", "da"): "pre"}
_POSITIONS = {"timing": "sinusoidal", "emb": "learned", "none": "none"}


def transformer_arguments(hparams):
    """Returns the arguments of `Transformer` beside the sizes of the vocabularies.

    Args:
        hparams: HParams.

    Raises:
        UserError: a value that has no meaning here; the message names the hyperparameter.
    """
    h = hparams
    sequences = (h.layer_preprocess_sequence, h.layer_postprocess_sequence)
    if sequences not in _NORMS:
        raise UserError(
            f"layer_preprocess_sequence={sequences[0]}, layer_postprocess_sequence={sequences[1]}: expected "
            "none and dan (post-norm, the paper) or n and da (pre-norm)."
        )
    heads = h.num_heads
    for name in ("attention_key_channels", "attention_value_channels"):
        if h.get(name) % heads:
            raise UserError(f"{name}={h.get(name)}: expected a multiple of num_heads={h.num_heads}.")
    return {
        **{argument: h.get(name) for argument, name in _NAMES.items()},
        "num_encoder_layers": h.num_encoder_layers or h.num_hidden_layers,
        "num_decoder_layers": h.num_decoder_layers or h.num_hidden_layers,
        "key_dim": h.attention_key_channels // heads or None,
        "value_dim": h.attention_value_channels // heads or None,
        "norm": _NORMS[sequences],
        "position": _POSITIONS[h.pos],
        **_self_attention(h),
    }


def hparam_of(argument):
    """Returns the hyperparameter that says an argument of `Transformer`: its own name, or another."""
    return {**_NAMES, **_MADE_OF}.get(argument, argument)


def in_hparams_words(error):
    """Returns the text of a `ValueError` of the constructor, with hyperparameters named instead of its arguments."""
    text = str(error)
    for argument, name in _NAMES.items():
        text = re.sub(rf"(?<=`){argument}(?=`)|\b{argument}(?==)", name, text)
    return text


def _self_attention(h):
    """Returns the arguments that say how positions attend to each other."""
    kind = h.self_attention_type
    if kind == "dot_product_relative":
        if h.max_relative_position < 1:
            raise UserError(
                f"max_relative_position={h.max_relative_position}: self_attention_type={kind} needs at least 1."
            )
        return {
            "max_relative_position": h.max_relative_position,
            "add_relative_to_values": h.add_relative_to_values,
        }
    if kind == "restricted":
        if h.attention_neighborhood < 1:
            raise UserError(
                f"attention_neighborhood={h.attention_neighborhood}: self_attention_type={kind} needs at least 1."
            )
        return {"neighborhood": h.attention_neighborhood}
    return {}
