"""LAMB (You et al. 2020, "Large batch optimization for deep learning"), which ALBERT was trained with."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("t2t_lite")
class Lamb(keras.optimizers.Lamb):
    """Adam's update, and the decay of the weights with it, at the scale of each matrix (algorithm 2).

    Vectors, such as biases and the scales of normalizations, neither decay nor have a scale of their own: they are
    updated as by Adam, as in ALBERT's program. Keras' own LAMB scales them, too, and decays apart from the scale.

    Args:
        decay: float, the share of a matrix that is added to its update.
        **kwargs: see `keras.optimizers.Lamb`.
    """

    def __init__(self, learning_rate=0.001, decay=0.0, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.decay = decay

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable."""
        dtype, index = variable.dtype, self._get_variable_index(variable)
        gradient, rate = ops.cast(gradient, dtype), ops.cast(learning_rate, dtype)
        step = ops.cast(self.iterations + 1, dtype)
        first, second = self._momentums[index], self._velocities[index]
        self.assign_add(first, (gradient - first) * (1 - self.beta_1))
        self.assign_add(second, (ops.square(gradient) - second) * (1 - self.beta_2))
        first = first / (1 - ops.power(ops.cast(self.beta_1, dtype), step))
        second = second / (1 - ops.power(ops.cast(self.beta_2, dtype), step))
        update = first / (ops.sqrt(second) + self.epsilon)
        if len(variable.shape) > 1:
            update = update + self.decay * variable
            norms = [ops.sqrt(ops.sum(ops.square(value))) for value in (variable, update)]
            is_scaled = ops.logical_and(norms[0] > 0, norms[1] > 0)
            update = update * ops.where(is_scaled, norms[0] / ops.where(is_scaled, norms[1], 1.0), 1.0)
        self.assign_sub(variable, rate * update)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), "decay": self.decay}
