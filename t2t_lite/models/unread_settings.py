"""Finds hyperparameters that are not read, because of the values of other hyperparameters."""

import fnmatch
import re

from t2t_lite.errors import LOGGER, counted
from t2t_lite.layers.layer_kinds import words_of
from t2t_lite.models.arguments import constructor_arguments, settings_without_effect
from t2t_lite.models.sequence_model import SequenceModel

_DECAYS = ("linear_decay", "exp_decay", "cosdecay", "multi_cycle_cos_decay")
_WARMUPS = (
    "linear_warmup", "rsqrt_decay", "rsqrt_normalized_decay", "exp_decay", "cosdecay", "single_cycle_cos_decay",
    "slanted_triangular", "multi_cycle_cos_decay",
)  # fmt: skip
# (names of hyperparameters, another hyperparameter, words): the names, which may end in *, are read only if the value
# of the other hyperparameter contains one of the words.
_READ_IF = (
    ("optimizer_adam_*", "optimizer", ("adam", "true_adam", "adam_w", "multistep_adam", "lamb")),
    ("optimizer_adafactor_*", "optimizer", ("adafactor",)),
    ("optimizer_adafactor_beta2", "optimizer_adafactor_decay_type", ("adam",)),
    ("optimizer_adafactor_memory_exponent", "optimizer_adafactor_decay_type", ("pow",)),
    ("optimizer_multistep_accumulate_steps", "optimizer", ("multistep_adam",)),
    ("learning_rate_constant", "learning_rate_schedule", ("constant",)),
    ("learning_rate_warmup_steps", "learning_rate_schedule", _WARMUPS),
    ("learning_rate_decay_steps", "learning_rate_schedule", _DECAYS),
    ("learning_rate_decay_rate learning_rate_decay_staircase", "learning_rate_schedule", ("exp_decay",)),
    ("mixed_precision_optimizer_init_loss_scale loss_scale_growth_steps", "dtype_policy", ("mixed_float16", "float16")),
)
_POSITION_SETTINGS = {"max_position": "emb", "position_layout": "timing"}  # by the value of `pos` that reads them


def warn_of_unread(names, hparams, model_class, where, varied=()):
    """Logs a warning for each hyperparameter in `names` that is not read, because of the values of other ones.

    Args:
        names: iterable of str, the hyperparameters that the user has set.
        hparams: HParams with all values.
        model_class: the run's model class. Of a class that may read any hyperparameter, only the settings of training
            are checked.
        where: str, the name of the flag in which the user has set them.
        varied: names of hyperparameters that do not have a single value, because a search varies them.
    """
    is_known = issubclass(model_class, SequenceModel) and not model_class.reads_any()
    for name in names:
        because = reason_unread(name, hparams, varied) or (
            is_known and _reason_of_model(name, hparams, model_class, varied)
        )
        if because:
            LOGGER.warning(f"{where}: {name} has no effect with {because}")


def describe_unused_kinds(model, hparams):
    """Returns a log line for each setting that lists a kind of layers for which the stacks do not have enough layers.

    Args:
        model: keras.Model, which may have no stacks.
        hparams: HParams, from which the model was made.
    """
    stacks = getattr(model, "stacks", dict)().values()
    depth = max((len({*map(id, stack.layers)}) for stack in stacks), default=0)
    settings, lines = hparams.settings(), []
    for name, text in hparams.kinds().items():
        kinds = (getattr(model, "config", None) or {}).get(settings[name].argument)
        if depth and isinstance(kinds, list) and any(kind not in kinds[:depth] for kind in kinds[depth:]):
            lines.append(
                f"{name}={text} lists {len(kinds)} kinds of layers, but the largest stack has "
                f"{counted(depth, 'layer')} (layers that share weights count once). The other kinds are not used."
            )
    return lines


def reason_unread(name, hparams, varied=()):
    """Returns the setting due to which a setting of training is not read, and what would read it; "" if it is read."""
    for patterns, other, words in _READ_IF:
        if other in varied or not any(fnmatch.fnmatch(name, pattern) for pattern in patterns.split()):
            continue
        if not {*re.findall(r"\w+", hparams.get(other))} & {*words}:
            return f"{other}={hparams.get(other)}. Expected {other} with {', '.join(words)}."
    return ""


def _reason_of_model(name, hparams, model_class, varied):
    """Like `reason_unread`, for the options of `pos` and of kinds of layers, such as `max_relative_position`."""
    if name in _POSITION_SETTINGS:
        is_read = "pos" in {*varied, *settings_without_effect(model_class)} or hparams.pos == _POSITION_SETTINGS[name]
        return "" if is_read else f"pos={hparams.pos}. Expected pos={_POSITION_SETTINGS[name]}."
    settings = hparams.settings()
    argument, _, option = settings[name].argument.partition(".")
    kinds = next((kinds for kinds, setting in settings.items() if option and setting.argument == argument), None)
    if kinds is None or kinds in varied:
        return ""
    is_read = any(option in options for _, options in words_of(constructor_arguments(hparams, model_class)[argument]))
    return "" if is_read else f"{kinds}={hparams.get(kinds)}, which does not have this option."
