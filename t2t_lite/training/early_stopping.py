"""When to stop before train_steps: tensor2tensor's rule (utils/metrics_hook.py), on what the run has logged."""

from t2t_lite.errors import UserError, nearest
from t2t_lite.evaluation.metrics import lower_is_better


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


def check_early_stopping(rule, names):
    """Raises `UserError` unless a rule's metric is one of `names`, a tuple, and goes in the direction asked for."""
    if not rule.steps:
        return
    if rule.metric not in names:
        raise UserError(
            f"--eval_early_stopping_metric={rule.metric}: not a metric of this run's evaluations. "
            f"{nearest(rule.metric, names)} Expected one of {', '.join(names)}."
        )
    if rule.metric_minimize not in (None, lower_is_better(rule.metric)):
        better = "less" if lower_is_better(rule.metric) else "more"
        raise UserError(
            f"--eval_early_stopping_metric_minimize={str(rule.metric_minimize).lower()}: of {rule.metric} {better} is "
            "better. Leave the flag out."
        )


def reason_to_stop(rule, history):
    """Returns why to stop now, a str, or None to go on.

    Args:
        rule: `EarlyStopping`.
        history: list of (step, {metric: value}), by step, as `monitor.history` returns it.
    """
    points = [(step, metrics[rule.metric]) for step, metrics in history if rule.metric in metrics]
    if not rule.steps or not points:
        return None
    steps, values = zip(*points, strict=True)
    decrease = lower_is_better(rule.metric)
    if not has_metric_plateaued(steps, values, rule.steps, rule.metric_delta, decrease):
        return None
    at = max(i for i, step in enumerate(steps) if step <= steps[-1] - rule.steps)
    after = (min if decrease else max)(values[at + 1 :])
    return (
        f"{rule.metric} was {values[at]:g} at step {steps[at]:,} and {after:g} at best in the "
        f"{steps[-1] - steps[at]:,} steps since: a move of less than {rule.metric_delta:g} in {rule.steps:,} steps"
    )
