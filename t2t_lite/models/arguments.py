"""Converts hyperparameters to a model's constructor arguments and back, and declares the options that models share."""

import dataclasses
import functools
import inspect
import re
import textwrap
from collections.abc import Callable

import keras

from t2t_lite.errors import UserError, located, shown
from t2t_lite.layers import attention_kinds as attentions
from t2t_lite.layers import feed_forward as networks
from t2t_lite.layers.base import Initializer, config_of
from t2t_lite.layers.checks import check_choices, check_rates, check_sizes
from t2t_lite.layers.layer_kinds import kind_of, name_and_options, read_kinds, spell_kind, words_of
from t2t_lite.settings.config import HParams
from t2t_lite.settings.ranges import Choices, Range, Setting, settings_of

# {argument: module} for arguments with options that are settings, too, such as `self_attention.…`: see `_kinds`.
_KINDS = {"self_attention": attentions, "feed_forward": networks}
_MEANINGS = {  # for arguments whose meaning differs from that of their hyperparameter
    "num_layers": "N, the number of layers in the stack.",
    "key_dim": "d_k, the size of a head's queries and keys. Defaults to hidden_size / num_heads.",
    "value_dim": "d_v, the size of a head's values. Defaults to hidden_size / num_heads.",
    "norm": "Position of the normalizations: post (as in the paper) or pre (plus one after each stack).",
    "self_attention": "Kind of self-attention, or a list of kinds that the layers use in turn: see "
    "`make_self_attention`.",
    "feed_forward": "Kind of feed-forward network, or a list of kinds that the layers use in turn: see "
    "`make_feed_forward`.",
    "initializer": "Initial values of the layers' matrices: see `matrix_initializer`.",
}
_ANNOTATIONS = {"activation": str | Callable, "self_attention": str | dict | list, "feed_forward": str | dict | list}
_RATE = Range(0, below=1)


def model_settings(model_class, **kinds):
    """Returns {name: Setting} for all hyperparameters, including those of a model and of each layer type it uses.

    `kinds` has the form returned by `HParams.kinds`. If a kind is missing, its hyperparameter's default is used.
    """
    return HParams(**kinds).of_model(model_class).settings()


def constructor_arguments(hparams, model_class):
    """Returns the arguments for a model's constructor that are set by hyperparameters.

    Args:
        hparams: HParams.
        model_class: a model class. Hyperparameters for arguments that the constructor lacks are omitted.

    Raises:
        UserError: if a value is not supported. The error message names the hyperparameter.
    """
    arguments, said_by, accepted = {}, {}, constructor_parameters(model_class)
    settings = model_settings(model_class, **hparams.kinds())
    for name, setting in settings.items():
        if setting.argument.partition(".")[0] not in accepted:
            continue
        value = _to_argument(setting, hparams)
        if name == "dtype_policy" and name not in hparams.said and value == setting.default:
            value = None  # unless the user sets a dtype policy, Keras' global policy applies
        if arguments.setdefault(setting.argument, value) != value:
            other = said_by[setting.argument]
            raise UserError(
                f"{other}={hparams.get(other)}, {name}={hparams.get(name)}: these set "
                f"{setting.argument} to two values, {arguments[setting.argument]} and {value}. Expected the same value."
            )
        said_by[setting.argument] = name
    for argument in [name for name in _KINDS if name in arguments]:
        places = [name for name in arguments if name.startswith(f"{argument}.")]
        options = {name.partition(".")[2]: arguments.pop(name) for name in places}
        arguments[argument] = _kinds(argument, arguments[argument], options, settings.values())
    return arguments


def settings_without_effect(model_class):
    """Returns the set of hyperparameters that have no effect on a model: see `SequenceModel.IDLE`.

    These are the hyperparameters for arguments that the model's constructor lacks, and those in the model's `IDLE`.
    """
    accepted, used, settings = constructor_parameters(model_class), set(), model_settings(model_class)
    idle = {*getattr(model_class, "IDLE", ())}
    for name, setting in settings.items():
        if name not in idle and (not setting.argument or setting.argument.partition(".")[0] in accepted):
            used |= {name, setting.zero, setting.per}
    return set(settings) - (used - idle)


def hparam_of(argument, model_class):
    """Returns the hyperparameter that sets a constructor's argument, or the argument itself if there is none."""
    names = (s.name for s in model_settings(model_class).values() if s.argument == argument)
    return next(names, argument)


def model_hparams(model, base):
    """Returns hyperparameters for creating a model like `model`; the inverse of `constructor_arguments`.

    Args:
        model: a model whose `config` holds the constructor's arguments.
        base: HParams, with the values of hyperparameters that do not set an argument.

    Raises:
        UserError: if hyperparameters cannot express a value, such as a function.
    """
    arguments = {**model.config, "dtype": model.dtype_policy.name}
    if "activation" in arguments:
        arguments["activation"] = config_of(arguments["activation"])
        if not isinstance(arguments["activation"], str):
            raise UserError(
                f"activation={shown(model.config['activation'])}: a hyperparameter can only hold an activation's name."
            )
    kind_arguments = [argument for argument in _KINDS if argument in arguments]
    for argument in kind_arguments:
        kinds = [kind_of(*kind) for kind in _KINDS[argument].kinds_of(arguments[argument])]
        options = {option: value for _, of_word in reversed(words_of(kinds)) for option, value in of_word.items()}
        arguments[argument] = "/".join(spell_kind(kind, options) for kind in kinds)
        arguments |= {f"{argument}.{option}": value for option, value in options.items()}
    values = {}
    for name, setting in _settings_of(type(model), arguments).items():
        if setting.argument in arguments:
            value = to_hparam(setting, arguments)
            values[name] = value
            if setting.zero in base:
                values.setdefault(setting.zero, value)
        elif setting.argument.partition(".")[0] in kind_arguments:
            values[name] = setting.default
    hparams_of_model = base.of_model(type(model)).override_from_dict(values)
    for argument in kind_arguments:
        if constructor_arguments(hparams_of_model, type(model))[argument] != model.config[argument]:
            raise UserError(f"{argument}={model.config[argument]} cannot be expressed by hyperparameters.")
    return hparams_of_model


def differing_settings(model, hparams):
    """Returns the architecture settings whose values differ, {name: (value in hparams, value in the model)}."""
    actual_hparams, settings = model_hparams(model, hparams), hparams.of_model(type(model)).settings()
    expected, actual = (constructor_arguments(h, type(model)) for h in (hparams, actual_hparams))
    fixed = {s.argument: s.name for s in reversed(settings.values()) if s.fixed and s.argument}
    return {fixed[n]: (expected[n], actual[n]) for n in expected if n in fixed and expected[n] != actual[n]}


def fixed_arguments(model):
    """Returns {argument: value} for the constructor arguments that determine a model's weights."""
    names = {s.argument.partition(".")[0] for s in model_settings(type(model)).values() if s.fixed}
    names |= {"vocab_size", "target_vocab_size"}
    return {name: value for name, value in (model.config or {}).items() if name in names}


def in_hparams_words(error, model_class, **kinds):
    """Returns the text of a constructor's `ValueError`, with hyperparameter names instead of argument names.

    Options in brackets, as in `local_1d(block_length=64)`, are not renamed. `kinds` has the form returned by
    `HParams.kinds`.
    """
    text, settings = str(error), model_settings(model_class, **kinds)
    spelled = set()
    for setting, names in kinds.items() if hasattr(model_class, "kind_hparams") else ():
        options = [option for _, of_word in words_of(read_kinds(names, setting)) for option in of_word]
        spelled |= {f"{settings[setting].argument}.{option}" for option in options}
    for name, setting in settings.items():
        argument = setting.argument.rpartition(".")[2]
        if argument and not (setting.values or setting.per or setting.argument in spelled):
            text = re.sub(rf"(?<=`){argument}(?=`)|\b{argument}(?==)", name, text)
    return text


def constructor_parameters(model_class):
    """Returns the names of a constructor's arguments, including those of base classes if it has `**kwargs`."""
    names = set()
    for base in model_class.__mro__:
        if base is keras.Model:
            return {*names, "dtype"}
        if "__init__" in vars(base):
            parameters = inspect.signature(base.__init__).parameters
            names.update(parameters)
            if "OPTIONS" in vars(base):  # the class accepts all of its own options, but perhaps not those of its bases
                return {*names, "dtype"}
            if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
                break
    return names


def _to_argument(setting, hparams):
    value = hparams.get(setting.name, setting.default)
    if setting.zero and value == 0:
        value = hparams.get(setting.zero)  # None if there is no such hyperparameter
    if setting.per and value:
        parts = hparams.get(setting.per)
        if value % parts:
            raise UserError(f"{setting.name}={value}: expected a multiple of {setting.per}={parts}.")
        value //= parts
    return setting.values[value] if setting.values else value


def to_hparam(setting, arguments):
    """Returns the value of a hyperparameter for a model with the arguments {constructor argument: value}."""
    value = arguments[setting.argument]
    if setting.values:
        return next(word for word, meant in setting.values.items() if meant == value)
    if setting.zero and value is None:
        return 0
    return value * arguments[setting.per] if setting.per else value


def _settings_of(model_class, arguments):
    """Returns the `model_settings` of a model with the arguments {constructor argument: value}."""
    settings = [s for s in HParams().settings().values() if s.argument in _KINDS and s.argument in arguments]
    return model_settings(model_class, **{s.name: arguments[s.argument] for s in settings})


def _kinds(argument, text, options, settings):
    """Parses kinds of layers in a text into a constructor argument, and fills in the options of each kind."""
    declared = {s.argument.partition(".")[2]: s for s in settings if s.argument.startswith(f"{argument}.")}
    setting = next(s.name for s in settings if s.argument == argument)

    def filled(kind):
        name, chosen = name_and_options(kind)
        heads = chosen.pop("pattern", None)
        for option, value in chosen.items():
            if option in declared:
                with located(f"{setting}={text}"):
                    chosen[option] = dataclasses.replace(declared[option], name=option).typed(value)
        shared = {option: options[option] for option in _KINDS[argument].own_options(name) if option in options}
        return kind_of(name, shared | chosen | ({"pattern": [filled(head) for head in heads]} if heads else {}))

    kinds = _KINDS[argument].spelled_kinds(text)
    return [filled(kind) for kind in kinds] if isinstance(kinds, list) else filled(kinds)


def own_options(settings):
    """Returns {argument: Setting} for the hyperparameters in `settings`, {name: Setting}.

    The kind, default, limits and meaning of these `Setting`s are those of the argument.
    """
    options = {}
    for setting in settings.values():
        name, values = setting.argument, setting.values
        if name in ("", "dtype") or "." in name or name in options:
            continue
        kind, default, meaning, limits = setting.kind, setting.default, setting.meaning, setting.limits
        if values:
            default = values[default]
            kind = type(default)
            limits = None if kind is bool else Choices((*values.values(),))
        if setting.zero:  # 0 stands for None, or for the value of a different setting
            other = settings.get(setting.zero)
            default, kind = (other.default, kind) if other else (None, kind | None)
            meaning = meaning.replace("; 0: num_hidden_layers", "").replace("; 0:", "; None:")
        if kind in (int, int | None) and (setting.zero or name == "num_layers"):
            limits = Range(1)
        kind, meaning = _ANNOTATIONS.get(name, kind), _MEANINGS.get(name, meaning)
        options[name] = dataclasses.replace(setting, kind=kind, default=default, limits=limits, meaning=meaning)
    return options


def shared_options(without=(), **defaults):
    """Returns {argument: Setting} for the options that models have in common: see `own_options`.

    Args:
        without: list of str, the options that a model lacks.
        **defaults: a model's defaults, where they differ from those of `HParams`.
    """
    options = own_options(settings_of(HParams))
    dense = "in the dense layers: see `keras.layers.Dense`"
    kernel, bias = f"Kernel initializer {dense}. Defaults to `initializer`.", f"Bias initializer {dense}."
    for name, default, meaning in (("kernel_initializer", None, kernel), ("bias_initializer", "zeros", bias)):
        options[name] = Setting(name, Initializer, default, meaning=meaning, argument=name)
    options |= {name: dataclasses.replace(options[name], default=default) for name, default in defaults.items()}
    return {name: option for name, option in options.items() if name not in without}


def check_option(option, value):
    """Raises `ValueError` if a value is an invalid choice, size or rate. The layers check all other values."""
    name, limits = option.argument, option.limits
    if isinstance(limits, Choices):
        check_choices(limits.words, **{name: value})
    if limits == _RATE:
        check_rates(**{name: value})
    if option.kind in (int, int | None) and getattr(limits, "least", None) == 1:
        check_sizes(**{name: value})


def with_options(init, options):
    """Adds the options to a constructor's parameters; the wrapped constructor receives every option by name."""
    signature = inspect.signature(init)
    *own, _ = signature.parameters.values()
    added = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=option.default, annotation=option.kind)
        for name, option in options.items()
    ]
    others = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)
    signature = signature.replace(parameters=[*own, *added, others])

    @functools.wraps(init)
    def with_all(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return init(**bound.arguments.pop("kwargs"), **bound.arguments)

    with_all.__signature__ = signature
    return with_all


def described(doc, options):
    """Returns a class docstring in which the line "{options}" is replaced by the descriptions of the options."""
    lines = []
    for name, option in options.items():
        kind = {int: "int. ", float: "float. ", str: "str. ", bool: "bool. "}.get(option.kind, "")
        meaning = option.meaning + (f" One of {option.limits}." if isinstance(option.limits, Choices) else "")
        lines.append(textwrap.fill(f"{name}: {kind}{meaning}", 112, subsequent_indent=" " * 4))
    # Python 3.13 removes the indentation that all lines of a docstring share.
    return doc and re.sub(r"( *)\{options\}", lambda found: textwrap.indent("\n".join(lines), found[1]), doc)
