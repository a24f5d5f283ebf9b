"""The size of a model."""

import math

from t2t_lite import registry
from t2t_lite.models.fine_tuning import parameters
from t2t_lite.models.shapes_only import shapes_only


def weights_of(model, hparams_set, hparams, vocab_size):
    """Returns how many weights a model has."""
    found = registry.hparams(hparams_set).of_model(registry.model(model)).parse(hparams)
    return sum(math.prod(weight.shape) for weight in parameters(shapes_only(registry.model(model), found, vocab_size)))
