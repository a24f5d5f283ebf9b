"""Applies a problem's `augment` and `corrupt`, and a model's `corrupt`, to batches."""

import functools

import tensorflow as tf

from t2t_lite.data.random_numbers import check_stateless, threefry
from t2t_lite.errors import UserError


def corrupted(problem, batches, hparams, is_stream=False, whole=False):
    """Returns a dataset of batches after `Problem.augment`, in a stream, `Problem.corrupt`, and the model's `corrupt`.

    Without any of them, it is the same dataset, so that saved positions of its iterators remain valid.

    Args:
        problem: Problem.
        batches: `tf.data.Dataset` of {feature: int32 ids}.
        hparams: HParams, whose `random_seed` is used, and the `corrupt` of its `model_class`: see `SequenceModel`.
        is_stream: bool, whether these are for training, so that a batch's seeds depend on its index. Otherwise each
            pass gives the same result.
        whole: bool, whether the model's `corrupt` is left out, as for the references of outputs.

    Raises:
        UserError: a feature of the problem is missing, the model's `corrupt` is for other problems, or a change could
            not be resumed: see `check_stateless`.
    """

    names, seed = (*["augment"] * is_stream, "corrupt"), hparams.random_seed
    changes = [(getattr(problem, name), seed, ()) for name in names if problem.overrides(name)]
    model = None if whole else hparams.model_class
    features = batch_features(problem, model)
    if draws(model):
        _check_texts(problem, model)
        changes.append((model.corrupt, ~seed, (hparams,)))  # not the numbers that the problem has drawn

    def changed(index, batch):
        for change, number, settings in changes:
            batch = change(batch, row_seeds(batch, number, index), *settings)
        return {name: tf.cast(batch[name], tf.int32) for name in features if name in batch}

    if changes and is_stream:
        batches = batches.enumerate().map(changed)
    elif changes:
        batches = batches.map(functools.partial(changed, tf.constant(0, tf.int64)))
    for change, *_ in changes:
        check_stateless(batches, change)
    if missing := sorted(features.keys() - batches.element_spec.keys()):
        raise UserError(
            f"{problem.full_name}: its batches have no {' and no '.join(missing)}. Expected each of `features` in the "
            "records, or from preprocess_example or corrupt."
        )
    return batches


def draws(model_class):
    """Returns whether a model has a `corrupt`: see `SequenceModel`."""
    return callable(getattr(model_class, "corrupt", None))


def batch_features(problem, model_class):
    """Returns {feature: rank} of a problem's batches, with those that a model's `corrupt` adds."""
    return {**problem.features, **(model_class.features if draws(model_class) else {})}


def _check_texts(problem, model_class):
    """Raises `UserError` unless a problem has what a model's `corrupt` is given: texts of texts."""
    if wrong := [f for f in ("inputs", "targets") if problem.features.get(f) != 2]:
        raise UserError(
            f"{model_class.__name__}: is for problems whose inputs and targets are texts; {problem.full_name} has no "
            f"such {wrong[0]}. Expected one such as translate_own."
        )


@tf.autograph.experimental.do_not_convert
def row_seeds(batch, seed, index):
    """Returns int32 [rows, 2], a seed for each row that depends on the arguments and the row's ids, not on padding.

    Args:
        batch: {feature: int32 [rows, length] or [rows]}, padded with 0.
        seed: int.
        index: int64 [], the index of the batch.
    """
    hashes = [tf.zeros([], tf.int32)] * 2
    for number, ids in enumerate(batch.values()):
        ids = tf.reshape(ids, [tf.shape(ids)[0], -1])
        positions = tf.cast(tf.range(tf.shape(ids)[1]), tf.uint32)
        words = threefry(
            (tf.cast(ids, tf.uint32), tf.constant(number, tf.uint32)), (positions, tf.zeros_like(positions))
        )
        visible = [tf.where(ids != 0, tf.bitcast(word, tf.int32), 0) for word in words]
        hashes = [total + tf.reduce_sum(word, 1) for total, word in zip(hashes, visible, strict=True)]
    key = threefry(_words(tf.constant(seed % 2**63, tf.int64)), _words(index))
    words_of_seeds = threefry(key, [tf.bitcast(word, tf.uint32) for word in hashes])
    return tf.stack([tf.bitcast(word, tf.int32) for word in words_of_seeds], 1)


def _words(number):
    """Returns the two uint32 words of an int64 scalar."""
    return tf.unstack(tf.bitcast(number, tf.uint32))
