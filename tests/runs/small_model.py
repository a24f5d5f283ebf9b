"""The smallest model with an optimizer, whose only weights are two numbers that a test sets."""

import keras
import numpy as np

from t2t_lite.settings.config import HParams
from t2t_lite.training.optimization.optimizers import make_optimizer


def small_model(units=2, hparams=""):
    """Returns (model, its built Keras optimizer)."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(units, use_bias=False)])
    return model, optimizer_of(model, hparams)


def optimizer_of(model, hparams=""):
    """Returns the built optimizer of a model, in a run of ten steps."""
    optimizer = make_optimizer(HParams().parse(hparams), 10)
    optimizer.build(model.trainable_variables)
    return optimizer


def set_weights(model, first):
    """Sets the weights to `first`, `first` + 3, …, so that no two are equal."""
    (weight,) = model.trainable_variables
    weight.assign(first + 3.0 * np.arange(weight.shape[1])[None])


def first_weight(model):
    """Returns the number that `set_weights` was given."""
    return float(model.trainable_variables[0].numpy()[0, 0])
