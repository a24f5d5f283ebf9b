"""What a model may return: logits of its targets, or of several features, costs of its own, and a state."""

import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.registry import Registries
from t2t_lite.settings.reserved_names import BEFORE, COSTS, SHARES, STATE


def named_outputs(outputs):
    """Returns (logits, costs), two dicts by feature, of what a model returned.

    Args:
        outputs: logits of "targets", or a dict {feature: logits, "costs": {feature: costs}, "shares": see
            `Sums.shares`, "state": any} without or with the last three.
    """
    logits = dict(outputs) if isinstance(outputs, dict) else {"targets": outputs}
    for name in (SHARES, STATE):
        logits.pop(name, None)
    return logits, logits.pop(COSTS, {})


def labels_of(logits, ids):
    """Returns the ids [n] that belong to the logits [..., V] of a feature, flattened; 0 is not scored.

    Args:
        logits: float32 [batch, length, V] of every position, or [n, V] of those that are not 0, in their order; of a
            feature without a length [batch, V].
        ids: int [batch, length]; of a feature without a length [batch].
    """
    labels = tf.reshape(ids, [-1])
    is_of_nonzero = len(logits.shape) == len(ids.shape) == 2
    return tf.boolean_mask(labels, labels != 0) if is_of_nonzero else labels


def carries_state(model_class):
    """Returns whether models of a class carry a state from batch to batch: see `SequenceModel.initial_state`."""
    own = getattr(model_class, "initial_state", None)
    return own is not None and getattr(own, "__qualname__", "") != "SequenceModel.initial_state"


def batches_of(model_class):
    """Returns the class of the batches that models of a class read, an `ExampleBatches`.

    Raises:
        UserError: they carry a state, and nothing that is installed has batches that follow one another.
    """
    name = "segments" if carries_state(model_class) else "examples"
    if name not in Registries.batches:
        raise UserError(
            f"{model_class.__name__}: carries a state from one segment of a text to the next, and nothing here has "
            "batches of segments. Expected the extra that is made for such models."
        )
    return Registries.batches.get(name)


def with_state(model, batch, state, training):
    """Returns a batch with the state that a model reads, which is the initial one in rows that begin in this batch.

    Args:
        model: keras.Model.
        batch: {feature: int ids}, with "before" unless there is no state.
        state: what the model returned for the batch before; (): there is no state.
        training: bool.
    """
    if not (leaves := tf.nest.flatten(state)):
        return batch
    begins = batch[BEFORE] == 0

    def chosen(initial, carried):
        return tf.where(tf.reshape(begins, [-1] + [1] * (len(carried.shape) - 1)), initial, carried)

    initial = model.initial_state(leaves[0].shape[0], training=training)
    return {**batch, STATE: tf.nest.map_structure(chosen, initial, state)}


def next_state(outputs, state):
    """Returns the state that a model returned, in the dtypes of the one that it read; (): there is none.

    Raises:
        UserError: it is of another structure or shape.
    """
    if not tf.nest.flatten(state):
        return ()
    try:
        new = outputs[STATE] if isinstance(outputs, dict) else None
        tf.nest.assert_same_structure(new, state)
        return tf.nest.map_structure(lambda n, old: tf.ensure_shape(tf.cast(n, old.dtype), old.shape), new, state)
    except (KeyError, ValueError, TypeError) as error:
        shapes = tf.nest.map_structure(lambda old: tuple(old.shape), state)
        raise UserError(
            f"the model returned no {STATE!r} like that of its initial_state, {shapes}: {str(error).splitlines()[0]}"
        ) from error
