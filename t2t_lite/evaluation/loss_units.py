"""Converts a loss per id into a loss per unit, such as words, dimensions of an image or notes of a piece."""

import math

from t2t_lite.errors import UserError

TEXT_MEASURES = (
    *(f"{measure}_per_{unit}" for unit in ("word", "character") for measure in ("nats", "perplexity")),
    "bits_per_character",
    "bits_per_byte",
)
_MEASURES = {
    "nats": lambda nats: nats,
    "perplexity": lambda nats: math.exp(min(nats, 80.0)),
    "bits": lambda nats: nats / math.log(2),
}


def check_loss_metrics(problem):
    """Raises `UserError` unless all `Problem.loss_metrics` are losses per unit, such as "bits_per_dim"."""
    for name in problem.loss_metrics:
        measure, per, unit = name.partition("_per_")
        if measure not in _MEASURES or not (per and unit):
            expected = ", ".join(f"{measure}_per_<unit>" for measure in _MEASURES)
            raise UserError(f"{problem.name}: loss_metrics has {name!r}. Expected names such as {expected}.")


def losses_by_unit(nats, counts, names):
    """Converts a mean loss per id to {name of a measure: loss per unit, a float}.

    Args:
        nats: float, the mean loss per id.
        counts: {"id" or a unit such as "word": int}, how many ids and units a split has; a unit may be missing. If only
            part of the split is evaluated, the whole split's ratio of ids to units is used, as in tensor2tensor's
            tables.
        names: a problem's `loss_metrics`, such as "bits_per_dim"; the last part of a name is the unit.
    """
    losses = {}
    for name in names:
        measure, _, unit = name.partition("_per_")
        if counts.get(unit):
            losses[name] = _MEASURES[measure](nats * counts["id"] / counts[unit])
    return losses
