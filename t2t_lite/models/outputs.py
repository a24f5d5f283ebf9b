"""Reads the outputs of models: logits, costs, state and attention weights."""

import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.registry import Registries
from t2t_lite.settings.reserved_names import BEFORE, COSTS, SHARES, STATE

# {kind of attention: (feature of the queries, feature of the keys)}
KINDS = {"encoder": ("inputs", "inputs"), "decoder": ("targets", "targets"), "memory": ("targets", "inputs")}


def named_outputs(outputs):
    """Splits the outputs of a model into logits and costs, each a dict by feature.

    Args:
        outputs: the logits of "targets", or a dict with the logits of each feature. The dict may also have "costs",
            {feature: costs}, "shares" (see `Sums.shares`) and "state".
    """
    logits = dict(outputs) if isinstance(outputs, dict) else {"targets": outputs}
    for name in (SHARES, STATE):
        logits.pop(name, None)
    return logits, logits.pop(COSTS, {})


def labels_of(logits, ids):
    """Returns the ids that the logits [..., V] of a feature should predict, flattened to [n]. Id 0 is not scored.

    Args:
        logits: float32 [batch, length, V] for all positions, or [n, V] for the positions whose id is not 0, in order.
            If the feature has no length axis, [batch, V].
        ids: int [batch, length]. If the feature has no length axis, [batch].
    """
    labels = tf.reshape(ids, [-1])
    is_of_nonzero = len(logits.shape) == len(ids.shape) == 2
    return tf.boolean_mask(labels, labels != 0) if is_of_nonzero else labels


def carries_state(model_class):
    """Returns whether models of a class carry a state from batch to batch: see `SequenceModel.initial_state`."""
    method = getattr(model_class, "initial_state", None)
    return method is not None and getattr(method, "__qualname__", "") != "SequenceModel.initial_state"


def batches_of(model_class):
    """Returns the subclass of `ExampleBatches` that makes the batches for a class of models.

    Raises:
        UserError: if the models carry a state, but no installed extra has batches of consecutive segments.
    """
    name = "segments" if carries_state(model_class) else "examples"
    if name not in Registries.batches:
        raise UserError(
            f"{model_class.__name__} carries a state from one segment of a text to the next, but no installed extra "
            "provides batches of segments. Install an extra that does."
        )
    return Registries.batches.get(name)


def with_state(model, batch, state, training):
    """Adds the state to a batch for a model. Rows whose text begins in this batch get the initial state.

    Args:
        model: keras.Model.
        batch: {feature: int ids}, with "before" if the model has a state.
        state: the state that the model returned for the previous batch; () if the model has no state.
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
    """Returns the state in a model's outputs, cast to the dtypes of the previous state, or () if there is none.

    Raises:
        UserError: if the structure or a shape of the new state differs from the previous state.
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
            f"the model's output {STATE!r} does not match its initial_state, {shapes}: {str(error).splitlines()[0]}"
        ) from error


def attention_weights(model, features):
    """Returns the attention weights of all layers and heads, from a teacher-forced pass without dropout.

    The model must have a method `attention_weights(features)`, which returns a dict:

    * "encoder" is self-attention over `inputs`, "decoder" is self-attention over `targets`, and "memory" is attention
      from `targets` to `inputs`. A model only returns the kinds of attention that it has: a language model has
      "decoder", and an encoder has "encoder". Each value is a list with one entry per attention layer, float [B, heads,
      queries, keys]. Rows sum to 1, and columns of padding are 0.
    * An encoder with an additional position for the whole row (BERT's [CLS]) returns this position as the first query
      and the first key of "encoder", [B, heads, 1 + S, 1 + S].
    * Row t of "decoder" and "memory" is the step that predicts target t. The input of this step is target t - 1, so
      column t of "decoder" is target t - 1, and column 0 is the position before the first target.

    Args:
        model: a keras.Model or an `Ensemble`.
        features: dict of int32 ids [B, length], padded with 0, with the model's inputs ("inputs" and "targets" for a
            translation model).

    Raises:
        UserError: if the model does not expose its attention weights.
    """
    if not hasattr(model, "attention_weights"):
        raise UserError(
            f"The model {type(model).__name__} does not expose its attention weights. Expected a model with a method "
            "attention_weights(features), such as t2t_lite.models.Transformer."
        )
    return model.attention_weights(features)
