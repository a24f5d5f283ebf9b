"""HParams: all typed settings of a model and its training, which can be overridden and saved as JSON.

Mirrors tensor2tensor's utils/hparam.py and layers/common_hparams.py. The defaults are the paper's base model.
"""

import dataclasses
import itertools
import json
import re
from typing import Any, Self

from t2t_lite.errors import UserError, located, nearest, shown
from t2t_lite.files.safe_json import parse_json, storable
from t2t_lite.settings.declared_hparams import DeclaredHParams
from t2t_lite.settings.ranges import Setting, own_settings, settings_of
from t2t_lite.settings.tensor2tensor_names import hparam_answer

COPIES = itertools.count(1)  # numbers the changed copies, so that `registry.hparams` notices that a set ignores one
KINDS = ("self_attention_type", "ffn_layer")  # their values name kinds of layers, which declare further settings


@dataclasses.dataclass(eq=False)
class HParams(DeclaredHParams):
    """Hyperparameters. Assigning a name that is not declared here is an error: see `add_hparam`.

    Assigned values are converted to the declared type, so an int may be assigned as `1e3` and a float as `1`. They must
    be in the declared range: see ranges.py. A `Setting` says how models, runs, exporters and docs handle a value.
    Models declare further settings in `HPARAMS`. `said` is the set of the settings that were given or assigned, even
    if to the default value. Unless `said` includes `dtype_policy`, a model uses Keras' global policy.
    """

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Initializes the settings and records in `said` which settings are given."""
        hparams = super().__new__(cls)
        vars(hparams)["_given"] = {*given}
        return hparams

    def __post_init__(self):
        # `_own` holds the values of settings that are not dataclass fields, and `_declared` holds their declarations.
        # `model_class` is the class whose settings are declared: see `of_model`.
        # `changed_copy` is a number from COPIES: when a changed copy was made last.
        vars(self).update(_own={}, _declared={}, model_class=None, said=vars(self).pop("_given"), changed_copy=0)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _SETTINGS:
            object.__setattr__(self, name, _SETTINGS[name].typed(value))
            vars(self).get("said", set()).add(name)
            if name == "lora_rank" and not self.lora_rank:
                object.__setattr__(self, "lora_alpha", 0.0)  # drops the value from the hparams set or the run
                object.__setattr__(self, "lora_targets", "")
            if name in KINDS and self.__dict__.get("model_class"):
                self._declare(self.model_class)
        elif name in self.__dict__.get("_own", {}):
            self._own[name] = storable(name, self._declared[name].typed(value))
        else:
            advice = "" if hparam_answer(name) else " To add your own, call add_hparam()."
            raise UserError(f"hparam {shown(name)} is not declared. {self._nearest(name)}{advice}")

    def __getattr__(self, name: str) -> Any:  # only called for names that are not fields of the dataclass
        if name.startswith("_"):  # copy and pickle look these up before the object has any state
            raise AttributeError(name)
        if name in self._own:
            return self._own[name]
        raise AttributeError(f"hparam {shown(name)} is not declared. {self._nearest(name)}")

    def _nearest(self, name):
        return hparam_answer(name) or nearest(name, self.values()) or "docs/hparams_sets.md lists all names."

    def add_hparam(self, name: str, value: object) -> None:
        """Declares a hyperparameter added by the user, with the type of the value.

        Raises:
            UserError: the name exists, or the value is not a bool, int, float, str or list that JSON can hold (no NaN).
        """
        if name in self:
            raise UserError(f"hparam {shown(name)} already exists. Assign a value instead of adding it.")
        self._own[name] = storable(name, value)
        self._declared[name] = Setting(name, type(value), value)

    def of_model(self, model_class: type) -> Self:
        """Returns a new HParams with the settings that a model declares in its `HPARAMS`, {name: setting(…)}.

        The declared settings have their defaults, or their values in this object. Which settings of kinds of attention
        and of feed-forward layers are included depends on `self_attention_type` and `ffn_layer`.

        Raises:
            UserError: a value has the wrong type or is out of range, or `HParams` already declares a name.
        """
        hparams = self.copy()
        hparams._declare(model_class)
        return hparams

    def kinds(self) -> dict[str, str]:
        """Returns the settings whose values name kinds of layers, {name: value}."""
        return {name: getattr(self, name) for name in KINDS}

    def _declare(self, model_class):
        """Declares the settings of a model and of each layer type it uses."""
        object.__setattr__(self, "model_class", model_class)
        for name, declared in own_settings(model_class, **self.kinds()).items():
            if name in _SETTINGS:
                raise UserError(f"{model_class.__name__}.HPARAMS: hparam {name} already exists. Choose another name.")
            self._own[name] = declared.typed(self._own.get(name, declared.default))
            self._declared[name] = declared

    def set_hparam(self, name: str, value: object) -> None:
        """Sets a declared hyperparameter to a value."""
        setattr(self, name, value)

    def values(self) -> dict[str, Any]:
        """Returns a dict of all names and values, including hyperparameters added by the user."""
        return {**{f: getattr(self, f) for f in _SETTINGS}, **self._own}

    def settings(self) -> dict[str, Setting]:
        """Returns the declarations of all hyperparameters, {name: Setting}, in the order of `values`."""
        return {**_SETTINGS, **self._declared}

    def get(self, name: str, default: object = None) -> Any:
        """Returns the value of a hyperparameter, or `default` if the name is not declared."""
        return self.values().get(name, default)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HParams) and self.values() == other.values()

    def __contains__(self, name: object) -> bool:
        return name in _SETTINGS or name in self._own

    def copy(self) -> Self:
        """Returns an independent copy of these hyperparameters."""
        hparams = HParams.from_dict(self.values())
        hparams._declared.update(self._declared)
        vars(hparams).update(model_class=self.model_class, said={*self.said})
        return hparams

    def _copy_to_change(self):
        vars(self)["changed_copy"] = next(COPIES)
        return self.copy()

    __copy__ = copy  # copy.copy() would share the values of added hyperparameters

    def override_from_dict(self, overrides: dict) -> Self:
        """Returns a copy in which some values are replaced. Raises `UserError` for unknown names or wrong types."""
        hparams = self._copy_to_change()
        for name, value in _kinds_first(overrides):
            setattr(hparams, name, value)
        return hparams

    def parse(self, text: str, skips: Any = None) -> Self:
        r"""Returns a copy changed by `name=value,name=[1,2],…` (the syntax of tensor2tensor's `--hparams`).

        In a value, `\,` stands for a comma.

        Raises:
            UserError: a name is given twice, or is unknown and `skips(name)` is false (the message has the nearest
                names); a value has the wrong type; or the text does not have this form.
        """
        hparams = self._copy_to_change()
        for name, value in _kinds_first(parse_assignments(text, "--hparams")):
            if name in hparams:
                is_text = isinstance(value, str)
                plain = value.replace(r"\,", ",") if is_text else [item.replace(r"\,", ",") for item in value]
                with located("--hparams"):
                    setattr(hparams, name, plain)
            elif not (skips and skips(name)):
                raise UserError(f"--hparams: {shown(name)} is not a hyperparameter. {hparams._nearest(name)}")
        return hparams

    def to_json(self) -> str:
        """Returns sorted JSON, one value per line. Raises `UserError` for NaN in an added list."""
        for name, value in self._own.items():
            storable(name, value)
        return json.dumps(self.values(), indent=1, sort_keys=True, allow_nan=False)

    @classmethod
    def from_dict(cls, values: dict) -> Self:
        """Creates HParams from a dict. Names that are not declared are added as the user's hyperparameters."""
        hparams = cls()
        for name, value in values.items():
            if name in _SETTINGS:
                setattr(hparams, name, value)
            else:
                hparams.add_hparam(name, value)
        return hparams

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parses the JSON written by `to_json`. Raises `UserError` if the JSON is not an object of hyperparameters."""
        return cls.from_dict(parse_json(text, "hyperparameters", schema=dict))


_SETTINGS = settings_of(HParams)


def _kinds_first(values):
    """Returns the items of a dict, beginning with the settings that may declare further settings."""
    return sorted(values.items(), key=lambda item: item[0] not in KINDS)


def parse_assignments(text, where):
    r"""Splits `name=value,name=[1,2]` into a dict of strings and lists of strings; spaces are ignored.

    A JSON value that begins with { or [{ becomes one string, including its commas. A comma after a backslash is part of
    a value, which keeps the backslash. As in tensor2tensor, a list may end in a comma.

    Args:
        text: the assignments; for "" the result is {}.
        where: the name of the text in errors, such as "--decode_hparams".

    Raises:
        UserError: the text does not have this form, or a name occurs twice.
    """
    assignments, rest = {}, text.strip()
    while rest:
        name, value, rest = _json_assignment(rest) or _assignment(rest, where)
        if name in assignments:
            raise UserError(f"{where}: {shown(name)} is given twice.")
        assignments[name] = value
    return assignments


def _assignment(text, where):
    """Returns (name, value, rest of the text) of the first assignment."""
    match = re.match(r"\s*([A-Za-z][\w.]*)\s*=\s*(\[[^\]]*\]|(?:\\,|[^,\[])*)\s*(?:,|$)", text)
    if not match:
        raise UserError(f"{where}: cannot read {shown(text)}. Expected name=value,name=value.")
    value = match[2].strip()
    if value.startswith("["):
        *value, last = [item.strip() for item in re.split(r"(?<!\\),", value[1:-1])]
        if "" in value:
            raise UserError(rf"{where}: {match[1]}={match[2]}: an item is empty. Remove it, or write a comma as \,.")
        value += [last] * bool(last)
    return match[1], value, text[match.end() :]


def _json_assignment(text):
    """Returns (name, value, rest of the text) if the first value is JSON with braces, otherwise None."""
    begin = re.match(r"\s*([A-Za-z][\w.]*)\s*=\s*(?=\[?\s*\{)", text)
    try:
        _, end = json.JSONDecoder().raw_decode(text, begin.end()) if begin else (None, 0)
    except ValueError:
        return None
    after = begin and re.match(r"\s*(?:,|$)", text[end:])
    return (begin[1], text[begin.end() : end], text[end + after.end() :]) if after else None
