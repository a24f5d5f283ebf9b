"""Starts a run with the weights of another run, whose vocabulary may differ."""

import shlex

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.errors import LOGGER, UserError, first_line
from t2t_lite.files.request import Request
from t2t_lite.models.arguments import model_settings
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.runs.locating import check_is_one, encoders_and_folder, find_checkpoint, folder_of, read_config_of
from t2t_lite.runs.opening import restore_weights, shapes_of
from t2t_lite.runs.run_config import hparams_of, lora_facts, lora_names
from t2t_lite.runs.weights import check_fits, named_weights, open_checkpoint, saved_shapes, saved_value, shape_text
from t2t_lite.text.class_label_encoder import ClassLabelEncoder
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID

_HEAD_ARGUMENTS = ("head", "sentence_classes")  # not compared, because a new head is reported separately
_ROW_WEIGHTS = ("embeddings", "bias")  # weights of a TokenEmbedding that have one row (or one number) per id


def warm_start(path, model, encoders, hparams=None):
    """Copies the weights of a trained model, without the optimizer's state, to a new model.

    If the vocabulary differs, the rows of the embedding and softmax matrices are matched by piece. Matrix rows of
    bytes, special ids and pieces that both vocabularies have are copied; all other rows keep the new model's initial
    values. One model may have a shared vocabulary and the other separate vocabularies: the pieces of each side are
    looked up in that side's vocabulary. If the new vocabulary is shared, the rows of the old target vocabulary take
    precedence. The model's `token_embeddings` and `softmax` determine which weights have such rows. If the head
    (`SequenceModel.head_weights`) or its classes differ, the new head keeps its initial values. The training of LoRA
    continues if both models have the same rank and factor. Otherwise the trained model's LoRA is merged into its
    kernels, and the new model's LoRA keeps its initial values.

    Weights with the same shapes may belong to a model with different settings, such as a different type of attention;
    this is logged as a warning. A different number of attention heads, which would split the kernels at different
    places, raises an error.

    Args:
        path: str, see `open_run`.
        model: a built keras.Model, whose weights must have the same names and shapes, except for the head and for the
            rows of embeddings and softmax.
        encoders: {feature: TextEncoder} of the new model.
        hparams: HParams of the new model, or None for a model without LoRA.

    Returns:
        dict for the log. "warm_start_from" is the checkpoint without suffix. If the vocabulary differs,
        "warm_start_rows" is {name of a matrix: [copied rows, rows]}. If the head differs, "warm_start_new" is the list
        of names of the new head's weights. The values of this dict are also printed.

    Raises:
        UserError: the checkpoint is missing or damaged, or belongs to the export of an ensemble; its vocabulary is
            missing; a weight has a different shape (the message names it); the number of attention heads differs; or a
            new head is frozen.
    """
    checkpoint = find_checkpoint(path)
    check_is_one(checkpoint, path)
    config = read_config_of(checkpoint)
    weights, saved, trained = named_weights(model), saved_shapes(checkpoint), shapes_of(config)
    new_heads = _changed_heads(model, trained, config, saved, encoders.get("targets"))
    facts = {"warm_start_from": checkpoint}
    if new_heads:
        facts["warm_start_new"] = sorted(new_heads & weights.keys())
        if frozen := [name for name in facts["warm_start_new"] if not weights[name].trainable]:
            raise UserError(
                f"frozen: {frozen[0]} belongs to a new head and would never be trained. Remove it from frozen."
            )
    lora = _changed_lora(config, hparams, weights, saved)
    folder = folder_of(checkpoint)
    has_vocabulary = config["vocabulary_sha256"] == {name: encoder.fingerprint for name, encoder in encoders.items()}
    matrices = {} if has_vocabulary else _features_of_rows(model)
    if not (has_vocabulary or matrices):
        raise UserError(
            f"{checkpoint}: its vocabulary differs from the vocabulary of the new data, and this model does not "
            "declare which weights are embeddings. Generate data with the checkpoint's vocabulary: t2t-datagen "
            f"--vocab_from={shlex.quote(folder)}"
        )
    features_by_matrix = _features_of_rows(trained, is_looked_up=True)
    sources = {
        name: [name] if name in saved else _sources(name, features, features_by_matrix)
        for name, features in matrices.items()
    }
    source_names = {source for names in sources.values() for source in names}
    row_names = {name for name in matrices if sources[name]} | source_names
    _check_fits(checkpoint, model, row_names | new_heads | lora, config, hparams)
    old_encoders = encoders_and_folder(registry.problem(config["problem"]), config, folder)[0] if matrices else {}
    transferred = {}
    for name, features in matrices.items():
        rows = weights[name].numpy()
        new = {piece: i for feature in features for i, piece in enumerate(_pieces(encoders[feature]))}
        old = {}
        for source in sources[name]:
            pieces = _pieces(old_encoders[features_by_matrix.get(source, features)[-1]])
            old.update(zip(pieces, _read(checkpoint, source, (len(pieces), *rows.shape[1:])), strict=True))
        both = new.keys() & old.keys()
        for piece in both:
            rows[new[piece]] = old[piece]
        transferred[name] = [len(both), len(rows)]
        weights[name].assign(rows)
    apart = {*matrices, *new_heads, *lora}
    restore_weights(checkpoint, {name: weight for name, weight in weights.items() if name not in apart})
    LOGGER.info(f"starting with the weights of {checkpoint}")
    if new := facts.get("warm_start_new"):
        LOGGER.info(f"the head is new and has initial values: {', '.join(new)}")
    for name, (count, of) in transferred.items():
        LOGGER.info(f"vocabularies differ: {name}: {count:,} of {of:,} rows belong to pieces in both and are copied")
        if count < of and not weights[name].trainable:
            LOGGER.warning(f"{name} is frozen: its {of - count:,} new rows keep their initial values")
    return facts | ({"warm_start_rows": transferred} if transferred else {})


def _check_fits(checkpoint, model, apart, config, hparams):
    """Checks that the weights' shapes agree, like `check_fits`; the error message lists the settings that differ."""
    request = Request({}, {}) if hparams is None else _request(config, model, hparams)
    try:
        check_fits(checkpoint, model, apart=apart)
    except UserError as error:
        if not request.changes:
            raise
        raise UserError(f"{error} The settings differ: {request.difference()}.") from None
    if heads := request.changes.get("num_heads"):
        raise UserError(
            f"{checkpoint}: num_heads is {heads[0]} there but {heads[1]} in the new model, so the heads have different "
            f"sizes. Expected num_heads={heads[0]}."
        )
    if request.changes:
        LOGGER.warning(f"{checkpoint}: its settings differ from the new model's: {request.difference()}")


def _request(config, model, hparams):
    """Returns the `Request` that compares the settings that both models have, except settings of heads."""
    there, settings = hparams_of(config).values(), model_settings(type(model), **hparams.kinds())
    names = [
        name for name, setting in settings.items() if setting.fixed and setting.argument not in ("", *_HEAD_ARGUMENTS)
    ]
    return Request(hparams.values(), there, [name for name in names if name in there])


def _changed_heads(model, trained, config, saved, labels):
    """Returns the names of head weights that only one of the models has, whose shapes differ, or that score classes
    other than those of the encoder `labels`."""
    shapes = {name: tuple(weight.shape) for name, weight in named_weights(model).items()}
    names = _head_names(model) | _head_names(trained)
    is_new = isinstance(labels, ClassLabelEncoder) and config["vocabulary_sha256"].get("targets") != labels.fingerprint
    count = labels.vocab_size - 1 if is_new else None
    return {name for name in names if saved.get(name) != shapes.get(name) or shapes[name][-1] == count}


def _changed_lora(config, hparams, weights, saved):
    """Returns the names of both models' LoRA matrices, or an empty set if the training of LoRA continues."""
    new, old = lora_names(weights), lora_names(saved)
    if new == old and (not new or lora_facts(config) == lora_facts({**config, "hparams": hparams.values()})):
        return set()
    if old:
        LOGGER.info("merging the trained model's LoRA weights into its kernels")
    return new | old


def _head_names(model):
    if not isinstance(model, SequenceModel):
        return set()
    head = {id(weight) for weight in model.head_weights()}
    return {name for name, weight in named_weights(model).items() if id(weight) in head}


def _features_of_rows(model, is_looked_up=False):
    """Returns {name: [feature, …]} for the weights that have one row (or one number) per id of these features.

    If `is_looked_up` is true, a matrix that is only used in the softmax is excluded.
    """
    if not isinstance(model, SequenceModel):
        return {}
    names = {id(weight): name for name, weight in named_weights(model).items()}
    features_by_name = {}
    layers = [*model.token_embeddings().items()]
    if model.softmax is not None and not is_looked_up:
        layers.append(("targets", model.softmax))
    for feature, layer in layers:
        for weight in layer.weights:
            if weight.name in _ROW_WEIGHTS:
                features_by_name.setdefault(names[id(weight)], []).append(feature)
    return features_by_name


def _sources(name, features, features_by_matrix):
    """Returns the names of the old weights that supply rows for the new weight `name`. The last takes precedence."""
    kind = name.rpartition("/")[2]
    return [n for n, served in features_by_matrix.items() if n.rpartition("/")[2] == kind and {*served} & {*features}]


def _pieces(encoder):
    """Returns the vocabulary's entries by id. Special ids have names that cannot occur in a text."""
    pieces = encoder.pieces(range(encoder.vocab_size))
    special = {PAD_ID: "pad", EOS_ID: "eos", encoder.unknown_id: "unk"}
    return [(special[i],) if i in special else piece for i, piece in enumerate(pieces)]


def _read(checkpoint, name, shape):
    """Reads a weight as a float32 array. Raises `UserError` if the weight is damaged or has a different shape."""
    try:
        matrix = np.asarray(saved_value(open_checkpoint(checkpoint), checkpoint, name), "float32")
    except (tf.errors.OpError, IndexError) as error:
        raise UserError(f"{checkpoint}: damaged: cannot read {name}: {first_line(error)}") from error
    if matrix.shape != shape:
        raise UserError(
            f"{checkpoint}: does not match this model: {name} is {shape_text(matrix.shape)} there, but "
            f"{shape_text(shape)} for its vocabulary in the model. Expected the settings with which it was trained."
        )
    return matrix
