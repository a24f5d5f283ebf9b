"""The training objective: losses of the features that a model predicts, and the model's costs."""

from typing import NamedTuple

import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.models.outputs import labels_of, named_outputs
from t2t_lite.settings.reserved_names import SHARES
from t2t_lite.training.losses import cross_entropy, squared_error


class Sums(NamedTuple):
    """Sums over the non-padding ids of a batch, which are added over batches and replicas.

    Attributes:
        objective: {feature: float32 scalar}, for each predicted feature the label-smoothed cross-entropy, or the
            squared error if it is a number.
        nats: {feature: float32 scalar}, the same without smoothing and gradient.
        cost: {feature: float32 scalar}, the model's costs.
        added: {"layers": float32 scalar}, a batch's share of the losses that layers add in its step; empty if they add
            none.
        shares: {name: {feature: list of float32 [n], one per layer}}, the model's counts in training, such as the
            number of positions that each of n experts computes; empty without counts.
    """

    objective: dict
    nats: dict
    cost: dict
    added: dict = {}  # noqa: RUF012
    shares: dict = {}  # noqa: RUF012


def objective_sums(outputs, batch, label_smoothing=0.0, keeps_softmax=True):
    """Returns the Sums of a batch.

    Args:
        outputs: the model's outputs: see `named_outputs`. Logits are float32, with a shape as in `labels_of`; costs are
            float [batch, length], with the shape of their feature's ids.
        batch: dict of int ids; 0 is padding, or not scored.
        label_smoothing: float, ε in [0, 1), for ids of a vocabulary; classes are not smoothed.
        keeps_softmax: bool, whether the softmax is kept for the gradient; False: XLA recomputes it.

    Raises:
        UserError: the outputs lack the targets, or have a feature that the batch lacks.
    """
    logits, costs = named_outputs(outputs)
    unknown = [feature for feature in (*logits, *costs) if feature not in batch]
    if unknown or "targets" not in logits:
        what = f"{unknown[0]!r}, which its batches lack" if unknown else f"{', '.join(logits) or 'nothing'}"
        raise UserError(f"the model predicts {what}. Expected targets, and further features of: {', '.join(batch)}.")
    each = {f: _loss(logits[f], labels_of(logits[f], batch[f]), label_smoothing, keeps_softmax) for f in logits}
    return Sums(
        {feature: objective for feature, (objective, _) in each.items()},
        {feature: nats for feature, (_, nats) in each.items()},
        {f: tf.reduce_sum(tf.where(batch[f] != 0, tf.cast(cost, tf.float32), 0.0)) for f, cost in costs.items()},
        shares=outputs.get(SHARES, {}) if isinstance(outputs, dict) else {},
    )


def layer_losses(model, batches):
    """Returns `Sums.added` after a call of a model: the losses of `add_loss` and regularizers, as in Keras' `fit`.

    Layers add them once per batch. Each batch therefore contributes a share, so that a step's sum is their mean.

    Args:
        model: keras.Model, just called.
        batches: int, number of a step's batches.
    """
    losses = [tf.reduce_sum(tf.cast(loss, tf.float32)) for loss in model.losses]
    return {"layers": tf.add_n(losses) / batches} if losses else {}


def _loss(logits, labels, label_smoothing, keeps_softmax):
    """Returns (objective, nats) of a feature; both are the squared error for a number, which has one logit."""
    if logits.shape[-1] == 1:
        error = squared_error(logits, labels)
        return error, tf.stop_gradient(error)
    if logits.shape[-1] is None and label_smoothing:
        raise UserError(f"label_smoothing={label_smoothing}: positions in a text cannot be smoothed. Expected 0.")
    return cross_entropy(logits, labels, label_smoothing, keeps_softmax)


def further_losses(model, features):
    """Returns the names in logs, "loss_<feature>" and "cost_<feature>", of a model's further losses and its costs.

    Args:
        model: keras.Model, which is traced.
        features: {feature: rank} of a batch.

    Raises:
        UserError: as `objective_sums`.
    """

    def sums(batch):
        return objective_sums(model(batch, training=False), batch)

    batch = {feature: tf.TensorSpec([None] * rank, tf.int32) for feature, rank in features.items()}
    found = tf.function(sums, autograph=False).get_concrete_function(batch).structured_outputs
    losses = (f"loss_{feature}" for feature in found.nats if feature != "targets")
    return *losses, *(f"cost_{feature}" for feature in found.cost)


def mean_loss(sums, counts):
    """Returns the loss, a float32 scalar: each sum divided by its feature's count, and the losses of layers.

    Args:
        sums: Sums.
        counts: {feature: float32 scalar}, number of non-zero ids in the whole step. A feature of count 0 adds nothing.
    """
    parts = [*sums.objective.items(), *sums.cost.items()]
    means = [tf.math.divide_no_nan(total, counts[feature]) for feature, total in parts]
    return tf.add_n([*means, *sums.added.values()])
