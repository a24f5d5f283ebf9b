"""The cache for decoding: where keys and values of earlier steps are stored, and which of them a beam sees.

The K beams of a sentence are stored side by side, as if they were positions: slot `step * K + beam` holds what a beam
wrote at a step, and is never moved. The table of ancestors says whose slot holds each position of a beam's history; it
is all that a search reorders. A prompt that was read in one pass has slots of its own, which all beams share.
"""

from keras import ops

from t2t_lite.layers.integers import integer_dtype


def new_ancestry(batch, beam_size, max_length):
    """Returns the table of ancestors for decoding that has not started, int [B, K, T]."""
    return ops.zeros((batch, beam_size, max_length), integer_dtype())


def see_ancestors(ancestry, position):
    """Enters a step into the table of ancestors.

    Args:
        ancestry: int [B, K, T], reordered by parent since the last step.
        position: int scalar, the step.

    Returns:
        (the table with the step's slots, mask bool [B, K, T * K]: True where beam k sees a slot).
    """
    batch, beam, length = ops.shape(ancestry)
    own = ops.cast(ops.arange(beam), ancestry.dtype)
    ancestry = ops.where(ops.arange(length) == position, ops.expand_dims(own, 1), ancestry)
    # Beam k sees slot (p, j) when j is its ancestor at p, and p is not in the future. [B, K, T, K] -> [B, K, T*K]
    mask = (ops.expand_dims(ancestry, -1) == own) & ops.expand_dims(ops.arange(length) <= position, 1)
    return ancestry, ops.reshape(mask, (batch, beam, length * beam))


def see_prompt(mask, prompts, length):
    """Puts the columns of the prompts' slots before those of the steps.

    Args:
        mask: bool [B, K, S], see `see_ancestors`.
        prompts: int32 [B], ids of each prompt.
        length: int P, slots for the longest prompt.

    Returns:
        bool [B, K, P + S].
    """
    seen = ops.arange(length, dtype="int32") < ops.expand_dims(prompts, (1, 2))  # [B, 1, P]
    return ops.concatenate([ops.broadcast_to(seen, (*ops.shape(mask)[:2], length)), mask], axis=2)


def step_position(cache, beams, position):
    """Returns the position in its text, int scalar or [B], of what one decoding step reads.

    Args:
        cache: as `MultiHeadAttention.call` takes it, before the step.
        beams: int K.
        position: int scalar, the step, or None where keys are appended.
    """
    position = ops.shape(cache["key"])[2] // beams if position is None else position
    return position + cache["prompt_length"] if "prompt_length" in cache else position


def cached_parts(beams, key, value, position, prompt=None):
    """Returns what one decoding step attends to: a list of (keys, values, distances), the prompt's first.

    Args:
        beams: int K.
        key, value: [B, heads, steps * K, size].
        position: int scalar, the step.
        prompt: None, or (keys [B, heads, P, size], values, lengths int32 [B]).

    Returns:
        Distances are those of a key's position from the query's, int32 [steps * K], or [B, P] of a prompt.
    """
    position = ops.cast(position, "int32")
    parts = [(key, value, ops.arange(ops.shape(key)[2], dtype="int32") // beams - position)]
    if prompt is not None:
        keys, values, lengths = prompt
        distances = ops.arange(ops.shape(keys)[2], dtype="int32") - ops.expand_dims(lengths + position, 1)
        parts.insert(0, (keys, values, distances))
    return parts


def add_to_cache(past, new, position):
    """Adds `new` [B, heads, T, size] to `past` [B, heads, S, size]: in place at `position * T`, or at the end."""
    new = ops.cast(new, past.dtype)
    if position is None:
        return ops.concatenate([past, new], axis=2)
    if isinstance(ops.shape(past)[2], int):
        return ops.slice_update(past, (0, 0, position * ops.shape(new)[2], 0), new)
    return write_in_place(past, new, position)


def write_in_place(past, new, position):
    """`ops.slice_update` at `position * T` of the third axis, for TensorFlow's graphs of unknown lengths.

    Keras' operation is XLA's: it needs static lengths, is compiled for every new shape, and does not exist in
    TensorFlow Serving. This one copies nothing if nothing else refers to `past`, as in a loop. (It works on two axes,
    because on four it takes twice as long.)
    """
    import tensorflow as tf

    batch, heads, count, size = ops.shape(new)  # of `past` not even the shape is asked for later: that would hold it
    width = count * size
    rows = ops.reshape(new, (batch * heads, width))
    updated = tf.raw_ops.TensorStridedSliceUpdate(
        input=ops.reshape(past, (batch * heads, -1)),
        begin=tf.stack([0, position * width]),
        end=tf.stack([0, (position + 1) * width]),
        strides=[1, 1],
        value=rows,
        begin_mask=0b01,  # all rows
        end_mask=0b01,
    )
    return ops.reshape(updated, (batch, heads, -1, size))
