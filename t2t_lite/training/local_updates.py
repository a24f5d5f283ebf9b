"""Lets a Keras optimizer update each replica's variables from values on that replica's own device."""

import tensorflow as tf


def update_locally(optimizer, strategy):
    """Changes how a built optimizer applies gradients under a `tf.distribute` strategy.

    Keras would sum the gradients again, which fails for values per replica. It would also compute the moving averages
    of the weights on the first replica and send them to all others. Here `apply` takes summed gradients, with a copy on
    each replica, and each replica averages its own weights.

    Args:
        optimizer: a built keras.optimizers.Optimizer.
        strategy: tf.distribute.Strategy whose variables it updates.
    """
    optimizer._all_reduce_sum_gradients = list

    def average(variables):
        momentum = tf.where(tf.equal(optimizer.iterations.value, 0), 0.0, optimizer.ema_momentum)

        def mix(average, variable):
            share = tf.cast(momentum, average.dtype)
            average.assign(share * average + (1.0 - share) * variable)

        pairs = zip(variables, optimizer._model_variables_moving_average, strict=True)
        for variable, moving in pairs:
            strategy.extended.update(moving.value, mix, args=(variable.value,), group=False)

    if optimizer.use_ema:
        optimizer._update_model_variables_moving_average = average
