"""The options of Transformer models' constructors, made of the settings that hyperparameters declare for them.

A new option is a setting with an `argument`: in `HParams`, or, of one model alone, in its `HPARAMS`. Constructors,
their checks, their docs and `from_hparams` follow.
"""

import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

from t2t_lite.layers.checks import check_rates, check_sizes
from t2t_lite.layers.keras_names import Initializer
from t2t_lite.settings.config import HParams
from t2t_lite.settings.ranges import Range, settings_of

_MEANINGS = {  # of arguments that mean something else than their settings
    "num_layers": "N, the layers of the stack.",
    "key_dim": "d_k, the size of a head's queries and keys; None: hidden_size / num_heads.",
    "value_dim": "d_v, the size of a head's values; None: hidden_size / num_heads.",
    "norm": "Where normalizations are: post (the paper), or pre, with one more after each stack.",
    "self_attention": "Kind of self-attention, or a list of kinds that take turns over the layers: see "
    "`make_self_attention`.",
    "feed_forward": "Kind of feed-forward network, or a list of kinds that take turns over the layers: see "
    "`make_feed_forward`.",
    "initializer": "Initial values of the layers' matrices: see `matrix_initializer`.",
}
_KINDS = {"activation": str | Callable, "self_attention": str | dict | list, "feed_forward": str | dict | list}
_RATE = Range(0, below=1)


class Option(NamedTuple):
    """An argument of a constructor.

    Attributes:
        kind: its annotation.
        default: value.
        meaning: str, a sentence.
        choices: tuple of what it may be; (): something else.
        limits: Range of the setting that it comes from, or None.
    """

    kind: Any
    default: object
    meaning: str
    choices: tuple = ()
    limits: Range | None = None

    def check(self, name, value):
        """Raises `ValueError` for a value that is none of the choices, no size or no rate; layers check the rest."""
        if self.choices and value not in self.choices:
            raise ValueError(f"`{name}` must be one of {', '.join(self.choices)}: received {name}={value!r}.")
        if self.limits == _RATE:
            check_rates(**{name: value})
        if self.kind in (int, int | None) and self.limits.least == 1:
            check_sizes(**{name: value})


def own_options(settings):
    """Returns {argument: Option} of declared settings, {name: Setting}."""
    options = {}
    for setting in settings.values():
        name, values = setting.argument, setting.values
        if name in ("", "dtype") or "." in name or name in options:
            continue
        kind, default, meaning, limits = setting.kind, setting.default, setting.meaning, setting.limits
        if values:
            default = values[default]
            kind = type(default)
        if setting.zero:  # 0 stands for another setting, or for None
            other = settings.get(setting.zero)
            default, kind = (other.default, kind) if other else (None, kind | None)
            meaning = meaning.replace("; 0: num_hidden_layers", "").replace("; 0:", "; None:")
        if kind in (int, int | None) and (setting.zero or name == "num_layers"):
            limits = Range(1)
        choices = () if kind is bool else (*values.values(),) if values else getattr(limits, "words", ())
        options[name] = Option(
            _KINDS.get(name, kind), default, _MEANINGS.get(name, meaning), choices, None if choices else limits
        )
    return options


def shared_options(without=(), **defaults):
    """Returns {argument: Option} of the models' common options.

    Args:
        without: names of those that a model does not have.
        **defaults: a model's defaults where they are not those of `HParams`.
    """
    options = own_options(settings_of(HParams))
    of_dense = "in the dense layers: see `keras.layers.Dense`"
    options["kernel_initializer"] = Option(Initializer, None, f"Of kernels {of_dense}; None: as `initializer` says.")
    options["bias_initializer"] = Option(Initializer, "zeros", f"Of biases {of_dense}.")
    options |= {name: options[name]._replace(default=default) for name, default in defaults.items()}
    return {name: option for name, option in options.items() if name not in without}


def with_options(init, options):
    """Returns a constructor that has the options as parameters, after its own, and gets all of them by name."""
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
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        return init(**given.arguments.pop("kwargs"), **given.arguments)

    with_all.__signature__ = signature
    return with_all


def described(doc, options):
    """Returns the docstring of a class with the options in the place of the line "{options}"."""
    lines = []
    for name, option in options.items():
        kind = {int: "int. ", float: "float. ", str: "str. ", bool: "bool. "}.get(option.kind, "")
        meaning = option.meaning + (f" One of {', '.join(option.choices)}." if option.choices else "")
        lines.append(textwrap.fill(f"{name}: {kind}{meaning}", 120, initial_indent=" " * 8, subsequent_indent=" " * 12))
    return doc and doc.replace(" " * 8 + "{options}", "\n".join(lines))
