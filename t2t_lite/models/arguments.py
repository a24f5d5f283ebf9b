"""What hyperparameters, under tensor2tensor's names, mean for the Transformer's constructor."""

import re

from t2t_lite.errors import UserError, shown

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
_NORMS = {("none", "dan"): "post", ("n", "da"): "pre"}
_POSITIONS = {"timing": "sinusoidal", "emb": "learned", "none": "none"}
_POLICIES = ("float32", "mixed_bfloat16", "bfloat16", "mixed_float16", "float16", "float64")
_LARGEST = {  # far beyond any Transformer; more is a mistake, or made to fill the memory
    "hidden_size": 2**16,
    "filter_size": 2**18,
    "num_heads": 2**12,
    "num_hidden_layers": 2**9,
    "num_encoder_layers": 2**9,
    "num_decoder_layers": 2**9,
    "attention_key_channels": 2**18,
    "attention_value_channels": 2**18,
    "max_position": 2**20,
    "max_relative_position": 2**16,
    "attention_neighborhood": 2**20,
}
_SELF_ATTENTION = ("dot_product", "dot_product_relative", "restricted")


def transformer_arguments(hparams):
    """Returns the arguments of `Transformer` beside the sizes of the vocabularies.

    Args:
        hparams: HParams.

    Raises:
        UserError: a value that has no meaning here; the message names the hyperparameter.
    """
    h = hparams
    for name, largest in _LARGEST.items():
        if not 0 <= h.get(name) <= largest:
            raise UserError(f"{name}={shown(h.get(name))}: expected at most {largest:,}, and not below 0.")
    if h.dtype_policy not in _POLICIES:
        raise UserError(f"dtype_policy={h.dtype_policy[:80]}: expected one of {', '.join(_POLICIES)}.")
    sequences = (h.layer_preprocess_sequence, h.layer_postprocess_sequence)
    if sequences not in _NORMS:
        raise UserError(
            f"layer_preprocess_sequence={sequences[0][:40]}, layer_postprocess_sequence={sequences[1][:40]}: expected "
            "none and dan (post-norm, the paper) or n and da (pre-norm)."
        )
    if h.pos not in _POSITIONS:
        raise UserError(f"pos={h.pos[:80]}: expected one of {', '.join(_POSITIONS)}.")
    heads = max(h.num_heads, 1)  # 0 is refused later, by the layers
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


def in_hparams_words(error):
    """Returns the text of a `ValueError` of the constructor, with hyperparameters named instead of its arguments."""
    text = str(error)
    for argument, name in _NAMES.items():
        text = re.sub(rf"(?<=`){argument}(?=`)|\b{argument}(?==)", name, text)
    return text


def _self_attention(h):
    """Returns the arguments that say how positions attend to each other."""
    kind = h.self_attention_type
    if kind not in _SELF_ATTENTION:
        raise UserError(f"self_attention_type={kind[:80]}: expected one of {', '.join(_SELF_ATTENTION)}.")
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
