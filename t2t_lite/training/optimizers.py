"""The optimizer that hyperparameters name (mirrors tensor2tensor's utils/optimize.py)."""

import keras

from t2t_lite.errors import UserError
from t2t_lite.training.adafactor import Adafactor
from t2t_lite.training.adam import Adam
from t2t_lite.training.schedules import ProductSchedule


def _adam(hparams, **options):
    return Adam(
        beta_1=hparams.optimizer_adam_beta1,
        beta_2=hparams.optimizer_adam_beta2,
        epsilon=hparams.optimizer_adam_epsilon,
        **options,
    )


def _adafactor(hparams, **options):
    return Adafactor(
        beta_1=hparams.optimizer_adafactor_beta1,
        beta_2=hparams.optimizer_adafactor_beta2,
        decay_type=hparams.optimizer_adafactor_decay_type,
        memory_exponent=hparams.optimizer_adafactor_memory_exponent,
        clipping_threshold=hparams.optimizer_adafactor_clipping_threshold,
        factored=hparams.optimizer_adafactor_factored,
        multiply_by_parameter_scale=hparams.optimizer_adafactor_multiply_by_parameter_scale,
        **options,
    )


OPTIMIZERS = {
    "adam": _adam,
    "true_adam": _adam,
    "adafactor": _adafactor,
    "sgd": lambda hparams, **options: keras.optimizers.SGD(**options),
}


def make_optimizer(hparams, train_steps):
    """Returns the Keras optimizer of a hyperparameter set, Adam in the paper (section 5.3).

    Args:
        hparams: HParams, as `without_multistep` returns them.
        train_steps: int, the end of schedules that have one.

    Raises:
        UserError: a schedule that cannot be.
    """
    average = {"use_ema": True, "ema_momentum": hparams.ema_decay} if hparams.ema_decay else {}
    return OPTIMIZERS[hparams.optimizer](hparams, learning_rate=ProductSchedule(hparams, train_steps), **average)


def without_multistep(hparams):
    """Returns the hyperparameters with tensor2tensor's multi-step Adam said as Adam and accumulation.

    `optimizer=multistep_adam,optimizer_multistep_accumulate_steps=n` is Adam with `gradient_accumulation_steps=n`.
    There the gradients of n batches are averaged, whatever their tokens, and n batches are n steps; here they are one
    step, exact in the number of tokens.

    Raises:
        UserError: two different numbers of batches.
    """
    if hparams.optimizer != "multistep_adam":
        return hparams
    steps, accumulation = hparams.optimizer_multistep_accumulate_steps, hparams.gradient_accumulation_steps
    if steps > 1 and accumulation not in (1, steps):
        raise UserError(
            f"optimizer_multistep_accumulate_steps={steps}, gradient_accumulation_steps={accumulation}: both say how "
            "many batches make a step. Expected one of them."
        )
    return hparams.override_from_dict(
        {
            "optimizer": "adam",
            "gradient_accumulation_steps": max(steps, accumulation),
            "optimizer_multistep_accumulate_steps": 0,
        }
    )
