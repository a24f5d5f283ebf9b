"""Imports models trained by tensor2tensor; hyperparameters come from its files, a named set and the weights' shapes."""

import os

from t2t_lite import registry
from t2t_lite.errors import UserError, located
from t2t_lite.extras.tensor2tensor.sources import check_tensor2tensor
from t2t_lite.extras.tensor2tensor.subword_text_encoder import read_pieces
from t2t_lite.extras.tensor2tensor.tensor2tensor_checkpoint import Tensor2TensorCheckpoint
from t2t_lite.files import exists, read_bytes, read_json
from t2t_lite.runs.saving import write_imported_run
from t2t_lite.settings.config import parse_assignments
from t2t_lite.settings.ranges import settings_of
from t2t_lite.text.vocabulary_files import SUBWORDS

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
# Other settings, with the values for which tensor2tensor's Transformer computes the same results as ours.
_SUPPORTED = {
    "ffn_layer": ("dense_relu_dense", "conv_hidden_relu"),
    "ffn_activation": ("relu",),  # only ours: tensor2tensor's networks always have relu
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
    """Returns the HParams with which our Transformer computes the same results as the model in the checkpoint.

    Settings that the weights' shapes do not determine (heads, positions, epsilon, rates) come from `hparams.json` in
    the checkpoint's folder, or else from the named set. The optimizer and its schedule always come from the set, which
    is "transformer_base" by default.

    Args:
        checkpoint: Tensor2TensorCheckpoint.
        hparams_set: str, name of a registered hparams set, or "".
        overrides: str, `name=value,…`.

    Raises:
        UserError: settings contradict the checkpoint, our Transformer does not support them, or the number of heads is
            unknown.
    """
    path = os.path.join(os.path.dirname(checkpoint.path), "hparams.json")
    theirs = _read(path) if exists(path) else {}
    assigned = parse_assignments(overrides, "--hparams")
    if not theirs and not hparams_set and "num_heads" not in assigned:
        raise UserError(
            f"{path}: no such file, and the checkpoint does not contain the number of heads. Add the set that the "
            "model was trained with, such as --hparams_set=transformer_base, or --hparams=num_heads=8."
        )
    derived = registry.hparams(hparams_set or "transformer_base")
    derived.position_layout, derived.norm_epsilon = "tensor2tensor", 1e-6
    kinds = settings_of(type(derived))
    with located(path):
        for name in (*_STRUCTURE, *_TRAINING):
            if name in theirs:
                derived.set_hparam(name, kinds[name].typed(theirs[name]))
    derived = derived.parse(overrides)
    _check_supported("--hparams_set and --hparams", derived)
    for name, value in _facts(checkpoint).items():
        # Settings from a named set or a file must agree with the shapes; settings from the default set need not.
        sources = {
            "--hparams": name in assigned,
            path: name in theirs,
            f"--hparams_set={hparams_set}": bool(hparams_set),
        }
        where = next((where for where, is_there in sources.items() if is_there), None)
        if where and _meaning(derived, name) != value:
            raise UserError(
                f"{where}: {name}={_meaning(derived, name)}, but the weights in {checkpoint.path} have {name}={value}."
            )
        derived.set_hparam(name, value)
    derived.use_target_space_embedding = "target_space_embedding/kernel" in checkpoint
    if derived.pos == "emb":
        derived.max_position = checkpoint.shape("inputs_positional_embedding")[0]
    elif "inputs_positional_embedding" in checkpoint:
        raise UserError(f"{checkpoint.path}: has a table of positions, but pos={derived.pos}. Add --hparams=pos=emb.")
    return derived


def _facts(checkpoint):
    """Returns {name: value} of the settings that the weights' shapes determine."""
    scope = "encoder/layer_0"
    is_pre = checkpoint.has_norm("encoder")
    return {
        "hidden_size": checkpoint.projection_shape(f"{scope}/self_attention", "q")[0],
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
    """Returns the value of a setting; where 0 stands for the value of another setting, returns that value."""
    instead = {
        "num_encoder_layers": "num_hidden_layers",
        "num_decoder_layers": "num_hidden_layers",
        "attention_key_channels": "hidden_size",
        "attention_value_channels": "hidden_size",
    }
    return hparams.get(name) or hparams.get(instead.get(name, name))


def _read(path):
    """Reads tensor2tensor's settings into a dict. Raises `UserError` if the file is invalid or not supported."""
    theirs = read_json(path)
    if isinstance(theirs.get("hparams"), dict):
        raise UserError(f"{path}: belongs to a run of t2t_lite, which needs no import. Use the run's folder directly.")
    _check_supported(path, theirs)
    return theirs


def _check_supported(where, settings):
    """Raises `UserError`, whose message begins with `where`, for values of a dict or HParams that are not supported."""
    for name, values in _SUPPORTED.items():
        if name in settings and settings.get(name) not in values:
            raise UserError(
                f"{where}: {name}={str(settings.get(name))[:80]}: only models with "
                f"{name}={' or '.join(map(str, values))} can be imported."
            )


def import_tensor2tensor(path, vocabularies, output_dir, *, languages, hparams_set="", hparams=""):
    """Converts a Transformer trained by tensor2tensor to a run of this package.

    The run's model computes the same logits as tensor2tensor's. The vector that tensor2tensor adds for its target space
    is kept (`use_target_space_embedding`). Embedding rows beyond the vocabulary (`vocab_divisor`) are also kept; their
    ids have no text.

    Args:
        path: str, a checkpoint of tensor2tensor, `…/model.ckpt-250000`, or a run's folder, whose newest checkpoint is
            used.
        vocabularies: list of one `.subwords` file, or of two: one for the inputs and one for the targets.
        output_dir: str, the new run's folder, which is empty or does not exist yet.
        languages: the languages of the inputs and the targets, such as ("en", "de").
        hparams_set: str, the set that the model was trained with, such as "transformer_base". `hparams.json` in the
            checkpoint's folder overrides the set; if that file exists, the set may be "".
        hparams: str, `name=value,…`, which overrides both the set and the file.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: a file is missing, this package's Transformer cannot represent the model (the message names the
            difference), or a setting is unknown.
        Failure: writing failed; partly written files are removed.

    Example:
        >>> import_tensor2tensor("old/model.ckpt-250000", ["old/vocab.translate_ende_wmt32k.32768.subwords"],
        ...                      "train", languages=("en", "de"))                  # doctest: +SKIP
        'train/model.ckpt-250000'
    """
    check_tensor2tensor(path, vocabularies, output_dir, hparams_set)
    checkpoint = Tensor2TensorCheckpoint(path)
    derived = choose_hparams(checkpoint, hparams_set, hparams)
    inputs, targets = (vocabularies[0], vocabularies[-1])
    embeddings = checkpoint.embeddings([len(read_pieces(read_bytes(file), file)) for file in (inputs, targets)])
    contents = {
        "inputs": _padded(inputs, len(embeddings["inputs"])),
        "targets": _padded(targets, len(embeddings["targets"])),
    }
    return write_imported_run(
        output_dir,
        "translate_own",
        lambda problem, folder: problem.hold_vocabularies(folder, languages, contents, SUBWORDS),
        model="transformer",
        hparams=derived,
        hparams_set=hparams_set,
        fill=lambda model: _fill(model, checkpoint, embeddings),
        step=checkpoint.step,
    )


def _padded(path, size):
    """Returns a `.subwords` file's content, padded with empty lines to `size` entries; their ids have no text."""
    content = read_bytes(path)
    pieces = read_pieces(content, path)
    if len(pieces) > size:
        raise UserError(
            f"{path}: {len(pieces):,} pieces, but the model has {size:,}. Expected the model's own vocabulary file."
        )
    if len(pieces) == size:
        return content
    return content.removesuffix(b"\n") + b"\n" + b"''\n" * (size - len(pieces))


def _fill(model, checkpoint, embeddings):
    """Copies the weights of a tensor2tensor checkpoint into a built Transformer."""
    matrices = {"inputs": model.input_embedding, "targets": model.target_embedding, "softmax": model.softmax}
    for role, layer in matrices.items():
        layer.embeddings.assign(embeddings[role])
    if model.config["target_space_embedding"]:
        # Translation problems use the generic target space, row 0.
        model.target_space.assign(checkpoint.read("target_space_embedding/kernel")[0])
    if model.config["position"] == "learned":
        for side, layer in (("inputs", model.encoder_position), ("targets", model.decoder_position)):
            layer.table.assign(checkpoint.read(f"{side}_positional_embedding"))
    for stack, layers in (("encoder", model.encoder.layers), ("decoder", model.decoder.layers)):
        for number, layer in enumerate(layers):
            scope = f"{stack}/layer_{number}"
            _fill_attention(layer.self_attention, checkpoint, f"{scope}/self_attention")
            if stack == "decoder":
                _fill_attention(layer.cross_attention, checkpoint, f"{scope}/encdec_attention")
            network = layer.feed_forward.layer
            for dense, name in ((network.inner, "conv1"), (network.outer, "conv2")):
                dense.kernel.assign(checkpoint.read(f"{scope}/ffn/{name}/kernel"))
                dense.bias.assign(checkpoint.read(f"{scope}/ffn/{name}/bias"))
            _fill_norm(layer.feed_forward.normalization, checkpoint, f"{scope}/ffn")
    for norm, scope in ((model.encoder_norm, "encoder"), (model.decoder_norm, "decoder")):
        if norm is not None:
            _fill_norm(norm, checkpoint, scope)
    checkpoint.check_all_read()


def _fill_attention(residual, checkpoint, scope):
    attention = residual.layer
    for role, name in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "output_transform")):
        kernel = checkpoint.projection(scope, name)
        getattr(attention, f"{role}_projection").kernel.assign(kernel)
    _fill_norm(residual.normalization, checkpoint, scope)


def _fill_norm(norm, checkpoint, scope):
    norm.gamma.assign(checkpoint.norm(scope, "scale"))
    norm.beta.assign(checkpoint.norm(scope, "bias"))
