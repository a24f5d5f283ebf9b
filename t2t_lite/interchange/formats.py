"""Which models each format supports, what can be imported, and the output_dir of an imported model.

SavedModels and Hugging Face's folders are described here. Another format is registered as a function that returns a
`Format`, `@registry.register_export_format("name")`.
"""

import inspect
import logging
import os
import re
from collections.abc import Callable
from typing import NamedTuple

from t2t_lite import files, registry
from t2t_lite.decoding.search.adapters import searches
from t2t_lite.errors import UserError
from t2t_lite.files import folders
from t2t_lite.interchange.families import families, family_of
from t2t_lite.layers.quantization import check_plain_weights
from t2t_lite.models.arguments import hparam_of
from t2t_lite.registry import Registries
from t2t_lite.runs.run_config import run_config
from t2t_lite.runs.saving import write_run
from t2t_lite.settings.config import HParams
from t2t_lite.settings.ranges import settings_of

_LOGGER = logging.getLogger("t2t_lite")
# Options that no format needs: the vocabulary's sizes, and those used only in training.
_TRAINING = {
    "vocab_size", "target_vocab_size", "kernel_initializer", "bias_initializer",
    *(s.argument for s in settings_of(HParams).values() if not s.fixed),
}  # fmt: skip
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?", re.ASCII)


class Format(NamedTuple):
    """A format of models of one class.

    Attributes:
        label: str, its name in messages.
        model: our class.
        supported: function of a model's config that returns {argument of its constructor: tuple of the supported
            values; None: any}; the others must have their defaults.
    """

    label: str
    model: type
    supported: Callable


def names():
    """Returns the names of all formats, as `t2t-exporter --format` takes them."""
    return ["saved_model", "hugging_face", *Registries.export_formats.names()]


def _format(name):
    return Registries.export_formats.get(name)()


def label(format_name, model, encoders=None):
    """Returns the name of a format in messages; for Hugging Face also the class of the model."""
    if format_name == "hugging_face":
        family = family_of(model, encoders)
        return f"Hugging Face's {family.class_prefix if family else 'Transformers'}"
    return "A SavedModel" if format_name == "saved_model" else _format(format_name).label


def obstacles(format_name, model, encoders=None):
    """Returns all reasons why a model cannot be exported to a format, a list of str; [] if it can.

    Args:
        format_name: one of `names`.
        model: Keras model, with or without values.
        encoders: {"inputs": TextEncoder, "targets": TextEncoder}, or None if unknown.
    """
    if format_name == "saved_model":
        return ["it has a search of its own, expected a model that predicts one id after the other"] * searches(model)
    other = None if format_name == "hugging_face" else _format(format_name)
    holders = {entry.model for entry in ([other] if other else families())}
    if type(model) not in holders:
        kind = "an ensemble" if type(model).__name__ == "Ensemble" else f"of class {type(model).__name__}"
        names = " or ".join(sorted((holder.REGISTERED_NAME for holder in holders), key=len))
        return [f"it is {kind}, expected model={names}, one model (t2t-avg-all averages checkpoints into one)"]
    if other:
        return list(_options_not_held(model, other.supported(model.config)))
    family = family_of(model, encoders) or next(entry for entry in families() if entry.model is type(model))
    reasons = list(_options_not_held(model, family.supported(model.config)))
    if kinds := {type(encoder).__name__ for encoder in family.strange_encoders(model, encoders or {})}:
        reasons.append(f"its vocabulary is a {' and a '.join(sorted(kinds))}, expected {family.vocabularies[1]}'s")
    return reasons


def check(format_name, answerer):
    """Raises `UserError` with all obstacles if a format does not support a model; warns if the problem changes texts.

    Args:
        format_name: one of `names`.
        answerer: Translator, Generator or Predictor.
    """
    check_model(format_name, answerer.model, answerer.encoders)
    own = ("input_text", "output_text")
    if functions := [name for name in own if answerer.problem and answerer.problem.overrides(name)]:
        name = label(format_name, answerer.model, answerer.encoders)
        _LOGGER.warning(
            f"{answerer.problem.full_name}: {' and '.join(functions)} of this problem are Python code, which "
            f"{name} does not run: texts go in and come out as the vocabulary has them."
        )
    if answerer.problem and (substitution := answerer.problem.substitution):
        _LOGGER.warning(
            f"{answerer.problem.full_name}: {', '.join(substitution.kinds)} are replaced by symbols, such as "
            f"{substitution.symbols[0]}, and put back by t2t_lite and its SavedModels alone. "
            f"{label(format_name, answerer.model)} expects texts with symbols, and gives such."
        )


def check_model(format_name, model, encoders=None):
    """As `check`, for a model without its problem; arguments as for `obstacles`."""
    check_plain_weights(getattr(model, "models", [model]), f"--format={format_name}")
    if reasons := obstacles(format_name, model, encoders):
        hint = "" if obstacles("saved_model", model) else " A SavedModel (--format=saved_model) can hold it."
        raise UserError(f"{label(format_name, model, encoders)} cannot hold this model: {'; '.join(reasons)}.{hint}")


def destinations_text(model, encoders=None):
    """Returns lines with the possible formats, and all obstacles to the others; arguments as for `obstacles`."""
    lines = ["exports (t2t-exporter --format)"]
    width = max(map(len, names()))
    for name in names():
        reasons = obstacles(name, model, encoders)
        answer = f"no: {'; '.join(reasons)}" if reasons else "yes"
        if name == "hugging_face" and not reasons:
            family = family_of(model, encoders)
            vocabulary = "" if encoders else f", with a {family.vocabularies[1]} vocabulary"
            answer = f"yes, {family.class_prefix}{vocabulary}"
        lines.append(f"  {name:{width}}  {answer}")
    return "\n".join(lines)


def _options_not_held(model, supported):
    """Yields a text for each option of a model that is not `supported` ({name: tuple of values; None: any}).

    Other options must have the constructor's default, except those of training and of the vocabulary.
    """
    defaults = {name: p.default for name, p in inspect.signature(type(model)).parameters.items()}
    for name, value in model.config.items():
        possible = supported.get(name, None if name in _TRAINING else (defaults[name],))
        if possible is not None and value not in possible:
            hparam = hparam_of(name, type(model))
            of_hparam = f" (hparam {hparam})" if hparam != name else ""
            *others, last = map(_option_text, possible)
            expected = f"{', '.join(others)} or {last}" if others else last
            yield f"{name}={_option_text(value)}{of_hparam}, expected {expected}"


def _option_text(value):
    if isinstance(value, dict):
        return f"{value['type']}({', '.join(f'{n}={v}' for n, v in value.items() if n != 'type')})"
    if isinstance(value, list | tuple):
        return "/".join(map(_option_text, value))
    return "none" if value is None else str(value)


def write_imported_run(output_dir, problem, hold, *, model, hparams, fill, hparams_set="", step=0):
    """Writes the settings, vocabulary and checkpoint that commands on trained models need.

    The run belongs to a problem of the user's own files, without any; t2t-datagen makes data for it by
    `--vocab_from=<output_dir>`.

    Args:
        output_dir: str, which does not exist yet or is empty. It appears when everything is written.
        problem: str, name of the problem, such as translate_own.
        hold: function of the problem and a folder that writes the vocabulary there: by `hold_vocabulary` or
            `hold_vocabularies`.
        model: str, the model's name.
        hparams: HParams of the model.
        fill: function of the built model that sets its weights.
        hparams_set: str, name of the set of `hparams`, or "".
        step: int, number of updates of the model's training.

    Returns:
        The path of the checkpoint, without suffix.

    Raises:
        UserError: `output_dir` is not empty, or settings or vocabularies are invalid.
        Failure: writing failed; nothing is left behind.
    """

    def prepare(folder):
        own_problem = registry.problem(problem)
        hold(own_problem, folder)
        encoders = own_problem.get_feature_encoders(folder)
        usr_dir = registry.usr_dir_of(type(own_problem)) or registry.usr_dir_of(registry.model(model))
        return run_config(own_problem.name, model, hparams, encoders, hparams_set=hparams_set, usr_dir=usr_dir)

    return write_run(output_dir, prepare, fill, step)


def read_hugging_face_config(path, output_dir):
    """Returns the contents of the `config.json` in a folder of Hugging Face, a dict.

    Raises:
        UserError: there is no such folder or file, it is not JSON, or `output_dir` is not new.
    """
    folders.check_new(output_dir)
    if _HUB_NAME.fullmatch(path) and not os.path.exists(path):
        raise UserError(
            f"{path}: no such folder. A model is imported from this machine; if that is its name on the Hub, download "
            f"it first: hf download {path} --local-dir={path.rpartition('/')[2]}"
        )
    return files.read_json(os.path.join(path, "config.json"))
