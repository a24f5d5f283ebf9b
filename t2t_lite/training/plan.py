"""What a run was asked to do, beside problem, model and hyperparameters: `hparams.json` remembers it as its "plan".

Its values go by the names of t2t-trainer's flags, so that a command takes from it what it was not told again.
"""

import logging
import os

from t2t_lite.errors import located
from t2t_lite.runs.run_config import FILE_NAME
from t2t_lite.settings.ranges import settings_of
from t2t_lite.training.settings import (
    EARLY,
    CheckpointSettings,
    DeviceSettings,
    EarlyStopping,
    EvaluationSettings,
    LengthSettings,
    LogSettings,
)

_LOGGER = logging.getLogger("t2t_lite")
# What a `Trainer` has that was told nothing. These very objects stand for the settings of an earlier run.
UNTOLD = {
    "evaluation": EvaluationSettings(),
    "checkpoints": CheckpointSettings(),
    "devices": DeviceSettings(),
    "log": LogSettings(),
}
# hparams.json has the former two in any case; the last is of one process.
_NOT_IN_PLAN = ("xla_compile", "xla_shapes", "profile")
_SCHEDULES = {False: "continuous_train_and_eval", True: "train_eval_and_decode"}  # by whether it translates all
_WITHOUT_EVALUATIONS = "train"


def plan_of(train_steps, evaluation, checkpoints, devices, log):
    """Returns the plan, a dict of JSON values, that the arguments of a `Trainer` describe."""
    plan = {"train_steps": train_steps, "schedule": _WITHOUT_EVALUATIONS}
    for settings in filter(None, (checkpoints, devices, log, evaluation)):
        plan |= {name: getattr(settings, name) for name in _names(type(settings))}
    if evaluation is not None:
        early = evaluation.early_stopping
        plan |= {f"{EARLY}{name}": getattr(early, name) for name in _names(EarlyStopping)}
        plan |= {"schedule": _SCHEDULES[evaluation.translate_all], "search": evaluation.search}
    return plan


def told(plan, output_dir):
    """Returns the arguments of a `Trainer` that a plan describes, {name: settings}, and "train_steps".

    Args:
        plan: dict, as `plan_of` returns it; what it lacks has its default.
        output_dir: str, of the run, for messages.

    Raises:
        UserError: a value of another type, or out of range.
    """
    with located(os.path.join(output_dir, FILE_NAME)):
        found = {name: _read(plan, type(settings)) for name, settings in UNTOLD.items() if name != "evaluation"}
        found["train_steps"] = _read(plan, LengthSettings).train_steps
        if plan.get("schedule") == _WITHOUT_EVALUATIONS:
            return found | {"evaluation": None}
        further = {"search": plan.get("search"), "translate_all": plan.get("schedule") == _SCHEDULES[True]}
        early = _read(plan, EarlyStopping, EARLY)
        return found | {"evaluation": _read(plan, EvaluationSettings, early_stopping=early, **further)}


def _read(plan, settings, prefix="", **further):
    declared = settings_of(settings)
    names = [name for name in _names(settings) if f"{prefix}{name}" in plan]
    return settings(**{name: declared[name].typed(plan[f"{prefix}{name}"]) for name in names}, **further)


def _names(settings):
    """Returns the names of a class's settings that a plan holds."""
    declared = settings_of(settings).values()
    return [setting.name for setting in declared if setting.meaning and setting.name not in _NOT_IN_PLAN]


def describe(plan):
    """Returns a plan as a line for the log: its steps, and what else is not as it is by default."""
    default = plan_of(LengthSettings().train_steps, **UNTOLD)
    other = [n for n, value in plan.items() if (value != default[n] if n in default else value)]
    return ", ".join(f"{name}={plan[name]}" for name in dict.fromkeys(["train_steps", *other]))


def warn_of_no_plan(output_dir, before, train_steps):
    """Warns that a run, whose `hparams.json` is `before`, does not say for how long it was to train."""
    if before and "plan" not in before:
        _LOGGER.warning(
            f"{os.path.join(output_dir, FILE_NAME)}: does not say for how long the run was to train: "
            f"train_steps={train_steps:,}, the default. Expected --train_steps=N, as the run began."
        )


def tell_changes(before, now, optimizer):
    """Says what a resumed run is asked to do that it was not before; returns that, {name: [old, new]}.

    Args:
        before, now: plans.
        optimizer: the run's, built and restored, with the schedule of `now`.
    """
    from t2t_lite.training.optimization.schedules import describe_other_length  # needs Keras, unlike the rest

    changed = {name: [before[name], now[name]] for name in before if before[name] != now[name]}
    if changed:
        differing = ", ".join(f"{name}: {old} -> {new}" for name, (old, new) in changed.items())
        _LOGGER.info(f"unlike before: {differing}")
    if "train_steps" in changed and (other := describe_other_length(optimizer, before["train_steps"])):
        _LOGGER.warning(other)
    return changed
