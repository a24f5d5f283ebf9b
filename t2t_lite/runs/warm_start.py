"""Starts a run with the weights of another one, whose vocabulary may differ."""

import logging

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.errors import UserError, first_line
from t2t_lite.models.describe import shapes_only
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.runs import exported
from t2t_lite.runs.config import hparams_of
from t2t_lite.runs.opening import encoders_of, find_checkpoint, read_config_of, restore_weights
from t2t_lite.runs.weights import check_fits, named_weights, open_checkpoint, saved_shapes, saved_value, shape_text
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID

_LOGGER = logging.getLogger("t2t_lite")

_OF_IDS = ("embeddings", "bias")  # the weights of a TokenEmbedding with a row, or a number, per id


def warm_start(path, model, encoders):
    """Gives a new model the weights of a trained one, without the optimizer's state.

    If the vocabulary is another one, rows of embeddings and softmax are matched by piece. Bytes, special ids and pieces
    that both vocabularies have keep their rows; the others keep the new model's initial values. A shared vocabulary can
    be combined with separate ones: each side's pieces are found in the vocabulary that serves it. A new shared
    vocabulary prefers the rows of the targets. Which weights have such rows, the model's `token_embeddings` and
    `softmax` tell.

    Args:
        path: str, as for `open_run`.
        model: a built keras.Model; its weights other than those rows have the same names and shapes.
        encoders: {feature: TextEncoder} of the new model's ids.

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
    if config["vocabulary_sha256"] == {feature: encoder.fingerprint for feature, encoder in encoders.items()}:
        restore_weights(checkpoint, model)
        _LOGGER.info(f"begun with the weights of {checkpoint}")
        return {"warm_start_from": checkpoint}
    folder = exported.folder_of(checkpoint)
    weights, saved = named_weights(model), saved_shapes(checkpoint)
    matrices = _features_of_rows(model)
    if not matrices:
        raise UserError(
            f"{checkpoint}: its weights are for another vocabulary than that of the new run's data, and which of this "
            f"model's weights are embeddings is not known. Make data with its vocabulary: "
            f"t2t-datagen --vocab_from={folder}"
        )
    there = _features_of_rows(_shapes_of(config), is_looked_up=True)
    sources = {
        name: [name] if name in saved else _sources(name, features, there) for name, features in matrices.items()
    }
    used = {source for found in sources.values() for source in found}
    check_fits(checkpoint, model, apart={*(name for name in matrices if sources[name]), *used})
    old_encoders = encoders_of(registry.problem(config["problem"]), config, folder)
    taken = {}
    for name, features in matrices.items():
        rows = weights[name].numpy()
        new = {piece: i for feature in features for i, piece in enumerate(_pieces(encoders[feature]))}
        old = {}
        for source in sources[name]:
            pieces = _pieces(old_encoders[there.get(source, features)[-1]])
            old.update(zip(pieces, _read(checkpoint, source, (len(pieces), *rows.shape[1:])), strict=True))
        both = new.keys() & old.keys()
        for piece in both:
            rows[new[piece]] = old[piece]
        taken[name] = [len(both), len(rows)]
        weights[name].assign(rows)
    restore_weights(checkpoint, {name: weight for name, weight in weights.items() if name not in matrices})
    _LOGGER.info(f"begun with the weights of {checkpoint}")
    for name, (count, of) in taken.items():
        _LOGGER.info(f"another vocabulary: {name}: {count:,} of {of:,} rows are of pieces that both have")
    return {"warm_start_from": checkpoint, "warm_start_rows": taken}


def _shapes_of(config):
    """Returns the model of a `hparams.json` without values."""
    sizes, features = (config["vocab_size"], config["target_vocab_size"]), registry.problem(config["problem"]).features
    return shapes_only(registry.model(config["model"]), hparams_of(config), *sizes, features)


def _features_of_rows(model, is_looked_up=False):
    """Returns {name of a weight: [feature, …]} of the weights with a row, or a number, per id of these features.

    With `is_looked_up` a matrix of the softmax alone is left out.
    """
    if not isinstance(model, SequenceModel):
        return {}
    names = {id(weight): name for name, weight in named_weights(model).items()}
    found = {}
    layers = [*model.token_embeddings().items()]
    if model.softmax is not None and not is_looked_up:
        layers.append(("targets", model.softmax))
    for feature, layer in layers:
        for weight in layer.weights:
            if weight.name in _OF_IDS:
                found.setdefault(names[id(weight)], []).append(feature)
    return found


def _sources(name, features, there):
    """Returns the names of a run's weights whose rows stand for those of `name`, which it lacks; the last one's win."""
    kind = name.rpartition("/")[2]
    return [n for n, served in there.items() if n.rpartition("/")[2] == kind and {*served} & {*features}]


def _pieces(encoder):
    """Returns the vocabulary's entries by id; special ids get names that no text contains."""
    pieces = encoder.pieces(range(encoder.vocab_size))
    special = {PAD_ID: "pad", EOS_ID: "eos", encoder.unknown_id: "unk"}
    return [(special[i],) if i in special else piece for i, piece in enumerate(pieces)]


def _read(checkpoint, name, shape):
    """Returns a float32 array. Raises `UserError` if it is damaged or of another shape."""
    try:
        matrix = np.asarray(saved_value(open_checkpoint(checkpoint), checkpoint, name), "float32")  # may be bfloat16
    except (tf.errors.OpError, IndexError) as error:
        raise UserError(f"{checkpoint}: damaged: {name} cannot be read: {first_line(error)}") from error
    if matrix.shape != shape:
        raise UserError(
            f"{checkpoint}: not of this model: {name} is {shape_text(matrix.shape)} there, {shape_text(shape)} for its "
            "vocabulary in the model. Expected the settings that it was trained with."
        )
    return matrix
