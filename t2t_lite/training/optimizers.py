"""The optimizer that hyperparameters name (mirrors tensor2tensor's utils/optimize.py)."""

import keras

from t2t_lite.training.adafactor import Adafactor
from t2t_lite.training.adam import Adam
from t2t_lite.training.layer_rates import set_rates
from t2t_lite.training.schedules import ProductSchedule


def _adam(hparams, optimizer=Adam, **options):
    return optimizer(
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
    "adam_w": _adam,
    "lamb": lambda hparams, **options: _adam(hparams, keras.optimizers.Lamb, **options),
    "adafactor": _adafactor,
    "sgd": lambda hparams, **options: keras.optimizers.SGD(**options),
}


def make_optimizer(hparams, train_steps):
    """Returns the Keras optimizer of a hyperparameter set; the paper's is Adam (section 5.3).

    Args:
        hparams: HParams, as `without_multistep` returns them.
        train_steps: int, the end of schedules with a fixed length.

    Raises:
        UserError: the schedule is invalid.
    """
    average = {"use_ema": True, "ema_momentum": hparams.ema_decay} if hparams.ema_decay else {}
    rate = ProductSchedule(hparams, train_steps)
    optimizer = OPTIMIZERS[hparams.optimizer](hparams, learning_rate=rate, **average)
    if hparams.weight_decay or hparams.learning_rate_layer_decay != 1:
        set_rates(optimizer, hparams.learning_rate_layer_decay, hparams.weight_decay)
    return optimizer
