"""The optimizers that hyperparameters can select (mirrors tensor2tensor's utils/optimize.py and utils/adafactor.py)."""

import re
from types import SimpleNamespace

import keras
from keras import ops

from t2t_lite.errors import UserError
from t2t_lite.layers.checks import check_choices, check_positive, check_rates
from t2t_lite.models.fine_tuning import is_embedding, parameters
from t2t_lite.models.unread_settings import reason_unread
from t2t_lite.training.optimization.schedules import ProductSchedule

_LAYER = re.compile(r"(?:^|/)(\w+)/\1_(\d+)/")  # matches transformer/encoder/encoder_3/…


@keras.saving.register_keras_serializable("t2t_lite")
class Adam(keras.optimizers.Adam):
    """A faster `keras.optimizers.Adam`, with one pass over each variable and its moments instead of ten.

    The formula is the same (Kingma and Ba, 2015; paper, section 5.3). Only the update with TensorFlow differs from
    Keras; other backends use Keras' update.
    """

    def apply(self, grads, trainable_variables=None):
        """Updates all variables with their gradients: see `keras.optimizers.Optimizer.apply`."""
        self._shared = SimpleNamespace(by_dtype={})  # not a plain dict, which TensorFlow would track and save
        iterations = super().apply(grads, trainable_variables)
        self._shared = None  # otherwise the shared tensors would keep a traced graph alive
        return iterations

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable with TensorFlow's kernel for Adam."""
        if self.amsgrad or keras.backend.backend() != "tensorflow":
            return super().update_step(gradient, variable, learning_rate)
        import tensorflow as tf

        index, dtype = self._get_variable_index(variable), variable.dtype
        if dtype not in self._shared.by_dtype:
            self._shared.by_dtype[dtype] = self._coefficients(dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            lr=tf.cast(learning_rate, dtype),
            grad=gradient,
            **self._shared.by_dtype[dtype],
        )

    def _coefficients(self, dtype):
        """Returns the coefficients shared by all updates of a step. Sharing makes the graph a tenth smaller."""
        import tensorflow as tf

        step = tf.cast(ops.convert_to_tensor(self.iterations) + 1, dtype)  # `iterations` may be a tensor
        beta1, beta2, epsilon = (tf.cast(value, dtype) for value in (self.beta_1, self.beta_2, self.epsilon))
        powers = {"beta1_power": beta1**step, "beta2_power": beta2**step}
        return {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, **powers}


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
    "lamb": lambda hparams, **options: _adam(hparams, Lamb, decay=hparams.weight_decay, **options),
    "adafactor": _adafactor,
    "sgd": lambda hparams, **options: keras.optimizers.SGD(**options),
}
# The decays of averages. Each optimizer reads some of them.
_DECAYS = ("optimizer_adam_beta1", "optimizer_adam_beta2", "optimizer_adafactor_beta1", "ema_decay")


def make_optimizer(hparams, train_steps, model=None):
    """Creates the Keras optimizer that the hyperparameters select, such as Adam (paper, section 5.3).

    Args:
        hparams: HParams, as returned by `without_multistep`.
        train_steps: int, the last step of schedules with a fixed length.
        model: the built keras.Model to train, whose layers may be frozen, or None if no layer is frozen.

    Raises:
        UserError: if the schedule is invalid, the dtype of the weights rounds a decay to 1, or layer-wise rates are set
            for a model without a stack of layers.
    """
    _check_decays(hparams)
    average = {"use_ema": True, "ema_momentum": hparams.ema_decay} if hparams.ema_decay else {}
    rate = ProductSchedule(hparams, train_steps)
    optimizer = OPTIMIZERS[hparams.optimizer](hparams, learning_rate=rate, **average)
    decay = 0.0 if hparams.optimizer == "lamb" else hparams.weight_decay  # LAMB's decay is part of its update
    if decay or hparams.learning_rate_layer_decay != 1 or hparams.unfreeze_steps:
        paths = model and [weight.path for weight in parameters(model)]
        by_layer = {"learning_rate_layer_decay": 1, "unfreeze_steps": 0}
        changed = [name for name, usual in by_layer.items() if getattr(hparams, name) != usual]
        if changed and paths and not any(map(_LAYER.search, paths)):
            raise UserError(
                f"{changed[0]}: the model {type(model).__name__} has no stack of layers, so its layers have no "
                "order. Remove the setting. To train only some of the weights, use frozen=…, which works with any "
                "model."
            )
        set_rates(optimizer, hparams.learning_rate_layer_decay, decay, hparams.unfreeze_steps, paths)
    return optimizer


def _check_decays(hparams):
    """Raises `UserError` for a decay that is 1 in the dtype of the weights, so that an average would never change."""
    dtype = keras.DTypePolicy(hparams.dtype_policy).variable_dtype
    for name in _DECAYS:
        if not reason_unread(name, hparams) and float(ops.cast(hparams.get(name), dtype)) == 1:
            raise UserError(
                f"{name}={hparams.get(name)}: rounded to {dtype}, the dtype of the weights, this number is 1, so the "
                f"average would never change. Expected a smaller number, or dtype_policy=mixed_{dtype}."
            )


def layer_depths(paths):
    """Returns the depth of each weight below the top of a model, a list of int.

    The depth is 0 above the stacks, 1 in the top layer of a stack, and increases by 1 per layer. Embeddings are one
    deeper than the lowest layer of the deepest stack.

    Args:
        paths: list of str, the paths of the weights in the model. The name of the model at the beginning is ignored.
    """
    if len({path.partition("/")[0] for path in paths}) == 1:
        paths = [path.partition("/")[2] for path in paths]
    matches, layers = [_LAYER.search(path) for path in paths], {}
    for match in filter(None, matches):
        stack = match.string[: match.end(1)]
        layers[stack] = max(layers.get(stack, 0), int(match[2]) + 1)
    lowest = max(layers.values(), default=0) + 1

    def depth(path, match):
        if match:
            return layers[path[: match.end(1)]] - int(match[2])
        return lowest if is_embedding(path) else 0

    return [depth(path, match) for path, match in zip(paths, matches, strict=True)]


def describe_unfreezing(paths, unfreeze_steps, train_steps):
    """Returns a log line that says from which step each layer is trained.

    Args:
        paths: see `layer_depths`.
        unfreeze_steps: see `set_rates`; must not be 0.
        train_steps: int, the run's last step.
    """
    first = max(layer_depths(paths)) * unfreeze_steps + 1
    never = f", which is after train_steps={train_steps:,}" if first > train_steps else ""
    return (
        f"unfreeze_steps={unfreeze_steps:,}: training starts with the weights above the layers, adds one layer every "
        f"{unfreeze_steps:,} steps, and includes all weights from step {first:,} on{never}"
    )


def set_rates(optimizer, layer_decay=1.0, weight_decay=0.0, unfreeze_steps=0, paths=None):
    """Sets a learning rate per layer in an optimizer, and decoupled weight decay relative to this rate.

    The rate of a layer decreases with its depth: see `layer_depths` (Howard and Ruder, 2018, section 3.2; Clark et al.,
    2020). The rate is 0 until the layer is unfrozen (Howard and Ruder, 2018, section 3.3). The moments of the optimizer
    are updated even while a layer is frozen, so that the first updates of the layer have the usual size. The decay is
    decoupled from the gradient (Loshchilov and Hutter, 2019). Biases and the scales of normalizations do not decay.
    Keras' own `weight_decay` cannot depend on the layer.

    Args:
        optimizer: keras.optimizers.Optimizer, before its first update.
        layer_decay: float in (0, 1], the factor between the rate of a layer and the rate of the layer below it.
        weight_decay: float, the weight decay relative to the learning rate.
        unfreeze_steps: int, the number of updates after which one more layer is trained, from the top. If 0, all layers
            are trained from the start.
        paths: list of str, the paths of all weights, used to count the layers. Defaults to the trained weights.
    """
    update_step, depths = optimizer.update_step, []

    def update(gradient, variable, learning_rate):
        if not depths:
            trained = [variable.path for variable in optimizer._trainable_variables]
            by_path = dict(zip(paths or trained, layer_depths(paths or trained), strict=True))
            depths.extend(by_path[path] for path in trained)
        depth = depths[optimizer._get_variable_index(variable)]
        rate = ops.cast(learning_rate * layer_decay**depth, variable.dtype)
        if depth and unfreeze_steps:
            rate = ops.where(optimizer.iterations >= depth * unfreeze_steps, rate, ops.zeros_like(rate))
        if weight_decay and _is_matrix(optimizer, variable):
            optimizer.assign_sub(variable, variable * rate * weight_decay)
        update_step(gradient, variable, rate)

    optimizer.update_step = update


def _is_matrix(optimizer, variable):
    """Returns whether a weight decays. Some kinds of attention have a bias of two axes, with a vector for each head."""
    name = optimizer._trainable_variables[optimizer._get_variable_index(variable)].name  # not TensorFlow's name
    return len(variable.shape) > 1 and not name.endswith("bias")


def _dense(gradient, dtype):
    """Casts a gradient; that of an embedding is an IndexedSlices in Keras' `fit`, in which an id may occur twice."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        gradient = tf.convert_to_tensor(gradient)
    return ops.cast(gradient, dtype)


@keras.saving.register_keras_serializable("t2t_lite")
class Lamb(keras.optimizers.Lamb):
    """The LAMB optimizer: Adam's update plus weight decay, scaled by the norm of each matrix (You et al., 2020).

    Vectors, such as biases and the scales of normalizations, are updated as in Adam, without decay or scaling, as in
    ALBERT's code. Keras' own LAMB also scales the updates of vectors, and does not scale the decay.

    Args:
        decay: float, the weight decay, which is the fraction of a matrix that is added to its update.
        **kwargs: see `keras.optimizers.Lamb`.
    """

    def __init__(self, learning_rate=0.001, decay=0.0, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.decay = decay

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable with its gradient."""
        dtype, index = variable.dtype, self._get_variable_index(variable)
        gradient, rate = _dense(gradient, dtype), ops.cast(learning_rate, dtype)
        step = ops.cast(self.iterations + 1, dtype)
        first, second = self._momentums[index], self._velocities[index]
        self.assign_add(first, (gradient - first) * (1 - self.beta_1))
        self.assign_add(second, (ops.square(gradient) - second) * (1 - self.beta_2))
        first = first / (1 - ops.power(ops.cast(self.beta_1, dtype), step))
        second = second / (1 - ops.power(ops.cast(self.beta_2, dtype), step))
        update = first / (ops.sqrt(second) + self.epsilon)
        if _is_matrix(self, variable):
            update = update + self.decay * variable
            norms = [ops.sqrt(ops.sum(ops.square(value))) for value in (variable, update)]
            is_scaled = ops.logical_and(norms[0] > 0, norms[1] > 0)
            update = update * ops.where(is_scaled, norms[0] / ops.where(is_scaled, norms[1], 1.0), 1.0)
        self.assign_sub(variable, rate * update)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), "decay": self.decay}


_EPSILON_1 = 1e-30  # added to squared gradients
_EPSILON_2 = 1e-3  # the smallest scale of a parameter


@keras.saving.register_keras_serializable("t2t_lite")
class Adafactor(keras.optimizers.Optimizer):
    """The Adafactor optimizer, which stores one second moment per row and per column of a matrix, not per element.

    The squared gradients of a matrix are stored as the means of its rows and of its columns. The outer product of these
    means, divided by the overall mean, estimates each element (Shazeer and Stern, 2018, algorithm 4). The update is
    clipped by its own root mean square, and scaled by the root mean square of the parameter. Unlike tensor2tensor,
    `keras.optimizers.Adafactor` stores the product itself, which is as large as the matrix, and limits the learning
    rate to step^-0.5.

    Args:
        learning_rate: float or a schedule.
        beta_1: float in [0, 1), the momentum. 0 means no momentum, which saves memory.
        beta_2: float, the decay of the second moments for decay_type "adam".
        decay_type: "pow" (second moments decay by 1 - step^-memory_exponent, section 7.2) or "adam".
        memory_exponent: float, for decay_type "pow".
        clipping_threshold: float, the largest root mean square of an update (section 6). 0 means no limit.
        factored: bool, whether second moments are factored. If False, they are stored in full.
        multiply_by_parameter_scale: bool, whether step sizes are relative to the scale of parameters (section 8).

    Raises:
        ValueError: if an argument is out of range.
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
        check_rates(beta_1=beta_1, beta_2=beta_2)
        check_positive(beta_2=beta_2, memory_exponent=memory_exponent)
        check_choices(("pow", "adam"), decay_type=decay_type)
        if clipping_threshold < 0:
            raise ValueError(f"`clipping_threshold` must not be negative: received {clipping_threshold=}.")
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.decay_type = decay_type
        self.memory_exponent = memory_exponent
        self.clipping_threshold = clipping_threshold
        self.factored = factored
        self.multiply_by_parameter_scale = multiply_by_parameter_scale

    def build(self, variables):
        """Creates the moments: for each matrix, one moment for its rows and one for its columns."""
        if self.built:
            return
        super().build(variables)
        self._moments = []  # {name: variable} for each variable; checkpoints depend on the order of names
        for variable in variables:
            shape = tuple(variable.shape)
            is_factored = self.factored and len(shape) >= 2
            shapes = {"rows": shape[:-1], "columns": (*shape[:-2], shape[-1])} if is_factored else {"full": shape}
            shapes |= {"momentum": shape} if self.beta_1 else {}
            moments = {
                kind: self.add_variable(shape=moment_shape, dtype=variable.dtype, name=f"{variable.name}_{kind}")
                for kind, moment_shape in shapes.items()
            }
            self._moments.append(moments)

    def _decay(self):
        """Returns the decay of the second moments in this step."""
        step = ops.cast(self.iterations + 1, "float32")
        if self.decay_type == "pow":
            return 1.0 - ops.power(step, -self.memory_exponent)
        return self.beta_2 * (1.0 - ops.power(self.beta_2, step - 1.0)) / (1.0 - ops.power(self.beta_2, step))

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable with its gradient."""
        moments, dtype = self._moments[self._get_variable_index(variable)], variable.dtype
        gradient, rate = _dense(gradient, dtype), ops.cast(learning_rate, dtype)
        decay = ops.cast(self._decay(), dtype)
        squares = ops.square(gradient) + _EPSILON_1
        if self.multiply_by_parameter_scale:
            rate = rate * ops.maximum(_root_mean_square(variable), _EPSILON_2)

        def mixed(moment, new):
            new = decay * moment + (1.0 - decay) * new
            self.assign(moment, new)
            return new

        if "rows" in moments:
            rows = mixed(moments["rows"], ops.mean(squares, axis=-1))
            columns = mixed(moments["columns"], ops.mean(squares, axis=-2))
            rows = rows / ops.mean(rows, axis=-1, keepdims=True)
            update = gradient * ops.rsqrt(rows)[..., None] * ops.rsqrt(columns)[..., None, :]
        else:
            update = gradient * ops.rsqrt(mixed(moments["full"], squares))
        if self.clipping_threshold:
            update = update / ops.maximum(1.0, _root_mean_square(update) / self.clipping_threshold)
        update = rate * update
        if self.beta_1:
            update = self.beta_1 * moments["momentum"] + (1.0 - self.beta_1) * update
            self.assign(moments["momentum"], update)
        self.assign_sub(variable, update)

    def get_config(self):
        """Returns the constructor's arguments."""
        names = ("beta_1", "beta_2", "decay_type", "memory_exponent", "clipping_threshold", "factored")
        scale = {"multiply_by_parameter_scale": self.multiply_by_parameter_scale}
        return {**super().get_config(), **{name: getattr(self, name) for name in names}, **scale}


def _root_mean_square(x):
    return ops.sqrt(ops.mean(ops.square(x)))
