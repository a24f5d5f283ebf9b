"""Derives our hyperparameters for a tensor2tensor model from its `hparams.json`, a named set and shapes."""

import os

from t2t_lite import registry
from t2t_lite.errors import UserError, located
from t2t_lite.files import exists, read_json
from t2t_lite.settings.assignments import parse_assignments
from t2t_lite.settings.ranges import settings_of

_STRUCTURE = (
    "hidden_size", "filter_size", "num_heads", "num_hidden_layers", "num_encoder_layers", "num_decoder_layers",
    "attention_key_channels", "attention_value_channels", "layer_preprocess_sequence", "layer_postprocess_sequence",
    "norm_epsilon", "shared_embedding_and_softmax_weights", "pos", "self_attention_type",
    "multiply_embedding_mode",
)  # fmt: skip
_TRAINING = (
    "layer_prepostprocess_dropout", "attention_dropout", "relu_dropout", "label_smoothing", "batch_size", "max_length",
    "min_length",
)  # fmt: skip
# tensor2tensor's other settings, with the values for which it computes the same as our Transformer.
_SUPPORTED = {
    "ffn_layer": ("dense_relu_dense", "conv_hidden_relu"),
    "self_attention_type": ("dot_product",),
    "norm_type": ("layer",),
    "proximity_bias": (False,),
    "unidirectional_encoder": (False,),
    "causal_decoder_self_attention": (True,),
    "prepend_mode": ("none",),
    "hard_attention_k": (0,),
    "num_area_layers": (0,),
    "weight_dtype": ("float32",),
}


def choose_hparams(checkpoint, hparams_set, overrides):
    """Returns the HParams with which our Transformer computes the same as tensor2tensor's.

    Settings that do not follow from shapes (heads, positions, epsilon, rates) come from `hparams.json` beside the
    checkpoint, or else from the named set. The optimizer and its schedule always come from the set, by default
    "transformer_base".

    Args:
        checkpoint: Tensor2TensorCheckpoint.
        hparams_set: str, a registered set, or "".
        overrides: str, `name=value,…`.

    Raises:
        UserError: settings contradict the checkpoint, our Transformer lacks them, or the number of heads is unknown.
    """
    path = os.path.join(os.path.dirname(checkpoint.path), "hparams.json")
    theirs = _read(path) if exists(path) else {}
    assigned = parse_assignments(overrides, "--hparams")
    if not theirs and not hparams_set and "num_heads" not in assigned:
        raise UserError(
            f"{path}: no such file, and the number of heads can't be told from the checkpoint. Add the set it was "
            "trained with, --hparams_set=transformer_base, or --hparams=num_heads=8."
        )
    derived = registry.hparams(hparams_set or "transformer_base")
    derived.position_layout, derived.norm_epsilon = "tensor2tensor", 1e-6
    kinds = settings_of(type(derived))
    with located(path):
        for name in (*_STRUCTURE, *_TRAINING):
            if name in theirs:
                derived.set_hparam(name, kinds[name].typed(theirs[name]))
    derived = derived.parse(overrides)
    for name, value in _facts(checkpoint).items():
        # A named set or a file must agree with the shapes; the default set need not.
        sources = {
            "--hparams": name in assigned,
            path: name in theirs,
            f"--hparams_set={hparams_set}": bool(hparams_set),
        }
        where = next((where for where, is_there in sources.items() if is_there), None)
        if where and _meaning(derived, name) != value:
            raise UserError(
                f"{where}: {name}={_meaning(derived, name)}, but the weights in {checkpoint.path} are of "
                f"{name}={value}."
            )
        derived.set_hparam(name, value)
    derived.use_target_space_embedding = "target_space_embedding/kernel" in checkpoint
    if derived.pos == "emb":
        derived.max_position = checkpoint.shape("inputs_positional_embedding")[0]
    elif "inputs_positional_embedding" in checkpoint:
        raise UserError(f"{checkpoint.path}: has a table of positions, but pos={derived.pos}. Add --hparams=pos=emb.")
    return derived


def _facts(checkpoint):
    """Returns the settings that follow from shapes, by name."""
    scope = "encoder/layer_0"
    is_pre = checkpoint.has_norm("encoder")
    return {
        "hidden_size": checkpoint.hidden_size,
        "filter_size": checkpoint.shape(f"{scope}/ffn/conv1/kernel")[-1],
        "num_encoder_layers": checkpoint.layers("encoder"),
        "num_decoder_layers": checkpoint.layers("decoder"),
        "attention_key_channels": checkpoint.projection_shape(f"{scope}/self_attention", "q")[1],
        "attention_value_channels": checkpoint.projection_shape(f"{scope}/self_attention", "v")[1],
        "layer_preprocess_sequence": "n" if is_pre else "none",
        "layer_postprocess_sequence": "da" if is_pre else "dan",
        "shared_embedding_and_softmax_weights": checkpoint.has_tied_softmax,
    }


def _meaning(hparams, name):
    """Returns the value, with 0 replaced by its meaning."""
    instead = {
        "num_encoder_layers": "num_hidden_layers",
        "num_decoder_layers": "num_hidden_layers",
        "attention_key_channels": "hidden_size",
        "attention_value_channels": "hidden_size",
    }
    return hparams.get(name) or (hparams.get(instead[name]) if name in instead else hparams.get(name))


def _read(path):
    """Returns tensor2tensor's settings, a dict. Raises `UserError` if the file is invalid or of another model."""
    theirs = read_json(path)
    if isinstance(theirs.get("hparams"), dict):
        raise UserError(
            f"{path}: of a run of t2t_lite, not of tensor2tensor. There is nothing to import: use its folder."
        )
    for name, values in _SUPPORTED.items():
        if name in theirs and theirs[name] not in values:
            raise UserError(
                f"{path}: {name}={str(theirs[name])[:80]}: this package's Transformer has only "
                f"{name}={' or '.join(map(str, values))}."
            )
    return theirs
