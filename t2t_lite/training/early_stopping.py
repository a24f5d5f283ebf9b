"""When to stop before train_steps: tensor2tensor's rule (utils/metrics_hook.py), on what the run has logged."""

import dataclasses

from t2t_lite.errors import UserError, nearest
from t2t_lite.ranges import COUNT, METRIC_MOVE, check_settings, setting
from t2t_lite.training.evaluation import LESS_IS_BETTER


def has_metric_plateaued(steps, values, num_steps=100, delta=0.1, decrease=True):
    """Returns whether a metric has not moved by `delta` in the last `num_steps` steps (utils/metrics_hook.py).

    The value to beat is the newest one that is at least `num_steps` old; it is beaten when any later one is better by
    `delta` or more.

    Args:
        steps: list of int, ascending.
        values: list of float, the metric at these steps.
        num_steps: int, steps that it has to move in.
        delta: float, the smallest move that counts, in the metric's unit.
        decrease: bool, whether less is better.
    """
    before = [value for step, value in zip(steps, values, strict=True) if step <= steps[-1] - num_steps]
    if not before:
        return False
    gains = [before[-1] - value if decrease else value - before[-1] for value in values[len(before) :]]
    return all(gain < delta for gain in gains)


@dataclasses.dataclass(frozen=True)
class EarlyStopping:
    """The rule by which a run ends early. Raises `UserError` for a number out of range.

    Attributes:
        steps: int, stop when the metric has not moved for so many steps; 0: never.
        metric: str, of the dev evaluation.
        delta: float, the smallest move that counts.
        minimize: bool, whether less is better; None: as the metric has it.
    """

    steps: int = setting(0, limits=COUNT)
    metric: str = "loss"
    delta: float = setting(0.1, limits=METRIC_MOVE)
    minimize: bool | None = None

    def __post_init__(self):
        check_settings(self, limited_only=True)

    def check(self, names):
        """Raises `UserError` unless the metric is one of `names` and goes in the direction that was asked for."""
        if not self.steps:
            return
        if self.metric not in names:
            raise UserError(
                f"--eval_early_stopping_metric={self.metric}: not a metric of this run's evaluations. "
                f"{nearest(self.metric, names)} Expected one of {', '.join(names)}."
            )
        if self.minimize is not None and self.minimize != (self.metric in LESS_IS_BETTER):
            better = "less" if self.metric in LESS_IS_BETTER else "more"
            raise UserError(
                f"--eval_early_stopping_metric_minimize={str(self.minimize).lower()}: of {self.metric} {better} is "
                "better. Leave the flag out."
            )

    def reason(self, history):
        """Returns why to stop now, a str, or None to go on.

        Args:
            history: list of (step, {metric: value}), by step, as `Evaluations.history` returns it.
        """
        points = [(step, metrics[self.metric]) for step, metrics in history if self.metric in metrics]
        if not self.steps or not points:
            return None
        steps, values = zip(*points, strict=True)
        decrease = self.metric in LESS_IS_BETTER
        if not has_metric_plateaued(steps, values, self.steps, self.delta, decrease):
            return None
        at = max(i for i, step in enumerate(steps) if step <= steps[-1] - self.steps)
        after = (min if decrease else max)(values[at + 1 :])
        return (
            f"{self.metric} was {values[at]:g} at step {steps[at]:,} and {after:g} at best in the "
            f"{steps[-1] - steps[at]:,} steps since: a move of less than {self.delta:g} in {self.steps:,} steps"
        )
