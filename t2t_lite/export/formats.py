"""Describes which models each export format supports, for the exporters and `t2t-trainer --describe`.

The format SavedModel is described in this module. For any other format, a function that returns a `Format` is
registered with `@registry.register_export_format("name")`.
"""

import inspect

from t2t_lite.decoding.search.adapters import searches
from t2t_lite.errors import LOGGER, UserError
from t2t_lite.layers.quantization import check_plain_weights
from t2t_lite.models.arguments import hparam_of
from t2t_lite.registry import Registries
from t2t_lite.settings.config import HParams
from t2t_lite.settings.ranges import settings_of

_SAVED_MODEL = "saved_model"
# Options that do not matter to any format: sizes of vocabularies, and options that are only used in training.
_TRAINING = {
    "vocab_size", "target_vocab_size", "kernel_initializer", "bias_initializer",
    *(s.argument for s in settings_of(HParams).values() if not s.fixed),
}  # fmt: skip


class Format:
    """An export format for models of one class. Subclasses may support models of several classes.

    Args:
        label: str, its name in messages.
        model: the supported class of this package.
        supported: function that takes a model's config and returns {argument of its constructor: tuple of the supported
            values, or None for any value}. All other arguments must have their default values.
    """

    def __init__(self, label, model=None, supported=None):
        self._label = label
        self._model = model
        self._supported = supported

    def label(self, model, encoders=None):
        """Returns the format's name in messages about a model."""
        return self._label

    def obstacles(self, model, encoders=None):
        """Returns all reasons why the format cannot hold a model, a list of str."""
        return class_obstacles(model, {self._model}) or option_obstacles(model, self._supported(model.config))

    def answer(self, model, encoders=None):
        """Returns how this format supports a model that has no obstacles: "yes", or a str with details."""
        return "yes"


class _SavedModel(Format):
    def obstacles(self, model, encoders=None):
        return ["it uses its own search, but only autoregressive models are supported"] * searches(model)


def names():
    """Returns the names of all formats, as `t2t-exporter --format` takes them."""
    return [_SAVED_MODEL, *Registries.export_formats.names()]


def _format(name):
    return _SavedModel("A SavedModel") if name == _SAVED_MODEL else Registries.export_formats.get(name)()


def obstacles(format_name, model, encoders=None):
    """Returns all reasons why a model cannot be exported to a format, a list of str.

    Args:
        format_name: one of `names`.
        model: Keras model, whose weights need not have values.
        encoders: {"inputs": TextEncoder, "targets": TextEncoder}, or None if unknown.
    """
    return _format(format_name).obstacles(model, encoders)


def check(format_name, answerer):
    """Raises `UserError` with all obstacles if a format does not support a model; warns if the problem changes texts.

    Args:
        format_name: one of `names`.
        answerer: Translator, Generator or Predictor.
    """
    check_model(format_name, answerer.model, answerer.encoders)
    names = ("input_text", "output_text")
    if functions := [name for name in names if answerer.problem and answerer.problem.overrides(name)]:
        name = _format(format_name).label(answerer.model, answerer.encoders)
        LOGGER.warning(
            f"{answerer.problem.full_name}: {' and '.join(functions)} of this problem are Python code, which {name} "
            "does not run. Texts are only encoded and decoded with the vocabulary."
        )
    if answerer.problem and (substitution := answerer.problem.substitution):
        LOGGER.warning(
            f"{answerer.problem.full_name}: {', '.join(substitution.kinds)} are replaced by symbols, such as "
            f"{substitution.symbols[0]}, which only t2t_lite and its SavedModels replace and restore. "
            f"{_format(format_name).label(answerer.model)} reads and writes texts with symbols."
        )


def check_model(format_name, model, encoders=None):
    """Runs the checks of `check` that do not need the problem; for the arguments see `obstacles`."""
    check_plain_weights(getattr(model, "models", [model]), f"--format={format_name}")
    if reasons := obstacles(format_name, model, encoders):
        hint = "" if obstacles(_SAVED_MODEL, model) else " A SavedModel (--format=saved_model) can hold it."
        label = _format(format_name).label(model, encoders)
        raise UserError(f"{label} cannot hold this model: {'; '.join(reasons)}.{hint}")


def destinations_text(model, encoders=None):
    """Describes, in one line per format, whether a model can be exported, or why not; see `obstacles`."""
    lines = ["exports (t2t-exporter --format)"]
    width = max(map(len, names()))
    for name in names():
        reasons = obstacles(name, model, encoders)
        answer = f"no: {'; '.join(reasons)}" if reasons else _format(name).answer(model, encoders)
        lines.append(f"  {name:{width}}  {answer}")
    return "\n".join(lines)


def class_obstacles(model, holders):
    """Returns a list with the reason why a model's class is unsupported, or [] if it is one of `holders`."""
    if type(model) in holders:
        return []
    names = " or ".join(sorted((holder.REGISTERED_NAME for holder in holders), key=len))
    if type(model).__name__ == "Ensemble":
        return [f"it is an ensemble. Expected one model={names} (t2t-avg-all averages several checkpoints into one)"]
    return [f"it is of class {type(model).__name__}. Expected model={names}"]


def option_obstacles(model, supported):
    """Returns a message for each option of a model that has an unsupported value.

    Args:
        model: Keras model.
        supported: {name of an option: tuple of supported values, or None for any value}. Other options must have the
            constructor's defaults, except options for training and sizes of vocabularies.
    """
    defaults = {name: p.default for name, p in inspect.signature(type(model).__init__).parameters.items()}
    reasons = []
    for name, value in model.config.items():
        possible = supported.get(name, None if name in _TRAINING else (defaults[name],))
        if possible is not None and value not in possible:
            hparam = hparam_of(name, type(model))
            suffix = f" (hparam {hparam})" if hparam != name else ""
            *others, last = map(_option_text, possible)
            expected = f"{', '.join(others)} or {last}" if others else last
            reasons.append(f"{name}={_option_text(value)}{suffix}, expected {expected}")
    return reasons


def _option_text(value):
    if isinstance(value, dict):
        return f"{value['type']}({', '.join(f'{n}={v}' for n, v in value.items() if n != 'type')})"
    if isinstance(value, list | tuple):
        return "/".join(map(_option_text, value))
    return "none" if value is None else str(value)
