"""Declares settings with their types and ranges, and checks values against them."""

import ctypes
import dataclasses
import functools
import math
import re
import types
import typing

from t2t_lite.errors import UserError, nearest


@dataclasses.dataclass(frozen=True)
class Range:
    """The range of a numeric setting, which `str` formats as "from 1 to 4,096". Only finite numbers are allowed.

    Attributes:
        least, most: the smallest and the largest number.
        above, below: exclusive bounds of the range. Exclusive bounds apply after rounding to float32, the type of later
            computations, so 0.99999999 is not below 1.
        also: further allowed numbers, such as -1 for "off".
    """

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    also: tuple = ()

    def __contains__(self, value):
        if value in self.also:
            return True
        if isinstance(value, float) and not math.isfinite(value):
            return False
        rounded = ctypes.c_float(value).value if isinstance(value, float) else value
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or rounded > self.above)
            and (self.below is None or rounded < self.below)
        )

    def __str__(self):
        if self.least is not None and self.most is not None:
            text = f"from {_digits(self.least)} to {_digits(self.most)}"
        else:
            bounds = (
                ("at least", self.least), ("above", self.above), ("at most", self.most), ("below", self.below)
            )  # fmt: skip
            text = " and ".join(f"{words} {_digits(bound)}" for words, bound in bounds if bound is not None)
        return "".join([text, *(f", or {_digits(number)}" for number in self.also)])


@dataclasses.dataclass(frozen=True)
class Choices:
    """The words that a setting accepts."""

    words: tuple

    def __contains__(self, value):
        return value in self.words

    def __str__(self):
        return ", ".join(self.words)


# Ranges that several settings share. Each bound is far beyond any real use; larger values are mistakes that would
# usually fill the memory or never finish.
ALPHA = Range(0, 5)  # the fifth power of the longest length is still a finite float32
BEAM_SIZE = Range(1, 1024)
COUNT = Range(0, 2**31 - 1)  # numbers of sentences, steps or examples; for some settings, 0 means all
DECODE_BATCH = Range(1, 4096)
EXTRA_LENGTH = Range(0, 10_000)
NEW_TOKENS = Range(1, 10_000)
GPUS = Range(0, 1024)
JOINS, POOLINGS = ("sum", "concat"), ("mean", "first", "max")  # ways to combine layers and positions
ALL_POSITIONS = "none"  # the choice that keeps all positions instead of combining them
PATTERN_LENGTH = Range(2, 2048)  # number of rows and columns in the picture of an attention pattern, one per position
SHAPES = Range(1, 64)  # number of batch shapes, for each of which XLA compiles a program
LOGICAL_CPUS = Range(0, 64)  # number of replicas, each with a copy of the graph
LOSS_SCALE = Range(1, 2**24)  # loss scale: enough for any float16 gradient, and the same bound as in NVIDIA's Apex
MINUTES = Range(0, 10**7)  # 19 years
SECONDS = Range(0, 10**8)  # 3 years
HOURS = Range(most=10**6, above=0)
STEPS_BETWEEN = Range(1, 10**9)
CHARACTER_COVERAGE = Range(0.98, 1)  # the range that SentencePiece accepts
CHECKPOINTS_KEPT = Range(0, 10**6)
COMPUTE_DTYPES = ("float32", "bfloat16")  # for decoding
LONG_INPUTS = ("split", "truncate", "refuse")  # treatments of a text that is too long
SPLIT_SENTENCES = ("auto", "always", "never")  # whether a text is split before it is translated
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}  # between the cells of a table
NORMALIZATIONS = ("identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")  # SentencePiece's names
PAIRS = Range(1, 10**9)  # number of sentence pairs
MASK_RATE = Range(0.001, 0.999)
MASK_UNITS = ("token", "word", "ngram", "phrase")  # units that a masked language model predicts as a whole
METRIC_MOVE = Range(0, 10**6)
SEQUENCE_LENGTH = Range(2, 2**20)  # number of ids in a row of text, or between the starts of consecutive rows
SHARDS = Range(1, 10**6)
SAMPLING_SEED = Range(0, 2**31 - 1)  # fits the int32 input of an export
SEED = Range(-(2**31), 2**32 - 1)
VOCAB_SIZE = Range(1, 2**24)


@dataclasses.dataclass(frozen=True)
class Setting:
    """The declaration of a setting: the single source for its checks, its documentation and its use in models.

    Attributes:
        name: str.
        kind: type, or the union of a type and None.
        default: value.
        limits: Range, Choices or None.
        meaning: str, what the setting means for users, a sentence.
        argument: str, the argument of a model's constructor that the setting sets, or "". `self_attention.x` is the
            argument x of the kinds of self-attention that accept it (`layers/attention_kinds.py`).
        fixed: bool, whether the setting must not change during a run, because checkpoints depend on it.
        values: dict, the argument's value for each choice, or None if the value is the choice itself.
        zero: str, name of the setting whose value replaces 0, "none" if 0 stands for the argument None, or "" if 0 has
            no special meaning.
        per: str, name of the setting by which the argument's value is divided.
        flag: str, the setting's name in --decode_hparams, which uses tensor2tensor's names; "" if the name is the same
            there, None if --decode_hparams does not have the setting.
        needs, excludes: names of facts in `decoding.command.flag_checks`: facts that must hold for the setting to have
            an effect, and facts that make it ineffective.
        predicts: bool, whether the setting affects the predictions of an encoder.
    """

    name: str
    kind: type
    default: object
    limits: Range | Choices | None = None
    meaning: str = ""
    argument: str = ""
    fixed: bool = False
    values: dict | None = None
    zero: str = ""
    per: str = ""
    flag: str | None = ""
    needs: tuple = ()
    excludes: tuple = ()
    predicts: bool = False

    def typed(self, value):
        """Converts and checks a value of this setting: see `typed_value`. Raises `UserError`.

        In a list, items given as text are converted to the type of the default's items.
        """
        value = typed_value(self.name, value, self.kind, self.limits)
        if self.kind is list and (kind := _kind_of_items(self.default)):
            return [typed_value(self.name, item, kind) if isinstance(item, str) else item for item in value]
        return value


def setting(default, least=None, most=None, *, above=None, below=None, also=(), choices=(), limits=None, **facts):
    """Declares a setting: a field of a dataclass, or a value of a model's `HPARAMS`.

    Args:
        default: value.
        least, most, above, below, also: the arguments of the setting's `Range`.
        choices: the allowed words, or a dict {word: value of the constructor's argument}.
        limits: Range or Choices, instead of the arguments above.
        facts: other attributes of `Setting`, such as its meaning.
    """
    bounded = Range(least, most, above, below, also)
    limits = limits or (Choices(tuple(choices)) if choices else bounded if bounded != Range() else None)
    values = choices if isinstance(choices, dict) else None
    return dataclasses.field(default=default, metadata={"limits": limits, "values": values, **facts})


@functools.cache
def settings_of(cls):
    """Returns the settings of a dataclass whose fields are declared by `setting`, {name: Setting}."""
    kinds = typing.get_type_hints(cls)
    return {f.name: Setting(f.name, kinds[f.name], f.default, **f.metadata) for f in dataclasses.fields(cls)}


def own_settings(model_class, **kinds):
    """Returns {name: Setting} of the settings in a model's `HPARAMS`, {name: setting(…)}.

    `kinds` is {name of a setting that names kinds of layers: value}. If given, the settings that these kinds declare
    are included: see `TransformerModel.kind_hparams`.
    """
    fields = getattr(model_class, "HPARAMS", {})
    if kinds and hasattr(model_class, "kind_hparams"):
        fields = {**fields, **model_class.kind_hparams(**kinds)}
    return {name: Setting(name, type(f.default), f.default, **f.metadata) for name, f in fields.items()}


def check_settings(instance, limited_only=False):
    """Converts each field of a dataclass to its declared type. Raises `UserError` for a value out of range.

    Args:
        instance: an instance of a dataclass.
        limited_only: bool, whether to leave fields that have no limits unchanged, since their types are arbitrary.
    """
    for name, declared in settings_of(type(instance)).items():
        if limited_only and declared.limits is None:
            continue
        object.__setattr__(instance, name, declared.typed(getattr(instance, name)))


def typed_value(name, value, kind, limits=None):
    """Converts a value to a type and checks its limits. Strings are parsed: an int may be `1e3`, and a float `1`.

    Args:
        name: the name of the value, for errors.
        value: a value of the type `kind`, or text.
        kind: bool, int, float, str or list, or the union of one of these types and None.
        limits: Range, Choices or None. Floats must be finite in any case.

    Raises:
        UserError: the value has the wrong type or is out of range.
    """
    if isinstance(kind, types.UnionType):
        if value is None or value == "None":
            return None
        kind = next(k for k in typing.get_args(kind) if k is not type(None))
    limits = Range() if limits is None and kind is float else limits
    try:
        converted = _converted(value, kind)
        if limits is not None and converted not in limits:
            raise ValueError
        return converted
    except (ValueError, KeyError, OverflowError, TypeError):
        raise UserError(f"{name}={typed_text(value)}: expected {_expected(value, kind, limits)}.") from None


def typed_text(value):
    """Returns a value as a user would type it, truncated to 80 characters."""
    if isinstance(value, int) and value.bit_length() >= 400:
        return "a huge number"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _converted(value, kind):
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()  # a NumPy scalar
    if kind is bool and isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}[value.lower()]
    if kind in (list, str, bool):
        if not isinstance(value, kind):
            raise ValueError
        return [*value] if kind is list else value  # a copy, so that the declared default is not changed
    if isinstance(value, bool | bytes) or value is None or (not isinstance(value, str) and hasattr(value, "__len__")):
        raise ValueError  # since `float` would accept an array with one number
    number = float(value)
    if kind is float:
        return number
    if number != int(number):
        raise ValueError
    return int(value) if not isinstance(value, str) or re.fullmatch(r"\s*[+-]?\d+\s*", value) else int(number)


def _kind_of_items(items):
    """Returns bool, int or float if all items of a list are of this type, where an int is a float, otherwise None."""
    kinds = {*map(type, items)}
    return next(
        (kind for kind, of in ((bool, {bool}), (int, {int}), (float, {int, float})) if kinds and kinds <= of), None
    )


def _expected(value, kind, limits):
    if isinstance(limits, Choices):
        return f"one of {limits}. {nearest(value, limits.words)}".rstrip(". ")
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", list: "a list, [a,b]"}
    return f"{words[kind]} {limits or ''}".rstrip()


def _digits(number):
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"
