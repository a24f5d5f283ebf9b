"""Starts a run with the weights of another one, whose vocabulary may differ."""

import logging

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.errors import UserError, first_line
from t2t_lite.runs import exported
from t2t_lite.runs.opening import encoders_of, find_checkpoint, read_config_of, restore_weights
from t2t_lite.runs.weights import check_fits, named_weights, open_checkpoint, saved_shapes, saved_value
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID

_LOGGER = logging.getLogger("t2t_lite")

# The matrices with one row per piece (and biases with one number per piece), by side, under `Transformer`'s names.
_SIDES = {
    "embedding/embeddings": ("inputs", "targets"),
    "input_embedding/embeddings": ("inputs",),
    "target_embedding/embeddings": ("targets",),
    "softmax_embedding/embeddings": ("targets",),
    "embedding/bias": ("targets",),
    "target_embedding/bias": ("targets",),
    "softmax_embedding/bias": ("targets",),
}
# Where to find the rows if a run has no matrix of that name; later entries take precedence.
_SOURCES = {
    "embedding/embeddings": ("input_embedding/embeddings", "target_embedding/embeddings"),
    "input_embedding/embeddings": ("embedding/embeddings",),
    "target_embedding/embeddings": ("embedding/embeddings",),
    "softmax_embedding/embeddings": (),
    "embedding/bias": ("target_embedding/bias",),
    "target_embedding/bias": ("embedding/bias",),
    "softmax_embedding/bias": (),
}


def warm_start(path, model, encoders):
    """Gives a new model the weights of a trained one, without the optimizer's state.

    If the vocabulary is another one, rows of embeddings and softmax are matched by piece. Bytes, special ids and pieces
    that both vocabularies have keep their rows; the others keep the new model's initial values. A shared vocabulary can
    be combined with separate ones: each side's pieces are found in the vocabulary that serves it. A new shared
    vocabulary prefers the rows of the targets.

    Args:
        path: str, as for `open_run`.
        model: a built keras.Model; its weights other than those rows have the same names and shapes.
        encoders: {"inputs", "targets"}: TextEncoders of the new model's ids.

    Returns:
        dict for the log: "warm_start_from", the checkpoint without suffix; with another vocabulary also
        "warm_start_rows", {name of a matrix: [rows transferred, rows]}. The user is told the same.

    Raises:
        UserError: the checkpoint is missing, damaged or of an ensemble's export, has no vocabulary beside it, or has a
            weight of another shape, which is named.
    """
    checkpoint = find_checkpoint(path)
    exported.check_is_one(checkpoint, path)
    config = read_config_of(checkpoint)
    if config["vocabulary_sha256"] == {side: encoder.fingerprint for side, encoder in encoders.items()}:
        restore_weights(checkpoint, model)
        _LOGGER.info(f"begun with the weights of {checkpoint}")
        return {"warm_start_from": checkpoint}
    folder = exported.folder_of(checkpoint)
    weights, saved = named_weights(model), saved_shapes(checkpoint)
    matrices = [name for name in weights if name in _SIDES]
    if not matrices:
        raise UserError(
            f"{checkpoint}: its weights are for another vocabulary than that of the new run's data, and which of this "
            f"model's weights are embeddings is not known. Make data with its vocabulary: "
            f"t2t-datagen --vocab_from={folder}"
        )
    sources = {name: [name] if name in saved else [n for n in _SOURCES[name] if n in saved] for name in matrices}
    used = {source for found in sources.values() for source in found}
    check_fits(checkpoint, model, apart={*(name for name in matrices if sources[name]), *used})
    old_encoders = encoders_of(registry.problem(config["problem"]), config, folder)
    taken = {}
    for name in matrices:
        rows = weights[name].numpy()
        taken[name] = [_take_rows(checkpoint, name, rows, encoders, sources[name], old_encoders), len(rows)]
        weights[name].assign(rows)
    restore_weights(checkpoint, {name: weight for name, weight in weights.items() if name not in matrices})
    _LOGGER.info(f"begun with the weights of {checkpoint}")
    for name, (count, of) in taken.items():
        _LOGGER.info(f"another vocabulary: {name}: {count:,} of {of:,} rows are of pieces that both have")
    return {"warm_start_from": checkpoint, "warm_start_rows": taken}


def _take_rows(checkpoint, name, rows, encoders, sources, old_encoders):
    """Copies the rows of pieces that the other run has into `rows`; returns how many."""
    ids = {}
    for side in _SIDES[name]:
        ids.update((piece, i) for i, piece in enumerate(_pieces(encoders[side])))
    found = {}
    for source in sources:
        matrix = _read(checkpoint, source)
        if matrix.shape[1:] != rows.shape[1:]:
            raise UserError(
                f"{checkpoint}: not of this model: {source} has rows of {matrix.shape[1]} there, {name} of "
                f"{rows.shape[1]} in the model. Expected the settings that it was trained with."
            )
        # A matrix shared by both sides has one vocabulary; the rows of one side belong to that side's pieces.
        side = _SIDES[source][-1] if len(_SIDES[source]) == 1 else _SIDES[name][-1]
        found.update((piece, matrix[i]) for i, piece in enumerate(_pieces(old_encoders[side])))
    both = ids.keys() & found.keys()
    for piece in both:
        rows[ids[piece]] = found[piece]
    return len(both)


def _pieces(encoder):
    """Returns the vocabulary's entries by id; special ids get names that no text contains."""
    pieces = encoder.pieces(range(encoder.vocab_size))
    special = {PAD_ID: "pad", EOS_ID: "eos", encoder.unknown_id: "unk"}
    return [(special[i],) if i in special else piece for i, piece in enumerate(pieces)]


def _read(checkpoint, name):
    try:
        matrix = saved_value(open_checkpoint(checkpoint), checkpoint, name)
        return np.asarray(matrix, "float32")  # it may be bfloat16 in an export
    except (tf.errors.OpError, IndexError) as error:
        raise UserError(f"{checkpoint}: damaged: {name} cannot be read: {first_line(error)}") from error
