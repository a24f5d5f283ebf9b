"""The outputs of models: logits, costs, a state, attention weights; and models whose weights only have shapes."""

import concurrent.futures

import keras
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.models.fine_tuning import fine_tune
from t2t_lite.models.sequence_model import SequenceModel, call_on_ones
from t2t_lite.registry import Registries
from t2t_lite.settings.reserved_names import BEFORE, COSTS, SHARES, STATE

# {kind of attention: (the feature that attends, the feature that it attends to)}
KINDS = {"encoder": ("inputs", "inputs"), "decoder": ("targets", "targets"), "memory": ("targets", "inputs")}


def named_outputs(outputs):
    """Splits the outputs of a model into (logits, costs), two dicts by feature.

    Args:
        outputs: logits of "targets", or a dict {feature: logits, "costs": {feature: costs}, "shares": see
            `Sums.shares`, "state": any}; the last three are optional.
    """
    logits = dict(outputs) if isinstance(outputs, dict) else {"targets": outputs}
    for name in (SHARES, STATE):
        logits.pop(name, None)
    return logits, logits.pop(COSTS, {})


def labels_of(logits, ids):
    """Returns the ids [n] that belong to the logits [..., V] of a feature, flattened; 0 is not scored.

    Args:
        logits: float32 [batch, length, V] for every position, or [n, V] for those that are not 0, in order; for a
            feature without a length [batch, V].
        ids: int [batch, length]; for a feature without a length [batch].
    """
    labels = tf.reshape(ids, [-1])
    is_of_nonzero = len(logits.shape) == len(ids.shape) == 2
    return tf.boolean_mask(labels, labels != 0) if is_of_nonzero else labels


def carries_state(model_class):
    """Returns whether models of a class pass a state from batch to batch: see `SequenceModel.initial_state`."""
    own = getattr(model_class, "initial_state", None)
    return own is not None and getattr(own, "__qualname__", "") != "SequenceModel.initial_state"


def batches_of(model_class):
    """Returns the class of the batches that models of a class read, an `ExampleBatches`.

    Raises:
        UserError: they pass a state on, but no installed extra has batches that continue one another.
    """
    name = "segments" if carries_state(model_class) else "examples"
    if name not in Registries.batches:
        raise UserError(
            f"{model_class.__name__}: carries a state from one segment of a text to the next, but nothing here makes "
            "batches of segments. Install the extra for such models."
        )
    return Registries.batches.get(name)


def with_state(model, batch, state, training):
    """Returns a batch with the state that a model reads; rows that begin in this batch have the initial state.

    Args:
        model: keras.Model.
        batch: {feature: int ids}, with "before" if the model has a state.
        state: the state that the model returned for the previous batch; (): the model has none.
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
    """Returns the state from the outputs of a model, in the dtypes of the state that it read; () without a state.

    Raises:
        UserError: it has another structure or shape.
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
            f"the model returned no {STATE!r} of the form of its initial_state, {shapes}: {str(error).splitlines()[0]}"
        ) from error


def attention_weights(model, features):
    """Returns the attention weights of every layer and head, from one teacher-forced pass without dropout.

    A model needs a method `attention_weights(features)` with this result:

    * "encoder": self-attention over `inputs`; "decoder": self-attention over `targets`; "memory": from `targets` to
      `inputs`. A model returns the kinds that it has: a language model "decoder", an encoder "encoder". Each is a
      list with one entry per layer that attends, float [B, heads, queries, keys], whose rows sum up to 1; columns of
      padding are 0.
    * Row t of "decoder" and "memory" is the step that predicts target t. Its input is target t - 1, so column t of
      "decoder" is target t - 1, and column 0 is the beginning, before the first target.

    Args:
        model: a keras.Model or an `Ensemble`.
        features: dict of int32 ids [B, length], padded with 0, the inputs of the model: "inputs" and "targets" for a
            translation model.

    Raises:
        UserError: the model does not expose its attention weights.
    """
    if not hasattr(model, "attention_weights"):
        raise UserError(
            f"The model {type(model).__name__} does not expose its attention weights. Expected a model with a method "
            "attention_weights(features), such as t2t_lite.models.Transformer."
        )
    return model.attention_weights(features)


def shapes_only(model_class, hparams, vocab_size, target_vocab_size=None, features=SequenceModel.features):
    """Makes a registered model whose weights have shapes but no values, which takes neither time nor memory.

    A model for which this is impossible, or that is only built when it is called on data, is made with values.

    Args:
        model_class: a registered class with `from_hparams`.
        hparams: HParams.
        vocab_size: int, ids of the inputs.
        target_vocab_size: int; None: shared with the inputs.
        features: {feature: rank} to call a model without `features` on.

    Raises:
        UserError: a hyperparameter that the model does not support.
    """

    def make():
        model = model_class.from_hparams(hparams, vocab_size, target_vocab_size)
        if not model.built or not model.weights:
            call_on_ones(model, features)
        fine_tune(model, hparams)
        return model

    def make_shapes():
        with keras.StatelessScope(initialize_variables=False):
            return make()

    # Keras initializes variables without values when the next scope of their thread ends. This thread ends before.
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        try:
            return thread.submit(make_shapes).result()
        except Exception:  # the next line raises mistakes in hyperparameters again, but no other errors
            return make()
