"""The training objective: the losses of all predicted features, plus the model's costs."""

from typing import NamedTuple

import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.models.outputs import labels_of, named_outputs
from t2t_lite.settings.reserved_names import SHARES
from t2t_lite.training.losses import cross_entropy, squared_error


class Sums(NamedTuple):
    """Sums of losses and costs over the non-padding ids of a batch. Sums of batches and replicas can be added.

    Attributes:
        objective: {feature: float32 scalar}, the label-smoothed cross-entropy of each predicted feature, or the squared
            error if the feature is a number.
        nats: {feature: float32 scalar}, the unsmoothed loss of each predicted feature, which has no gradient.
        cost: {feature: float32 scalar}, the model's costs.
        added: {"layers": float32 scalar}, a batch's share of the losses that layers add per step; empty if layers
            add no losses.
        shares: {name: {feature: list of float32 [n], one per layer}}, the model's counts in training, such as the
            number of positions that each of n experts computes; empty if there are no counts.
    """

    objective: dict
    nats: dict
    cost: dict
    added: dict = {}  # noqa: RUF012
    shares: dict = {}  # noqa: RUF012


def objective_sums(outputs, batch, label_smoothing=0.0, keeps_softmax=True):
    """Computes the Sums of a batch from the outputs of a model.

    Args:
        outputs: the model's outputs: see `named_outputs`. Logits are float32, with shapes as in `labels_of`. Costs are
            float [batch, length], with the same shape as the ids of their feature.
        batch: dict of int ids, where 0 is padding or not scored.
        label_smoothing: float, ε in [0, 1), for vocabulary ids. Classes are not smoothed.
        keeps_softmax: bool, whether the softmax is stored for the gradient. If False, XLA recomputes it.

    Raises:
        UserError: if the outputs have no logits for the targets, or have a feature that the batch lacks.
    """
    logits, costs = named_outputs(outputs)
    unknown = [feature for feature in (*logits, *costs) if feature not in batch]
    if unknown or "targets" not in logits:
        what = f"{unknown[0]!r}, which the batches lack" if unknown else f"{', '.join(logits) or 'nothing'}"
        raise UserError(
            f"the model predicts {what}. Expected targets, and only features of the batches: {', '.join(batch)}."
        )
    by_feature = {f: _loss(logits[f], labels_of(logits[f], batch[f]), label_smoothing, keeps_softmax) for f in logits}
    return Sums(
        {feature: objective for feature, (objective, _) in by_feature.items()},
        {feature: nats for feature, (_, nats) in by_feature.items()},
        {f: tf.reduce_sum(tf.where(batch[f] != 0, tf.cast(cost, tf.float32), 0.0)) for f, cost in costs.items()},
        shares=outputs.get(SHARES, {}) if isinstance(outputs, dict) else {},
    )


def layer_losses(model, batches):
    """Returns `Sums.added` for the last call of a model: losses from `add_loss` and regularizers, as in Keras' `fit`.

    Layers add losses in each batch. Each batch contributes a share of these losses, so that the sum over a step is the
    mean over the step's batches.

    Args:
        model: keras.Model, which has just been called.
        batches: int, the number of batches per step.
    """
    losses = [tf.reduce_sum(tf.cast(loss, tf.float32)) for loss in model.losses]
    return {"layers": tf.add_n(losses) / batches} if losses else {}


def _loss(logits, labels, label_smoothing, keeps_softmax):
    """Returns (objective, nats) of a feature; for a number, which has one logit, both values are the squared error."""
    if logits.shape[-1] == 1:
        error = squared_error(logits, labels)
        return error, tf.stop_gradient(error)
    if logits.shape[-1] is None and label_smoothing:
        raise UserError(f"label_smoothing={label_smoothing}: labels that are positions cannot be smoothed. Expected 0.")
    return cross_entropy(logits, labels, label_smoothing, keeps_softmax)


def further_losses(model, features):
    """Returns the log names of a model's other losses and its costs, "loss_<feature>" and "cost_<feature>".

    Args:
        model: keras.Model, which is traced.
        features: {feature: rank}, the features of a batch.

    Raises:
        UserError: see `objective_sums`.
    """

    def sums(batch):
        return objective_sums(model(batch, training=False), batch)

    batch = {feature: tf.TensorSpec([None] * rank, tf.int32) for feature, rank in features.items()}
    sums_of_batch = tf.function(sums, autograph=False).get_concrete_function(batch).structured_outputs
    losses = (f"loss_{feature}" for feature in sums_of_batch.nats if feature != "targets")
    return *losses, *(f"cost_{feature}" for feature in sums_of_batch.cost)


def mean_loss(sums, counts):
    """Returns the loss, a float32 scalar: each sum divided by the count of its feature, plus the losses of layers.

    Args:
        sums: Sums.
        counts: {feature: float32 scalar}, the number of non-zero ids in the whole step. A feature with count 0 does not
            contribute to the loss.
    """
    parts = [*sums.objective.items(), *sums.cost.items()]
    means = [tf.math.divide_no_nan(total, counts[feature]) for feature, total in parts]
    return tf.add_n([*means, *sums.added.values()])
