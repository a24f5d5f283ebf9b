"""The moving average of the weights over the steps (`ema_decay`), which Keras' optimizers keep."""

import contextlib

from t2t_lite.runs.weights import named_weights


def averages(model, optimizer):
    """Returns {weight's name: Keras variable}: the averages of trainable weights, and the other weights themselves.

    If the optimizer keeps no averages, the result is `named_weights`.

    Args:
        model: a built Keras model.
        optimizer: its built Keras optimizer.
    """
    weights = named_weights(model)
    if not optimizer.use_ema:
        return weights
    of = {id(v): a for v, a in zip(model.trainable_variables, optimizer._model_variables_moving_average, strict=True)}
    return {name: of.get(id(weight), weight) for name, weight in weights.items()}


def start_averages(model, optimizer):
    """Sets the averages to the weights; Keras does so in the first step, but evaluations may precede it."""
    of_weights = named_weights(model)
    for name, average in averages(model, optimizer).items():
        if average is not of_weights[name]:
            average.assign(of_weights[name].value)


@contextlib.contextmanager
def averaged_weights(model, optimizer):
    """Context manager that replaces the model's weights by their averages, and restores them bit for bit."""
    pairs = zip(named_weights(model).values(), averages(model, optimizer).values(), strict=True)
    pairs = [(weight, average) for weight, average in pairs if weight is not average]
    trained = [weight.numpy() for weight, _ in pairs]
    for weight, average in pairs:
        weight.assign(average.value)
    try:
        yield
    finally:
        for (weight, _), value in zip(pairs, trained, strict=True):
            weight.assign(value)
