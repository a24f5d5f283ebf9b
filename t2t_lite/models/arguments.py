"""What hyperparameters, under tensor2tensor's names, mean for the Transformer's constructor."""

import re

from t2t_lite.errors import UserError, shown
from t2t_lite.layers.keras_names import activation_config

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


def model_hparams(arguments, dtype_policy, base):
    """Returns hyperparameters that make a Transformer of these arguments: the way back from `transformer_arguments`.

    Args:
        arguments: dict, the constructor's arguments.
        dtype_policy: str, its name.
        base: HParams, whose values are kept for all that no argument says.

    Raises:
        UserError: a value that hyperparameters cannot hold, such as a function.
    """
    a = {**arguments, "dtype": dtype_policy, "activation": activation_config(arguments["activation"])}
    if not isinstance(a["activation"], str):
        raise UserError(f"activation={shown(arguments['activation'])}: hyperparameters hold names of Keras' own only.")
    sequences = {norm: pair for pair, norm in _NORMS.items()}[a["norm"]]
    kinds = {"max_relative_position": "dot_product_relative", "neighborhood": "restricted"}
    return base.override_from_dict(
        {
            **{name: a[argument] for argument, name in _NAMES.items()},
            "num_hidden_layers": a["num_encoder_layers"],
            "num_encoder_layers": a["num_encoder_layers"],
            "num_decoder_layers": a["num_decoder_layers"],
            "attention_key_channels": (a["key_dim"] or 0) * a["num_heads"],
            "attention_value_channels": (a["value_dim"] or 0) * a["num_heads"],
            "layer_preprocess_sequence": sequences[0],
            "layer_postprocess_sequence": sequences[1],
            "pos": {position: name for name, position in _POSITIONS.items()}[a["position"]],
            "self_attention_type": next((kind for name, kind in kinds.items() if a[name] is not None), "dot_product"),
            "max_relative_position": a["max_relative_position"] or 0,
            "add_relative_to_values": a["add_relative_to_values"],
            "attention_neighborhood": a["neighborhood"] or 0,
        }
    )


def differing_arguments(arguments, dtype_policy, hparams):
    """Returns {name: (what hyperparameters say, what a Transformer was made with)} of what changes its outputs.

    Args: as `model_hparams`.
    """
    made, wanted = (transformer_arguments(h) for h in (model_hparams(arguments, dtype_policy, hparams), hparams))
    differing = {n: (wanted.get(n), made.get(n)) for n in {**wanted, **made} if wanted.get(n) != made.get(n)}
    only_in_training = ("dropout", "attention_dropout", "relu_dropout", "recompute_grad")
    return {hparam_of(n): pair for n, pair in differing.items() if n not in only_in_training}


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
