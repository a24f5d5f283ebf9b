"""Attention masks (which keys a query may see), and the masks that Keras attaches to tensors."""

import functools
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from t2t_lite.layers.checks import known_range, shape_of
from t2t_lite.layers.dropout import is_compiled

# Subtracted from masked scores. It is finite, so that rows without visible keys do not become NaN, and so large that
# the difference equals -MASKED whatever the score.
MASKED = 1e30


# The name of this class must not begin with "_", because TensorFlow allows no such scope outside other scopes.
class Masked(keras.layers.Layer):
    """The identity, to whose output Keras attaches a mask."""

    def __init__(self):
        super().__init__(autocast=False)
        self.supports_masking = True

    def call(self, inputs, mask=None):
        """Returns the inputs."""
        return inputs


_masked = functools.cache(Masked)  # cached, because creating a layer is slow


def with_mask(tensor, mask):
    """Attaches a bool mask to a tensor by calling a layer, Keras' only public method that works on every backend."""
    is_symbolic = isinstance(tensor, keras.KerasTensor)  # in functional models, each call needs a separate layer
    return (Masked() if is_symbolic else _masked())(tensor, mask=mask)


def copied(tensor):
    """Returns a copy of a tensor with the same Keras mask, for a layer that removes the masks of its inputs."""
    mask, copy = getattr(tensor, "_keras_mask", None), ops.copy(tensor)
    return copy if mask is None else with_mask(copy, mask)


def check_masks(**masks):
    """Raises `ValueError` if a mask holds floats, or known integers other than 0 and 1.

    The additive masks of other libraries, with 0 where visible and -1e9 elsewhere, would mean the opposite here. The
    masks to check are passed as {argument: array or None}.
    """
    for name, mask in masks.items():
        if mask is None:
            continue
        mask = mask if hasattr(mask, "dtype") else np.asarray(mask)
        dtype = keras.backend.standardize_dtype(mask.dtype)
        fault = f"is of dtype {dtype}" if "float" in dtype else ""
        if "int" in dtype:
            low, high = known_range(mask) or (0, 1)
            fault = f"holds numbers from {low} to {high}" if low < 0 or high > 1 else ""
        if fault:
            raise ValueError(
                f"`{name}` {fault}: expected bool, True where visible. Convert an additive mask (zeros and "
                f"large negative numbers) with {name} == 0, and a mask of zeros and ones with {name} == 1."
            )


def causal_mask(query_length, key_length, first=0):
    """Returns bool [query_length, key_length], True where the key is not later than the query (paper, 3.2.3).

    The first query is at the same position as the key with index `first`.
    """
    # The positions are floats, which are exact here, because TensorFlow would compare int32 on the host and then copy
    # the whole mask to a GPU.
    queries, keys = (ops.cast(ops.arange(length, dtype="int32"), "float32") for length in (query_length, key_length))
    if not (isinstance(first, int) and first == 0):
        queries = queries + ops.cast(first, "float32")
    return ops.expand_dims(queries, 1) >= ops.expand_dims(keys, 0)


class Visible(NamedTuple):
    """The masks of one attention call before they are merged: which keys each query may see.

    Attributes:
        causal: bool, whether keys later than the query are hidden.
        keys: bool [B or 1, S], True where a key is visible to all queries; None if all keys are visible.
        dense: bool, broadcastable to [B, heads, T, S], True where visible; None if the call has no such mask.
        first: int or int scalar, the position of the first query among the keys.
    """

    causal: bool = False
    keys: Any = None
    dense: Any = None
    first: Any = 0

    def merged(self, queries, keys):
        """Merges the masks into one mask, broadcastable to [B, heads, T, S], or None if all queries see all keys."""
        masks = [] if self.dense is None else [self.dense]
        if self.causal:
            masks.append(ops.expand_dims(causal_mask(queries, keys, self.first), (0, 1)))
        if self.keys is not None:
            masks.append(ops.expand_dims(self.keys, (1, 2)))
        return _all_of(masks)


def masked_softmax(scores, mask=None):
    """Returns the softmax over the last axis, computed in at least float32, with 0 where `mask` is False.

    In rows without visible keys, all results are equal; they are not NaN.

    Args:
        scores: float [..., S].
        mask: bool, broadcastable to `scores`, True where visible; or None.

    Returns:
        [..., S], in the dtype of `scores`.

    Raises:
        ValueError: if the mask holds floats: see `check_masks`.
    """
    check_masks(mask=mask)
    is_short = keras.backend.standardize_dtype(scores.dtype) in ("float16", "bfloat16")
    return _softmax_in_xla(scores, mask) if is_compiled() and is_short else _softmax(scores, mask)


def with_hidden(logits, mask):
    """Subtracts `MASKED` from the logits, float32 or float64, where `mask` is False."""
    # The mask is subtracted, not added, because oneDNN fuses an addition with the preceding product into a kernel that
    # may be a hundred times slower (156 ms for 58 x 8 x 38 x 38 scores). `ops.subtract` lets Keras promote dtypes,
    # unlike `-`. Python numbers would have the dtype of `keras.config.floatx()`, in which MASKED may be infinite.
    shown, hidden = (ops.cast(number, logits.dtype) for number in (0.0, MASKED))
    return ops.subtract(logits, ops.where(mask, shown, hidden))


def _softmax(scores, mask):
    logits = ops.cast(scores, keras.backend.result_type(scores.dtype, "float32"))
    logits = logits if mask is None else with_hidden(logits, mask)
    # A single key gets exp(0), because Keras' softmax would warn, and `ones_like` would give the scores no gradients.
    weights = ops.exp(ops.subtract(logits, logits)) if logits.shape[-1] == 1 else ops.softmax(logits, axis=-1)
    return ops.cast(weights, scores.dtype)


def _softmax_in_xla(scores, mask):
    """Computes `_softmax` of 16-bit scores under XLA; the gradient reads attention weights in 16 bits, not float32."""
    import tensorflow as tf

    @tf.custom_gradient
    def softmax(scores):
        weights = _softmax(scores, mask)

        def gradient(upstream):
            wide = tf.cast(weights, tf.float32)
            inner = wide * tf.cast(upstream, tf.float32)
            return tf.cast(inner - wide * tf.reduce_sum(inner, axis=-1, keepdims=True), scores.dtype)

        return weights, gradient

    return softmax(tf.convert_to_tensor(scores))  # `scores` may be a variable


def merge_masks(shape, attention_mask, padding_mask=None):
    """Returns the logical AND of both masks, bool, broadcastable to [B, heads, T, S], or None if there are no masks.

    Args:
        shape: (B, heads, T, S).
        attention_mask: as in `MultiHeadAttention.call`.
        padding_mask: bool [B, S] or None, the mask of the keys.

    Raises:
        ValueError: see `visible_keys`.
    """
    return visible_keys(shape, attention_mask, False, padding_mask).merged(*shape[2:])


def visible_keys(shape, attention_mask, causal, value_mask=None, key_mask=None, context=None):
    """Returns the masks of an attention call as `Visible`.

    Args:
        shape: (B, heads, T, S).
        attention_mask, causal, value_mask, key_mask: as in `MultiHeadAttention.call`.
        context: `Context` or None. The states in the context are the first S - T keys, which the other masks do not
            include.

    Raises:
        ValueError: if a mask has the wrong shape; unknown sizes are not checked. Also if `attention_mask` holds floats:
            see `check_masks`.
    """
    *rows, queries, keys = shape
    masked = (*rows, queries, queries if context else keys)
    dense = None if attention_mask is None else _dense_mask(attention_mask, masked)
    masks = [_padding_mask(mask, masked) for mask in (value_mask, key_mask) if mask is not None]
    if dense is not None and tuple(dense.shape[1:3]) == (1, 1) and dense.shape[3] != 1:
        masks.insert(0, dense[:, 0, 0])
        dense = None
    seen = _all_of(masks)
    if context is None:
        return Visible(causal, seen, dense)
    first = keys - queries
    if dense is not None:
        dense = ops.broadcast_to(dense, (*shape_of(dense)[:3], queries))  # because its size of keys may be 1
        dense = ops.pad(dense, ((0, 0), (0, 0), (0, 0), (first, 0)), constant_values=True)
    return Visible(causal, context.mask(queries, seen), dense, first)


def _padding_mask(mask, shape):
    """Casts the mask of keys or values to bool [B, S]; raises `ValueError` if it does not fit scores of `shape`."""
    mask = ops.cast(mask, "bool")
    expected, sizes = (shape[0], shape[3]), tuple(mask.shape)
    if len(sizes) != 2 or not all(n is None or _fits(n, size) for n, size in zip(sizes, expected, strict=True)):
        raise ValueError(
            f"The mask of a sequence must be [B, S], with B, S = {_sizes(expected)}: received {_sizes(sizes)}. Pass a "
            "mask [B, T, S], with T queries, as `attention_mask`."
        )
    # A size of 1 is broadcast here, because blocks and contexts need one column per key.
    return ops.broadcast_to(mask, (shape_of(mask)[0], shape[3])) if sizes[1] == 1 else mask


def _fits(size, expected):
    """Returns whether a mask's size equals the expected size or broadcasts to it; unknown expected sizes always fit."""
    return size == 1 or not isinstance(expected, int) or size == expected


def _all_of(masks):
    """Returns the logical AND of masks, or None if there are no masks."""
    return functools.reduce(ops.logical_and, masks) if masks else None


def _dense_mask(mask, shape):
    """Casts a mask to bool and adds its missing axes, up to [B, heads, T, S].

    Raises `ValueError` if the mask does not fit attention scores of `shape`, (B, heads, T, S), or holds floats.
    """
    check_masks(attention_mask=mask)
    mask = ops.cast(mask, "bool")
    batch, _, queries, keys = shape
    expected, shape_of_mask = {2: shape[2:], 3: (batch, queries, keys), 4: shape}.get(len(mask.shape), ()), mask.shape

    def fits(size, wanted):
        # The unknown size in a mask [None, S] is the batch size if the queries' length is known.
        return (size is None and len(shape_of_mask) > 2) or _fits(size, wanted)

    if not expected or not all(map(fits, shape_of_mask, expected)):
        raise ValueError(
            f"`attention_mask` must be [T, S], [B, T, S] or [B, heads, T, S], with B, heads, T, S = {_sizes(shape)}: "
            f"received {_sizes(shape_of_mask)}. Pass a padding mask [B, S] as [B, 1, S]: "
            "attention_mask=mask[:, None, :]."
        )
    mask = ops.expand_dims(mask, 0) if len(shape_of_mask) == 2 else mask
    return ops.expand_dims(mask, 1) if len(shape_of_mask) < 4 else mask


def _sizes(shape):
    return f"({', '.join(str(size) if isinstance(size, int) else '?' for size in shape)})"
