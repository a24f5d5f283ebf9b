"""Models that tensor2tensor has trained: its `model.ckpt-N` and `.subwords` files become a run of this package.

Names of variables are those of tensor2tensor 1.5 to 1.15 (models/transformer.py, layers/common_attention.py,
layers/common_layers.py, layers/modalities.py), with or without a scope around them.
"""

from t2t_lite.errors import UserError
from t2t_lite.files import read_bytes
from t2t_lite.files.folders import check_new
from t2t_lite.interchange.imported_run import write_imported_run
from t2t_lite.interchange.tensor2tensor_checkpoint import Tensor2TensorCheckpoint
from t2t_lite.interchange.tensor2tensor_hparams import choose_hparams
from t2t_lite.text.subword_text_encoder import ENDING, read_pieces


def import_tensor2tensor(path, vocabularies, output_dir, *, languages, hparams_set="", hparams=""):
    """Makes a run of a Transformer that tensor2tensor has trained.

    It computes the same logits: the vector that tensor2tensor adds for its target space is kept
    (`use_target_space_embedding`), and so are rows of embeddings beyond the vocabulary (`vocab_divisor`), as entries
    without text.

    Args:
        path: str, a checkpoint of tensor2tensor, `…/model.ckpt-250000`, or the folder of a run: its newest one.
        vocabularies: list of one `.subwords` file, or two: of the inputs and of the targets.
        output_dir: str, of the new run; a folder that does not exist yet, or is empty.
        languages: (of inputs, of targets), such as ("en", "de").
        hparams_set: str, the set it was trained with, such as "transformer_base". What `hparams.json` beside the
            checkpoint says comes before it; "": that file is there.
        hparams: str, `name=value,…`, which come before both.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: no such file, a model that this package has no Transformer for (the difference is named), or
            something that can't be told from the checkpoint.
        Failure: writing failed; nothing is left behind.

    Example:
        >>> import_tensor2tensor("old/model.ckpt-250000", ["old/vocab.translate_ende_wmt32k.32768.subwords"],
        ...                      "train", languages=("en", "de"))                  # doctest: +SKIP
        'train/model.ckpt-250000'
    """
    check_new(output_dir)
    checkpoint = Tensor2TensorCheckpoint(path)
    chosen = choose_hparams(checkpoint, hparams_set, hparams)
    inputs, targets = (vocabularies[0], vocabularies[-1])
    embeddings = checkpoint.embeddings([len(read_pieces(read_bytes(file), file)) for file in (inputs, targets)])
    contents = {
        "inputs": _padded(inputs, len(embeddings["inputs"])),
        "targets": _padded(targets, len(embeddings["targets"])),
    }
    return write_imported_run(
        output_dir,
        hparams=chosen,
        hparams_set=hparams_set,
        languages=languages,
        vocabularies=contents,
        ending=ENDING,
        fill=lambda model: _fill(model, checkpoint, embeddings),
        step=checkpoint.step,
    )


def _padded(path, size):
    """Returns the file's content with empty entries up to `size`: both tensor2tensor and we decode them to nothing."""
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
    """Gives a built Transformer the weights of a checkpoint."""
    matrices = {
        "inputs": model.input_embedding,
        "targets": model.target_embedding,
        "softmax": model.softmax,
    }
    for role, layer in matrices.items():
        layer.embeddings.assign(embeddings[role])
    if model.config["target_space_embedding"]:
        # Problems of translation are of the generic kind, which is row 0.
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
    for norm, scope in ((model.encoder.final_norm, "encoder"), (model.decoder.final_norm, "decoder")):
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
