"""Weight decay, and learning rates that fall from the top layer down, for any Keras optimizer."""

import re

from keras import ops

_LAYER = re.compile(r"(?:^|/)(\w+)/\1_(\d+)/")  # such as transformer/encoder/encoder_3/…
_EMBEDDING = re.compile(r"^(?!.*softmax).*(embedding|position)")


def layer_factors(paths, layer_decay):
    """Returns a factor of the learning rate for each weight, a list of float.

    It is 1 for what lies above the layers, `layer_decay` for the top layer of a stack, and again that much less for
    each layer below; embeddings are below the deepest stack (Howard and Ruder, 2018; Clark et al., 2020).

    Args:
        paths: list of str, the weights' paths in the model.
        layer_decay: float in (0, 1].
    """
    found, layers = [_LAYER.search(path) for path in paths], {}
    for match in filter(None, found):
        stack = match.string[: match.end(1)]
        layers[stack] = max(layers.get(stack, 0), int(match[2]) + 1)
    lowest = max(layers.values(), default=0) + 1

    def depth(path, match):
        if match:
            return layers[path[: match.end(1)]] - int(match[2])
        return lowest if _EMBEDDING.search(path) else 0

    return [layer_decay ** depth(path, match) for path, match in zip(paths, found, strict=True)]


def set_rates(optimizer, layer_decay=1.0, weight_decay=0.0):
    """Changes how an optimizer updates: each weight has its layer's rate, and decays by `weight_decay` times the rate.

    The decay is decoupled from the gradient (Loshchilov and Hutter, 2019). Biases and the scales of normalisations,
    which are vectors, do not decay. Keras' own `weight_decay` knows no rate by layer.

    Args:
        optimizer: keras.optimizers.Optimizer, before its first update.
        layer_decay: see `layer_factors`.
        weight_decay: float.
    """
    update_step, factors = optimizer.update_step, []

    def update(gradient, variable, learning_rate):
        if not factors:
            factors.extend(layer_factors([v.path for v in optimizer._trainable_variables], layer_decay))
        rate = ops.cast(learning_rate * factors[optimizer._get_variable_index(variable)], variable.dtype)
        if weight_decay and len(variable.shape) > 1:
            optimizer.assign_sub(variable, variable * rate * weight_decay)
        update_step(gradient, variable, rate)

    optimizer.update_step = update
