"""Learning-rate schedules, which are products of factors (mirrors tensor2tensor's utils/learning_rate.py)."""

import math

import keras
from keras import ops

from t2t_lite import registry
from t2t_lite.errors import UserError, counted, nearest


def _rsqrt_decay(s, h):
    return ops.rsqrt(ops.maximum(s, float(max(h.learning_rate_warmup_steps, 1))))


def _half_cosine(s, steps):
    """A factor that falls from 1 to 0 in `steps` steps."""
    return (1 + ops.cos(math.pi * s / steps)) / 2


# Each factor is a function of (step counted from 1, hparams, train_steps).
FACTORS = {
    "constant": lambda s, h, _: h.learning_rate_constant,
    "rsqrt_hidden_size": lambda s, h, _: h.hidden_size**-0.5,
    "linear_warmup": lambda s, h, _: ops.minimum(1.0, s / max(h.learning_rate_warmup_steps, 1)),
    "rsqrt_decay": lambda s, h, _: _rsqrt_decay(s, h),
    "rsqrt_normalized_decay": lambda s, h, _: max(h.learning_rate_warmup_steps, 1) ** 0.5 * _rsqrt_decay(s, h),
    "linear_decay": lambda s, h, total: ops.clip((total - s) / h.learning_rate_decay_steps, 0.0, 1.0),
    "exp_decay": lambda s, h, _: _exp_decay(s, h),
    "cosdecay": lambda s, h, _: ops.where(
        s <= h.learning_rate_warmup_steps, 1.0, _half_cosine(s, h.learning_rate_decay_steps)
    ),
    "single_cycle_cos_decay": lambda s, h, total: _half_cosine(
        _after_warmup(s, h), max(total - h.learning_rate_warmup_steps, 1)
    ),
    "slanted_triangular": lambda s, h, total: _slanted_triangular(s, h.learning_rate_warmup_steps, total),
    "multi_cycle_cos_decay": lambda s, h, _: _half_cosine(_after_warmup(s, h), h.learning_rate_decay_steps),
}


def _after_warmup(s, h):
    return ops.maximum(s - h.learning_rate_warmup_steps, 0.0)


def _exp_decay(s, h):
    power = _after_warmup(s, h) / h.learning_rate_decay_steps
    return h.learning_rate_decay_rate ** (ops.floor(power) if h.learning_rate_decay_staircase else power)


def _slanted_triangular(s, warmup, total):
    """A factor that rises linearly from 1/32 to 1, then falls to 1/32 (Howard and Ruder, 2018, equation 3)."""
    height = ops.clip(ops.minimum(s / max(warmup, 1), (total - s) / max(total - warmup, 1)), 0.0, 1.0)
    return (1 + 31 * height) / 32


_DEPEND_ON_STEPS = {"linear_decay", "single_cycle_cos_decay", "slanted_triangular"}
_WITHOUT_WARMUP = {"constant", "rsqrt_hidden_size", "linear_decay"}


@keras.saving.register_keras_serializable("t2t_lite")
class ProductSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A learning-rate schedule: the product of the factors that `hparams.learning_rate_schedule` joins with `*`.

    The schedule in the paper (equation 3) is `constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size` with constant 1:
    d^-0.5 · min(step^-0.5, step · warmup^-1.5). Steps are counted from 1, whereas Keras counts from 0.

    Args:
        hparams: HParams, or the name of an hparams set.
        train_steps: int, the last step of `linear_decay`, `single_cycle_cos_decay` and `slanted_triangular`. With these
            factors, a warm-up or decay that is longer than the run is shortened.

    Attributes:
        cut: {name: int}, the hyperparameters whose warm-up or decay is shortened, with their new values.
        depends_on_steps: bool, whether the learning rate depends on train_steps.

    Raises:
        UserError: if the schedule names an unknown factor.
    """

    def __init__(self, hparams, train_steps):
        self.hparams = hparams = registry.hparams(hparams)
        self.train_steps = train_steps
        names = [name.strip() for name in hparams.learning_rate_schedule.split("*")]
        for name in names:
            if name not in FACTORS:
                raise UserError(
                    f"learning_rate_schedule={hparams.learning_rate_schedule}: unknown factor {name!r}. "
                    f"{nearest(name, FACTORS, end=' ')}Expected factors joined by *: {', '.join(FACTORS)}."
                )
        self.names, self.factors, most = {*names}, [FACTORS[name] for name in names], {}
        self.depends_on_steps = not self.names.isdisjoint(_DEPEND_ON_STEPS)
        if self.depends_on_steps and self.names - _WITHOUT_WARMUP:
            most["learning_rate_warmup_steps"] = max(train_steps - 1, 0)
        if "linear_decay" in names:
            most["learning_rate_decay_steps"] = max(train_steps, 1)
        self.cut = {name: steps for name, steps in most.items() if hparams.get(name) > steps}
        self._fitted = hparams.override_from_dict(self.cut)

    def __call__(self, step):
        """Returns the float32 learning rate of the update that follows `step` updates."""
        step = ops.cast(step, "float32") + 1.0
        rate = ops.ones((), "float32")
        for factor in self.factors:
            rate = rate * factor(step, self._fitted, self.train_steps)
        return rate

    def get_config(self):
        """Returns the configuration, with the hyperparameters as JSON."""
        return {"hparams": self.hparams.to_json(), "train_steps": self.train_steps}

    @classmethod
    def from_config(cls, config):
        """Creates the schedule from the result of `get_config`."""
        from t2t_lite.settings.config import HParams

        return cls(HParams.from_json(config["hparams"]), config["train_steps"])


def last_learning_rate(optimizer):
    """Returns the learning rate of an optimizer's last update, a float; before any update, the first learning rate."""
    rate = optimizer._learning_rate  # the property `learning_rate` returns the rate of the next update
    return float(rate(max(_updates(optimizer) - 1, 0)) if callable(rate) else rate)


def describe_other_length(optimizer, steps_before):
    """Returns a log line if changing train_steps has changed the learning rate, otherwise None.

    Args:
        optimizer: a Keras optimizer whose learning rate is a `ProductSchedule`.
        steps_before: int, the number of steps of the earlier schedule.
    """
    now = optimizer._learning_rate
    if not now.depends_on_steps:
        return None
    before, updates = ProductSchedule(now.hparams, steps_before), _updates(optimizer)
    return (
        f"learning_rate_schedule={now.hparams.learning_rate_schedule} depends on train_steps, which was "
        f"{steps_before:,} and is now {now.train_steps:,}: the learning rate of the next "
        f"update is {float(now(updates)):.3e} instead of {float(before(updates)):.3e}."
    )


def describe_short_run(optimizer):
    """Returns log lines that name the parts of the schedule that are longer than the run, and the consequences.

    Args:
        optimizer: a Keras optimizer whose learning rate is a `ProductSchedule`.
    """
    rate = optimizer._learning_rate
    steps, warmup = rate.train_steps, rate.hparams.learning_rate_warmup_steps
    longer = f"is longer than the run of {counted(steps, 'step')}"
    lines = [
        f"{name}={rate.hparams.get(name):,} {longer}, and is reduced to {most:,}." for name, most in rate.cut.items()
    ]
    if "linear_warmup" in rate.names and not rate.depends_on_steps and warmup > steps:
        highest = f"{steps / warmup:.1%} of the highest learning rate"
        lines.append(
            f"learning_rate_warmup_steps={warmup:,} {longer}, which ends at {highest}. Train longer, or shorten the "
            "warm-up."
        )
    return lines


def _updates(optimizer):
    return int(optimizer.iterations.numpy())
