"""Hidden states of an encoder as features for other models (Devlin et al. 2019, "BERT", section 5.3)."""

import inspect

import tensorflow as tf

from t2t_lite.errors import UserError, counted
from t2t_lite.settings.ranges import JOINS, POOLINGS

# Which of the states, the embeddings' and then each layer's, a word means.
LAYERS = {
    "first": lambda count: [0],
    "last": lambda count: [count - 1],
    "second_to_last": lambda count: [count - 2],
    "last_four": lambda count: [*range(max(1, count - 4), count)],
    "all": lambda count: [*range(1, count)],
}


def has_hidden_states(model):
    """Returns whether a model's `encode` returns hidden states on request, as an encoder's does."""
    encode = getattr(model, "encode", None)
    return callable(encode) and "return_hidden_states" in inspect.signature(encode).parameters


def features_of(model, layers="last", join=None, pooling=None):
    """Returns a function of ids, which can be traced.

    Args:
        model: an encoder, such as `TransformerEncoder`.
        layers, join, pooling: see `Predictor.features`.

    Returns:
        A function: int32 [B, S], padded with 0 -> float32 [B, 1 + S, n], 0 where there is padding; with `pooling`
        [B, n].

    Raises:
        UserError: an argument that means nothing, or a model that tells no hidden states.
    """
    if not has_hidden_states(model):
        raise UserError(f"features: a {type(model).__name__} tells no hidden states. Expected an encoder.")
    count = 1 + model.config["num_layers"]
    wanted = LAYERS[layers](count) if layers in [*LAYERS] else layers
    is_list = isinstance(wanted, list | tuple) and wanted
    if not (is_list and all(type(i) is int and 0 <= i < count for i in wanted)):
        raise UserError(f"layers={layers!r}: expected {', '.join(LAYERS)}, or a list of numbers from 0 to {count - 1}.")
    if join not in JOINS and (join is not None or len(wanted) > 1):
        raise UserError(f"join={join!r}: expected {' or '.join(JOINS)} for {counted(len(wanted), 'layer')}.")
    if pooling not in (None, *POOLINGS):
        raise UserError(f"pooling={pooling!r}: expected {', '.join(POOLINGS)} or None.")

    def features(ids):
        found = model.encode(ids, return_hidden_states=True)
        every = [*found["states"][:-1], found["hidden"]]  # the last one with the final norm, if there is one
        chosen = [tf.cast(every[i], tf.float32) for i in wanted]
        joined = tf.add_n(chosen) if join == "sum" else tf.concat(chosen, -1)
        if pooling == "first":
            return model.of_row(joined, ids) if hasattr(model, "of_row") else joined[:, 0]
        is_there = tf.cast(found["mask"], tf.float32)[..., None]
        joined = joined * is_there
        return joined if pooling is None else tf.reduce_sum(joined, 1) / tf.reduce_sum(is_there, 1)

    return features
