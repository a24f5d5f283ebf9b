"""The ranges of hyperparameters from which a search samples (mirrors `RangedHParams` of layers/common_hparams.py)."""

import dataclasses
import math

from t2t_lite.errors import UserError, located, nearest, shown
from t2t_lite.registry import register_ranged_hparams
from t2t_lite.settings.ranges import Choices, Range
from t2t_lite.settings.tensor2tensor_names import hparam_answer

# Prefixes of hyperparameters that change how a run is measured. With a different seed or a different evaluation, a run
# may seem better although it is not.
_MEASURE = ("random_seed", "eval_")


@dataclasses.dataclass(frozen=True)
class HParamRange:
    """The values that one hyperparameter may take in a search.

    Attributes:
        name: str, the hyperparameter.
        kind: str, "float", "int", "discrete" or "categorical".
        least, most: the inclusive bounds, if the kind is "float" or "int".
        points: tuple, the possible values, if the kind is "discrete" or "categorical".
        scale: int, one of the scales of `RangedHParams`.
    """

    name: str
    kind: str
    least: float | None = None
    most: float | None = None
    points: tuple = ()
    scale: int = 1

    def facts(self):
        """Returns the range as a dict of JSON values."""
        return {**dataclasses.asdict(self), "points": [*self.points]}


class RangedHParams:
    """The ranges of a search, which are set by a function registered with `registry.register_ranged_hparams`.

    Setting a hyperparameter again replaces its range, so that a function can start from the ranges of another function.

    Attributes:
        ranges: {name: HParamRange}, in the order in which they were set.

    Example:
        >>> @registry.register_ranged_hparams
        ... def my_range(rhp):
        ...     rhp.set_float("learning_rate_constant", 0.3, 3.0, scale=rhp.LOG_SCALE)
        ...     rhp.set_int("num_hidden_layers", 2, 6)
        ...     rhp.set_discrete("batch_size", [1024, 2048, 4096])
        ...     rhp.set_categorical("optimizer", ["adam", "adafactor"])
    """

    LINEAR_SCALE = 1
    LOG_SCALE = 2
    REVERSE_LOG_SCALE = 3

    def __init__(self):
        self.ranges = {}

    def set_categorical(self, name, categories, length=None):
        """Lets a hyperparameter take any of the given unordered values, such as words.

        Args:
            name: str, the hyperparameter.
            categories: list of the possible values.
            length: must be None, because each hyperparameter has a single value in this package.

        Raises:
            UserError: the list is empty, or a length is given.
        """
        self._set_points(name, "categorical", categories, length)

    def set_discrete(self, name, feasible_points, scale=None, length=None):
        """Lets a hyperparameter take any of the given numbers. All are equally likely, whatever the scale.

        Args:
            name: str, the hyperparameter.
            feasible_points: list of the possible values.
            scale: LINEAR_SCALE, LOG_SCALE, REVERSE_LOG_SCALE or None.
            length: None, as for `set_categorical`.

        Raises:
            UserError: the list is empty, a length is given, or the scale is unknown.
        """
        self._check_scale(name, scale)
        self._set_points(name, "discrete", feasible_points, length)

    def set_float(self, name, min_val, max_val, scale=None, length=None):
        """Lets a hyperparameter take any value from `min_val` to `max_val`.

        LOG_SCALE samples as many values between 0.1 and 1 as between 1 and 10. REVERSE_LOG_SCALE mirrors this, for
        ranges such as 0.9 to 0.999, where small differences from the maximum matter.

        Args:
            name: str, the hyperparameter.
            min_val, max_val: numbers, the inclusive bounds.
            scale: LINEAR_SCALE, LOG_SCALE, REVERSE_LOG_SCALE or None, which means linear.
            length: None, as for `set_categorical`.

        Raises:
            UserError: the range is empty, a bound is not finite, or a bound of a logarithmic scale is not positive.
        """
        self._set_numbers(name, "float", float, min_val, max_val, scale, length)

    def set_int(self, name, min_val, max_val, scale=None, length=None):
        """Lets a hyperparameter take any integer value from `min_val` to `max_val`; see `set_float`."""
        self._set_numbers(name, "int", int, min_val, max_val, scale, length)

    def check(self, hparams, where):
        """Checks the ranges against the declared hyperparameters of a set.

        Args:
            hparams: HParams, including the hyperparameters of the model.
            where: str, the beginning of messages, such as "--hparams_range=my_range".

        Raises:
            UserError: no range is set, a hyperparameter is unknown or cannot vary, or its range contains a value that
                the hyperparameter does not allow.
        """
        if not self.ranges:
            raise UserError(f"{where}: no range is set. Expected calls such as rhp.set_float(name, min_val, max_val).")
        for name, value_range in self.ranges.items():
            if name not in hparams:
                answer = hparam_answer(name) or nearest(name, hparams.values())
                raise UserError(f"{where}: {shown(name)} is not a hyperparameter. {answer}".rstrip())
            if name.startswith(_MEASURE):
                raise UserError(f"{where}: {name} changes how a run is measured, so it cannot vary. Remove it.")
            with located(where):
                _check_values(value_range, hparams.settings()[name])

    def _set_points(self, name, kind, points, length):
        self._check_length(name, length)
        if isinstance(points, str) or not isinstance(points, list | tuple | range) or not points:
            raise UserError(f"range of {name}: {shown(points)}: expected a list of at least one value.")
        unlike = [point for point in points if not isinstance(point, bool | int | float | str)]
        if unlike:
            raise UserError(f"range of {name}: {shown(unlike[0])}: expected a number, text, true or false.")
        self.ranges[name] = HParamRange(name, kind, points=tuple(dict.fromkeys(points)))

    def _set_numbers(self, name, kind, number, least, most, scale, length):
        self._check_length(name, length)
        self._check_scale(name, scale)
        for bound in (least, most):
            is_number = isinstance(bound, int | float) and not isinstance(bound, bool) and math.isfinite(bound)
            if not is_number or number(bound) != bound:
                words = "a whole number" if kind == "int" else "a finite number"
                raise UserError(f"range of {name}: {shown(bound)}: expected {words}.")
        if least > most:
            raise UserError(f"range of {name}: {least} to {most} is empty. Expected min_val <= max_val.")
        if scale in (self.LOG_SCALE, self.REVERSE_LOG_SCALE) and least <= 0:
            raise UserError(
                f"range of {name}: {least} to {most}: a logarithmic scale needs numbers above 0. Use LINEAR_SCALE."
            )
        self.ranges[name] = HParamRange(name, kind, number(least), number(most), scale=scale or self.LINEAR_SCALE)

    def _check_scale(self, name, scale):
        if scale not in (None, self.LINEAR_SCALE, self.LOG_SCALE, self.REVERSE_LOG_SCALE):
            raise UserError(
                f"range of {name}: scale={shown(scale)}: expected rhp.LINEAR_SCALE, rhp.LOG_SCALE or "
                "rhp.REVERSE_LOG_SCALE."
            )

    def _check_length(self, name, length):
        if length is not None:
            raise UserError(f"range of {name}: length={shown(length)}: hyperparameters have one value. Remove length.")


def _check_values(value_range, declared):
    """Raises `UserError` unless a hyperparameter allows all values of its range."""
    if value_range.points:
        for point in value_range.points:
            declared.typed(point)
        return
    if value_range.kind == "float" and declared.kind is int:
        raise UserError(f"{value_range.name}: its values are integers. Expected set_int or set_discrete.")
    if declared.kind not in (int, float) or isinstance(declared.limits, Choices):
        raise UserError(f"{value_range.name}: its values are not numbers. Expected set_categorical.")
    if isinstance(declared.limits, Range):  # the special values outside of the range cannot be bounds
        declared = dataclasses.replace(declared, limits=dataclasses.replace(declared.limits, also=()))
    declared.typed(value_range.least)
    declared.typed(value_range.most)


@register_ranged_hparams
def transformer_base_range(rhp):
    """tensor2tensor's range for `transformer_base`.

    tensor2tensor varies `learning_rate`, which the schedule of its `transformer_base` does not use. Here the same range
    applies to `learning_rate_constant`, which is 1 in the paper and 2 in tensor2tensor's set.
    """
    rhp.set_float("learning_rate_constant", 0.3, 3.0, scale=rhp.LOG_SCALE)
    rhp.set_discrete("learning_rate_warmup_steps", [1000, 2000, 4000, 8000, 16000])
    rhp.set_float("initializer_gain", 0.5, 2.0)
    rhp.set_float("optimizer_adam_beta1", 0.85, 0.95)
    rhp.set_float("optimizer_adam_beta2", 0.97, 0.99)
    rhp.set_float("weight_decay", 0.0, 1e-4)


@register_ranged_hparams
def transformer_regularization_range(rhp):
    """Ranges for regularizing a Transformer on small corpora. They are not from tensor2tensor."""
    rhp.set_float("layer_prepostprocess_dropout", 0.0, 0.5)
    rhp.set_float("attention_dropout", 0.0, 0.3)
    rhp.set_float("relu_dropout", 0.0, 0.3)
    rhp.set_float("label_smoothing", 0.0, 0.2)


@register_ranged_hparams
def encoder_fine_tuning_range(rhp):
    """Learning rates for fine-tuning an encoder as a classifier (BERT, appendix A.3; RoBERTa, table 10)."""
    rhp.set_discrete("learning_rate_constant", [1e-5, 2e-5, 3e-5, 5e-5])
