"""The one training objective: losses of the features that a model predicts, and its own costs."""

from typing import NamedTuple

import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.models.outputs import labels_of, named_outputs
from t2t_lite.settings.reserved_names import SHARES
from t2t_lite.training.losses import cross_entropy, squared_error


class Sums(NamedTuple):
    """Sums over the ids of a batch that are not padding. Add those of batches and replicas.

    Attributes:
        objective: {feature: float32 scalar}, of each predicted feature the label-smoothed cross-entropy, or of numbers
            the squared error.
        nats: {feature: float32 scalar}, the same without smoothing, and without a gradient.
        cost: {feature: float32 scalar}, the model's own costs.
        added: {"layers": float32 scalar}, a step's batch's share of what layers add to the loss themselves; empty if
            they add nothing.
        shares: {name: {feature: list of float32 [n]}}, one for each layer: what a model counts in training, such as the
            positions that each of n experts computes; empty if it counts nothing.
    """

    objective: dict
    nats: dict
    cost: dict
    added: dict = {}  # noqa: RUF012
    shares: dict = {}  # noqa: RUF012


def objective_sums(outputs, batch, label_smoothing=0.0, keeps_softmax=True):
    """Returns the Sums of a batch.

    Args:
        outputs: what the model returned: see `named_outputs`. Logits are float32, shaped as `labels_of` says; costs are
            float [batch, length], with the shape of their feature's ids.
        batch: dict of int ids, 0 is padding or not scored.
        label_smoothing: float, ε in [0, 1), of ids of a vocabulary; classes are not smoothed.
        keeps_softmax: bool, whether the softmax is kept for the gradient; False: XLA makes it again.

    Raises:
        UserError: the outputs lack the targets, or are of a feature that the batch lacks.
    """
    logits, costs = named_outputs(outputs)
    unknown = [feature for feature in (*logits, *costs) if feature not in batch]
    if unknown or "targets" not in logits:
        what = f"{unknown[0]!r}, which is no feature of its batches" if unknown else f"{', '.join(logits) or 'nothing'}"
        raise UserError(f"the model predicts {what}. Expected targets, and others among: {', '.join(batch)}.")
    each = {f: _loss(logits[f], labels_of(logits[f], batch[f]), label_smoothing, keeps_softmax) for f in logits}
    return Sums(
        {feature: objective for feature, (objective, _) in each.items()},
        {feature: nats for feature, (_, nats) in each.items()},
        {f: tf.reduce_sum(tf.where(batch[f] != 0, tf.cast(cost, tf.float32), 0.0)) for f, cost in costs.items()},
        shares=outputs.get(SHARES, {}) if isinstance(outputs, dict) else {},
    )


def layer_losses(model, batches):
    """Returns `Sums.added` after a call of a model: what `add_loss` and regularizers added, as in Keras' `fit`.

    Sums count for a whole step, these once for each batch, so that each batch has its share: the step's is the mean.

    Args:
        model: keras.Model, just called.
        batches: int, of a step.
    """
    losses = [tf.reduce_sum(tf.cast(loss, tf.float32)) for loss in model.losses]
    return {"layers": tf.add_n(losses) / batches} if losses else {}


def _loss(logits, labels, label_smoothing, keeps_softmax):
    """Returns (objective, nats) of a feature; both are the squared error of numbers, which have one logit."""
    if logits.shape[-1] == 1:
        error = squared_error(logits, labels)
        return error, tf.stop_gradient(error)
    if logits.shape[-1] is None and label_smoothing:
        raise UserError(f"label_smoothing={label_smoothing}: places in a text are not smoothed. Expected 0.")
    return cross_entropy(logits, labels, label_smoothing, keeps_softmax)


def further_losses(model, features):
    """Returns the names in logs, "loss_<feature>" and "cost_<feature>", of what a model computes beside its loss.

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
    """Returns the loss, a float32 scalar: each sum over its feature's count, and what layers add.

    Args:
        sums: Sums.
        counts: {feature: float32 scalar}, how many ids of the whole step are not 0. One of 0 adds nothing.
    """
    parts = [*sums.objective.items(), *sums.cost.items()]
    means = [tf.math.divide_no_nan(total, counts[feature]) for feature, total in parts]
    return tf.add_n([*means, *sums.added.values()])
