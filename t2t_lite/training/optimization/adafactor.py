"""Adafactor (Shazeer and Stern, 2018), tensor2tensor's choice for big models (mirrors its utils/adafactor.py)."""

import keras
from keras import ops

_EPSILON_1 = 1e-30  # added to squared gradients
_EPSILON_2 = 1e-3  # the least scale of a parameter


@keras.saving.register_keras_serializable("t2t_lite")
class Adafactor(keras.optimizers.Optimizer):
    """An optimizer with factored second moments, which need memory for rows plus columns, not rows times columns.

    Squared gradients of a matrix are stored as the means of its rows and of its columns. Their outer product, divided
    by the overall mean, estimates each element (algorithm 4). The update is clipped by its root mean square, and scaled
    by the parameter's own. Unlike tensor2tensor, `keras.optimizers.Adafactor` stores the product itself, as large as
    the matrix, and caps the learning rate at step^-0.5.

    Args:
        learning_rate: float or a schedule.
        beta_1: float in [0, 1), momentum; 0: none, which saves its memory.
        beta_2: float, for decay_type "adam".
        decay_type: "pow": second moments decay by 1 - step^-memory_exponent (section 7.2), or "adam".
        memory_exponent: float.
        clipping_threshold: float, the largest root mean square of an update (section 6); 0: no limit.
        factored: bool; False keeps second moments in full.
        multiply_by_parameter_scale: bool, relative step sizes (section 8).

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        learning_rate=0.001,
        beta_1=0.0,
        beta_2=0.999,
        decay_type="pow",
        memory_exponent=0.8,
        clipping_threshold=1.0,
        factored=True,
        multiply_by_parameter_scale=True,
        name="adafactor",
        **kwargs,
    ):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        if decay_type not in ("pow", "adam"):
            raise ValueError(f"`decay_type` must be pow or adam: received decay_type={decay_type!r}.")
        if not (0 <= beta_1 < 1 and 0 < beta_2 < 1):
            raise ValueError(f"`beta_1` and `beta_2` must be below 1: received beta_1={beta_1}, beta_2={beta_2}.")
        if memory_exponent <= 0 or clipping_threshold < 0:
            raise ValueError(
                f"`memory_exponent` must be positive, `clipping_threshold` not negative: received "
                f"memory_exponent={memory_exponent}, clipping_threshold={clipping_threshold}."
            )
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.decay_type = decay_type
        self.memory_exponent = memory_exponent
        self.clipping_threshold = clipping_threshold
        self.factored = factored
        self.multiply_by_parameter_scale = multiply_by_parameter_scale

    def build(self, variables):
        """Creates the moments: for each matrix one of its rows and one of its columns."""
        if self.built:
            return
        super().build(variables)
        self._rows, self._columns, self._full, self._momentum = [], [], [], []
        for variable in variables:
            shape = tuple(variable.shape)
            factored = self._is_factored(shape)
            self._rows.append(self._moment(variable, "rows", shape[:-1]) if factored else None)
            self._columns.append(self._moment(variable, "columns", (*shape[:-2], shape[-1])) if factored else None)
            self._full.append(None if factored else self._moment(variable, "full", shape))
            self._momentum.append(self._moment(variable, "momentum", shape) if self.beta_1 else None)

    def _is_factored(self, shape):
        return self.factored and len(shape) >= 2

    def _moment(self, variable, name, shape):
        return self.add_variable(shape=shape, dtype=variable.dtype, name=f"{variable.name}_{name}")

    def _decay(self):
        """The share of old second moments in the new ones."""
        step = ops.cast(self.iterations + 1, "float32")
        if self.decay_type == "pow":
            return 1.0 - ops.power(step, -self.memory_exponent)
        return self.beta_2 * (1.0 - ops.power(self.beta_2, step - 1.0)) / (1.0 - ops.power(self.beta_2, step))

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable."""
        index, dtype = self._get_variable_index(variable), variable.dtype
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            gradient = tf.convert_to_tensor(gradient)  # that of a Keras embedding is of some rows: IndexedSlices
        gradient, rate = ops.cast(gradient, dtype), ops.cast(learning_rate, dtype)
        decay = ops.cast(self._decay(), dtype)
        squares = ops.square(gradient) + _EPSILON_1
        if self.multiply_by_parameter_scale:
            rate = rate * ops.maximum(_root_mean_square(variable), _EPSILON_2)

        def mixed(moment, new):
            new = decay * moment + (1.0 - decay) * new
            self.assign(moment, new)
            return new

        if self._is_factored(variable.shape):
            rows = mixed(self._rows[index], ops.mean(squares, axis=-1))
            columns = mixed(self._columns[index], ops.mean(squares, axis=-2))
            rows = rows / ops.mean(rows, axis=-1, keepdims=True)
            update = gradient * ops.rsqrt(rows)[..., None] * ops.rsqrt(columns)[..., None, :]
        else:
            update = gradient * ops.rsqrt(mixed(self._full[index], squares))
        if self.clipping_threshold:
            update = update / ops.maximum(1.0, _root_mean_square(update) / self.clipping_threshold)
        update = rate * update
        if self.beta_1:
            update = self.beta_1 * self._momentum[index] + (1.0 - self.beta_1) * update
            self.assign(self._momentum[index], update)
        self.assign_sub(variable, update)

    def get_config(self):
        """Returns the constructor's arguments."""
        own = ("beta_1", "beta_2", "decay_type", "memory_exponent", "clipping_threshold", "factored")
        scale = {"multiply_by_parameter_scale": self.multiply_by_parameter_scale}
        return {**super().get_config(), **{name: getattr(self, name) for name in own}, **scale}


def _root_mean_square(x):
    return ops.sqrt(ops.mean(ops.square(x)))
