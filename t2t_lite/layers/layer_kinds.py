"""Kinds of attention and feed-forward layers: their names, their options, and the hyperparameters that set options."""

import inspect
import json
import re
from typing import ClassVar

from t2t_lite.layers.checks import check_choices

_WORD = re.compile(r"\s*([\w.-]+)\s*(?:\(([^()]*)\))?\s*")


class Kind:
    """Base class of scores and patterns. The options of a kind are its constructor's arguments, stored as attributes.

    Attributes:
        HPARAMS: {name: `ranges.setting(…, argument="self_attention.<option>")`}, the hyperparameters that set options.
            An hparams set includes these hyperparameters if `self_attention_type` names the kind.
        other_name: str, tensor2tensor's name, which `self_attention_type` accepts as an alias; "" if there is none.
    """

    HPARAMS: ClassVar = {}
    other_name = ""

    @classmethod
    def options(cls):
        """Returns the options of this kind, {option: default}, with `inspect.Parameter.empty` for required options."""
        _, *parameters = inspect.signature(cls.__init__).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}


def added_options(cls, base):
    """Returns {option: default} for the constructor arguments that a class has in addition to those of `base`."""
    # Of `__init__`, because Python 3.11.2 takes the signature of a class without its own from Keras' `__new__`.
    known, parameters = (inspect.signature(cls_or_base.__init__).parameters for cls_or_base in (base, cls))
    return {p.name: p.default for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in known}


def make_kind(argument, value, registry):
    """Creates a kind from its name, or from a dict of both, such as {"type": "window", "neighborhood": 9}.

    Raises:
        ValueError: if a name or option is unknown, or a required option is missing or out of range.
    """
    name, options = name_and_options(value, argument)
    check_choices(registry.names(), **{argument: name})
    kind = registry.get(name)
    check_options(argument, name, kind.options(), options)
    return kind(**options)


def name_and_options(kind, argument="self_attention"):
    """Splits a kind of layer into its name (or None) and a dict of the given options.

    A kind is a name, or a dict with a name and options: {"type": "window", "neighborhood": 9}.

    Raises:
        ValueError: if the kind is neither a str nor a dict. The error message names `argument`.
    """
    if not isinstance(kind, str | dict):
        raise ValueError(f"`{argument}` must be a name, or a dict of 'type' and options: received {kind!r}.")
    options = {"type": kind} if isinstance(kind, str) else dict(kind)
    return options.pop("type", None), options


def check_options(argument, name, options, values):
    """Raises `ValueError` if a kind has an unknown option, or lacks a required option."""
    if values.keys() - options.keys() or inspect.Parameter.empty in {**options, **values}.values():
        raise ValueError(f"`{argument}` {name} has the options {[*options]}: received {values}.")


def named_kinds(argument, value, own_options, fills=True):
    """Returns the kinds in an argument as a list of (name, options), which the layers of a stack use in turn.

    Args:
        argument: str, the argument's name, for error messages.
        value: a kind, or a list of kinds. A kind is a name, or a dict with a name and options: {"type": "local_moe",
            "k": 1}.
        own_options: function from a name to {option: default}.
        fills: bool, whether options that are not given get their defaults. Otherwise they are left out, even if they
            are required.

    Raises:
        ValueError: if an option is unknown or missing; also errors from `own_options`.
    """
    kinds = []
    for kind in value if isinstance(value, list | tuple) else [value]:
        name, chosen = name_and_options(kind, argument)
        options = own_options(str(kind) if name is None else name)
        check_options(argument, name, options if fills else dict.fromkeys(options), chosen)
        kinds.append((name, {**options, **chosen} if fills else chosen))
    return kinds


def kind_of(name, options):
    """Returns a kind's name if it has no options, otherwise a dict with its name and options."""
    return {"type": name, **options} if options else name


def kinds_config(named):
    """Converts a list of (name, all options) to a constructor's argument: a kind, or a list of kinds."""
    kinds = [kind_of(name, options) for name, options in named]
    return kinds if len(kinds) > 1 else kinds[0]


def words_of(kinds):
    """Returns a list of (name, options) for a kind or a list of kinds; the patterns for groups of heads come first."""
    words = []
    for kind in kinds if isinstance(kinds, list | tuple) else [kinds]:
        name, options = name_and_options(kind)
        words += [*map(name_and_options, options.pop("pattern", ())), (name, options)]
    return words


def read_kinds(text, setting="self_attention_type"):
    """Parses the kinds of layers in a text, and returns them in the form of constructor arguments, as a list.

    The text may be JSON, with a kind or a list of kinds in this form: `[{"type": "local_1d", "block_length": 64}]`.
    Otherwise kinds are separated by /, and in each kind, a score and a pattern are separated by +. The patterns for
    groups of heads are separated by :, and become the option "pattern". Options that differ from the hyperparameters
    follow a word in brackets, separated by semicolons, and are returned as strings:
    `local_1d(block_length=64)/local_1d(block_length=128)`.

    Raises:
        ValueError: if the text has neither form.
    """
    if text.lstrip()[:1] in ("[", "{"):
        return _from_json(text, setting)
    kinds, position, separator = [], 0, "/"
    while separator:
        before, match = separator, _WORD.match(text, position)
        end = match.end() if match else position
        separator = text[end : end + 1]
        if not match or separator not in ("", "/", "+", ":"):
            raise ValueError(
                f"{setting}={text}: cannot read {text[end:]!r}. Expected kinds such as strided or "
                "local_1d(block_length=64)+dot_product_relative_v2, with / between different layers."
            )
        word = {"type": match[1], **_options(f"{setting}={text}", match[1], match[2] or "")}
        if before == "/":
            kinds.append([[word]])
        elif before == "+":
            kinds[-1].append([word])
        else:
            kinds[-1][-1].append(word)
        position = end + 1
    return [_joined(f"{setting}={text}", groups) for groups in kinds]


def _joined(text, groups):
    """Joins the words of a kind, which are groups of dicts with 'type' and options; a group of several lists patterns.

    Raises:
        ValueError: if an option is given twice. The message begins with `text`.
    """
    names, joined = [], {}
    for group in groups:
        part = group[0] if len(group) == 1 else {"pattern": group}
        names += [part.pop("type")] if "type" in part else []
        if twice := part.keys() & joined.keys():
            raise ValueError(f"{text}: {min(twice)} is given twice for one kind. Expected at most once.")
        joined |= part
    return {"type": "+".join(names), **joined} if names else joined


def _from_json(text, setting):
    """Returns the list of kinds in a JSON text, which holds a single kind or a list."""
    try:
        kinds = json.loads(text)
    except ValueError as error:
        raise ValueError(
            f'{setting}={text} is not valid JSON ({error}). Expected a list such as [{{"type": "local_1d", '
            '"block_length": 64}, "dot_product"].'
        ) from None
    return kinds if isinstance(kinds, list) and kinds else [kinds]


def _options(text, word, brackets):
    """Parses the options in the brackets of a word and returns {option: text}."""
    options = {}
    for spelled in filter(str.strip, brackets.split(";")):
        option, equals, value = (part.strip() for part in spelled.partition("="))
        if not (option and equals and value) or option in options:
            raise ValueError(
                f"{text}: cannot read {spelled.strip()!r} in the brackets of {word}. Expected "
                "option=value, with ; between options and each option only once."
            )
        options[option] = value
    return options


def spell_kind(kind, of_hparams):
    """Formats a kind as text for `read_kinds`, with the options that differ from `of_hparams`, {option: value}."""
    spelled = []
    for word, options in words_of(kind):
        others = ";".join(f"{option}={value}" for option, value in options.items() if of_hparams[option] != value)
        spelled.append(f"{word}({others})" if others else word)
    *heads, last = spelled
    if heads and last == "dot_product":
        return ":".join(heads)
    return "+".join([":".join(heads), last] if heads else [last])
