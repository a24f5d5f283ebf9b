"""Imports models trained by tensor2tensor: converts its `model.ckpt-N` and `.subwords` files to a run.

Names of variables are those of tensor2tensor 1.5 to 1.15 (models/transformer.py, layers/common_attention.py,
layers/common_layers.py, layers/modalities.py), with or without a scope around them.
"""

from t2t_lite.errors import UserError
from t2t_lite.extras.tensor2tensor.sources import check_tensor2tensor
from t2t_lite.extras.tensor2tensor.tensor2tensor_checkpoint import Tensor2TensorCheckpoint
from t2t_lite.extras.tensor2tensor.tensor2tensor_hparams import choose_hparams
from t2t_lite.files import read_bytes
from t2t_lite.interchange.imported_run import write_imported_run
from t2t_lite.text.subword_text_encoder import ENDING, read_pieces


def import_tensor2tensor(path, vocabularies, output_dir, *, languages, hparams_set="", hparams=""):
    """Converts a Transformer trained by tensor2tensor to a run.

    It computes the same logits. The vector that tensor2tensor adds for its target space is kept
    (`use_target_space_embedding`), as are rows of embeddings beyond the vocabulary (`vocab_divisor`), which become
    entries without text.

    Args:
        path: str, a checkpoint of tensor2tensor, `…/model.ckpt-250000`, or the folder of a run, for its newest one.
        vocabularies: list of one `.subwords` file, or two: of the inputs and of the targets.
        output_dir: str, the new run's folder, which is empty or does not exist yet.
        languages: (of inputs, of targets), such as ("en", "de").
        hparams_set: str, the set with which it was trained, such as "transformer_base", which `hparams.json` beside the
            checkpoint overrides. "" if that file exists.
        hparams: str, `name=value,…`, which override both.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: a file is missing, this package's Transformer cannot represent the model (the difference is named),
            or the checkpoint does not determine a setting.
        Failure: writing failed; nothing is left behind.

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
        lambda problem, folder: problem.hold_vocabularies(folder, languages, contents, ENDING),
        model="transformer",
        hparams=derived,
        hparams_set=hparams_set,
        fill=lambda model: _fill(model, checkpoint, embeddings),
        step=checkpoint.step,
    )


def _padded(path, size):
    """Returns the file's content, padded to `size` with empty entries, which decode to nothing."""
    content = read_bytes(path)
    pieces = read_pieces(content, path)
    if len(pieces) > size:
        raise UserError(
            f"{path}: {len(pieces):,} pieces, but the model has {size:,}. Expected the file it was trained with."
        )
    if len(pieces) == size:
        return content
    return content.removesuffix(b"\n") + b"\n" + b"''\n" * (size - len(pieces))


def _fill(model, checkpoint, embeddings):
    """Loads the weights of a checkpoint into a built Transformer."""
    matrices = {
        "inputs": model.input_embedding,
        "targets": model.target_embedding,
        "softmax": model.softmax,
    }
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


def _fill_attention(residual, checkpoint, scope):
    attention = residual.layer
    for role, name in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "output_transform")):
        kernel = checkpoint.projection(scope, name)
        getattr(attention, f"{role}_projection").kernel.assign(kernel)
    _fill_norm(residual.normalization, checkpoint, scope)


def _fill_norm(norm, checkpoint, scope):
    norm.gamma.assign(checkpoint.norm(scope, "scale"))
    norm.beta.assign(checkpoint.norm(scope, "bias"))
