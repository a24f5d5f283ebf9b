"""The objective of a search: a metric of evaluations, and whether higher is better."""

import dataclasses

from t2t_lite.errors import UserError, nearest
from t2t_lite.evaluation.metrics import lower_is_better, metric_names
from t2t_lite.settings import tensor2tensor_names
from t2t_lite.training.best_checkpoint import default_metric


@dataclasses.dataclass(frozen=True)
class Objective:
    """A metric of evaluations and its direction.

    Attributes:
        metric: str.
        maximize: bool.
    """

    metric: str
    maximize: bool

    def best(self, values):
        """Returns the best of several values."""
        return (max if self.maximize else min)(values)


def choose_objective(problem, hparams, name=None, maximize=None, best_metric=None):
    """Returns the Objective of a search.

    Args:
        problem: Problem.
        hparams: HParams.
        name: str, a metric, or tensor2tensor's name of one, such as metrics-<problem>/neg_log_perplexity; None:
            `best_metric`.
        maximize: bool, the direction that the user expects; None: that of the metric.
        best_metric: str, the metric by which a run keeps its best model; None: the default one.

    Raises:
        UserError: an unknown metric, the wrong direction, or two metrics that contradict each other.
    """
    if best_metric == "none":
        raise UserError("--best_checkpoint_metric=none: a search compares the best models of its trials. Leave it out.")
    names = metric_names(problem, hparams)
    metric, is_negated = _here(name, names) if name else (best_metric or default_metric(names), False)
    # Only the model knows its further losses; its Trainer checks them.
    if metric not in names and not metric.startswith(("loss_", "cost_")):
        flag = f"--autotune_objective={name}" if name else f"--best_checkpoint_metric={best_metric}"
        raise UserError(
            f"{flag}: not a metric of these runs' evaluations. {nearest(metric, names, end=' ')}Expected one of "
            f"{', '.join(names)}."
        )
    if best_metric not in (None, metric):
        raise UserError(
            f"--best_checkpoint_metric={best_metric} and --autotune_objective={name}: each trial keeps the model that "
            "is best by the objective. Leave one of them out."
        )
    lower = lower_is_better(metric)
    if maximize is not None and maximize != (lower == is_negated):
        better = "less" if lower != is_negated else "more"
        raise UserError(
            f"--autotune_maximize={str(maximize).lower()}: of {name or metric} {better} is better. Leave the flag out."
        )
    return Objective(metric, not lower)


def _here(name, names):
    """Returns (this package's name of a metric, whether `name` means its negative)."""
    last = name.rsplit("/", 1)[-1]
    if last in names:
        return last, False
    return tensor2tensor_names.METRICS.get(last, last), last == "neg_log_perplexity"
