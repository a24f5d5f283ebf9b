"""Decoding for models without a cached step: each step is a full forward pass over the ids decoded so far."""

import logging

import tensorflow as tf

_LOGGER = logging.getLogger("t2t_lite")
_INTERFACE = ("encode", "init_cache", "decode_step")


def decodable(model):
    """Returns `model` if it has the decoding interface; else logs that it has not, and wraps it in a `FullPass`."""
    missing = [name for name in _INTERFACE if not callable(getattr(model, name, None))]
    if not missing:
        return model
    _LOGGER.warning(
        "%s has no method %s: decoding runs the whole model at every step, which is slow. "
        "The interface is described in t2t_lite.decoding.beam_search.",
        type(model).__name__,
        ", ".join(missing),
    )
    return FullPass(model)


class FullPass:
    """Adapts a plain model, `model({"inputs", "targets"}) -> logits [B, T, V]`, to the interface of `beam_search`.

    The model shifts targets right itself, as in training: logits at position i depend only on the targets before i.
    """

    def __init__(self, model):
        self.model = model
        self.max_length = getattr(model, "max_length", None)

    def encode(self, inputs):
        """Returns int32 [B, S] as it is: there is nothing to compute once."""
        return inputs

    def init_cache(self, memory, max_length, beam_size):
        """Returns room for the ids given to each step, [B, K, T]; those given to step 0 have no meaning."""
        batch = memory.shape[0] or tf.shape(memory)[0]
        return {"fixed": memory, "beams": tf.zeros((batch, beam_size, max_length), tf.int32)}

    def decode_step(self, ids, position, cache):
        """Returns logits float32 [B*K, V] at `position` and the cache with `ids` in it."""
        given = cache["beams"]
        ids = tf.reshape(ids, tf.concat([tf.shape(given)[:2], [1]], 0))  # [B, K, 1]
        given = tf.where(tf.range(tf.shape(given)[2]) == position, ids, given)
        # Later positions do not matter; they are left out unless shapes are static.
        known = given if given.shape[2] else given[:, :, : position + 1]
        targets = tf.concat([known[:, :, 1:], tf.zeros_like(ids)], 2)  # step i was given target i - 1
        targets = tf.reshape(targets, (-1, tf.shape(targets)[2]))  # [B*K, T]
        inputs = tf.repeat(cache["fixed"], tf.shape(given)[1], axis=0)  # [B*K, S]
        logits = self.model({"inputs": inputs, "targets": targets}, training=False)
        return tf.gather(logits, position, axis=1), cache | {"beams": given}
