"""The decoding cache: where the keys and values of earlier steps are stored, and which of them each beam sees.

The K beams of a sentence are stored side by side, as if they were positions: slot `step * K + beam` holds the keys and
values that a beam computed at a step, and is never moved. The table of ancestors says, for each position in a beam's
history, which beam's slot to read. Beam search reorders only this table. A prompt that is processed in one pass has
separate slots, which all beams share.
"""

import numbers
from typing import Any, NamedTuple

from keras import ops

from t2t_lite.layers.checks import at_most, integer_dtype, shape_of
from t2t_lite.layers.positions import Steps


class Memory(NamedTuple):
    """Keys and values that are projected only once, from an encoder's output or from prompts.

    Attributes:
        key: [B, heads, S, key_dim].
        value: [B, heads, S, value_dim].
    """

    key: Any
    value: Any


class Past(NamedTuple):
    """The state that self-attention passes from one decoding step to the next.

    Attributes:
        key: [B, heads, steps * K, key_dim].
        value: [B, heads, steps * K, value_dim].
        prompt: the Memory of the prompts, which all beams see; () if there are no prompts.
        lengths: int32 [B], the lengths of the prompts; () if there are no prompts.
        grows: ((),) if the cache began with no slots and grows in each step, otherwise (). Both are without tensors, so
            that every backend's loops accept them.
    """

    key: Any
    value: Any
    prompt: Any = ()
    lengths: Any = ()
    grows: Any = ()

    def step(self, beams):
        """Returns the number of the next step, for a cache that grows by one slot per beam in each step."""
        return shape_of(self.key)[2] // beams

    def with_step(self, key, value, position):
        """Returns a `Past` with a step's keys and values, [B, heads, K, size], written at `position` or appended.

        Raises:
            ValueError: if `position` is a Python number outside the cache (a tensor is not checked), or is missing for
                a cache that was created with slots.
        """
        steps = self.step(shape_of(key)[2])
        grows = ((),) if isinstance(steps, int) and steps == 0 else self.grows
        if position is None and isinstance(steps, int) and not grows:
            raise ValueError(
                f"`position` is missing, but the cache has slots for {steps} steps. Pass the number of the step, or "
                "begin with a cache with no slots, which grows."
            )
        if isinstance(position, numbers.Integral) and isinstance(steps, int) and not 0 <= position < steps:
            raise ValueError(
                f"position={position} is outside the cache, which has slots for {steps} steps. Create a cache with "
                "more slots, or pass a smaller position."
            )
        key, value = add_to_cache(self.key, key, position), add_to_cache(self.value, value, position)
        return self._replace(key=key, value=value, grows=grows)

    def position(self, step):
        """Returns the text position of a decoding step's input token, int scalar or [B]."""
        return step if isinstance(self.lengths, tuple) else step + self.lengths

    def parts(self, beams, step):
        """Returns the keys and values for a step as a list of (keys, values, `Steps`), beginning with the prompt."""
        step = ops.cast(step, "int32")
        parts = [(self.key, self.value, Steps(ops.arange(shape_of(self.key)[2], dtype="int32") // beams - step))]
        if self.prompt:
            slots = ops.arange(shape_of(self.prompt.key)[2], dtype="int32")
            parts.insert(0, (*self.prompt, Steps(slots - ops.expand_dims(self.lengths + step, (1, 2)))))
        return parts

    def own_slots(self, beams, step):
        """Returns which slots each beam sees if beams are never reordered: its prompt and its own slots up to `step`.

        Returns:
            bool [B, K, P + steps * K], like `see_prompt`.
        """
        batch, _, slots, _ = shape_of(self.key)
        slot, beam = ops.arange(slots, dtype="int32"), ops.expand_dims(ops.arange(beams, dtype="int32"), 1)
        mask = (slot // beams <= ops.cast(step, "int32")) & (slot % beams == beam)
        mask = ops.broadcast_to(mask, (batch, beams, slots))
        return see_prompt(mask, self.lengths, self.prompt_slots) if self.prompt else mask

    @property
    def prompt_slots(self):
        """The number of slots for prompts, P; 0 if there are no prompts."""
        return shape_of(self.prompt.key)[2] if self.prompt else 0

    def count(self, beams):
        """Returns an upper bound on the number of positions in one row of the cache, including its prompt."""
        return shape_of(self.key)[2] // beams + self.prompt_slots

    def near(self, positions, seen, at, beams, mask):
        """Returns the cached keys and values at the given positions, in the form of `parts`, and a mask for them.

        Args:
            positions: int32 [B or 1, W], the positions, counted from the beginning of each text.
            seen: bool [B or 1, heads or 1, W], which of these positions are visible.
            at: int32 [B or 1, 1], the position of the step.
            beams: int, K.
            mask: as in `MultiHeadAttention.attend_cached`.

        Returns:
            (parts, mask). The mask is bool and broadcastable to [B, heads, K, N], where N is the number of keys in the
            parts: W * K, or W + W * K if there are prompts.
        """
        slots, prompts = shape_of(self.key)[2], self.prompt_slots
        steps = positions - (ops.expand_dims(self.lengths, 1) if self.prompt else 0)
        places = ops.expand_dims(ops.clip(steps, 0, slots // beams - 1) * beams, 2) + ops.arange(beams, dtype="int32")
        places = ops.reshape(places, (-1, shape_of(positions)[1] * beams))
        mask = None if mask is None else ops.broadcast_to(mask, (*shape_of(mask)[:3], prompts + slots))
        step_parts = (ops.repeat(x, beams, -1) for x in (positions - at, seen & ops.expand_dims(steps >= 0, 1)))
        picked = [_picked(self, places, *step_parts, mask, prompts)]
        if self.prompt:
            places = ops.clip(positions, 0, ops.maximum(prompts - 1, 0))
            # If all prompts are empty, there is nothing to gather.
            width = shape_of(positions)[1] * at_most(prompts, 1)
            in_prompt = seen & ops.expand_dims(steps < 0, 1)
            prompt_parts = (x[..., :width] for x in (places, positions - at, in_prompt))
            picked.insert(0, _picked(self.prompt, *prompt_parts, mask, 0))
        parts, masks = zip(*picked, strict=True)
        return [*parts], masks[0] if len(masks) == 1 else ops.concatenate(masks, axis=3)


def _picked(memory, places, distances, seen, mask, first):
    """Selects the slots `places` [B or 1, N] of one of `Past.parts`; returns their keys, values and mask columns."""
    batch, width = shape_of(memory.key)[0], shape_of(places)[1]  # not -1, which is undefined if another size is 0
    places = ops.broadcast_to(places, (batch, width))
    seen = ops.expand_dims(seen, 2)
    if mask is not None:
        *_, heads, queries, count = shape_of(mask)
        mask = ops.broadcast_to(mask, (batch, heads, queries, count))
        mask = gathered(ops.reshape(mask, (batch, heads * queries, count, 1)), places + first)
        seen = ops.logical_and(seen, ops.reshape(mask, (batch, heads, queries, width)))
    part = gathered(memory.key, places), gathered(memory.value, places), Steps(ops.expand_dims(distances, 1))
    return part, seen


def gathered(x, places):
    """Selects the positions `places`, int32 [B, N], of each row along axis S: [B, A, S, size] -> [B, A, N, size]."""
    batch, inner, count, size = shape_of(x)
    first = ops.reshape(ops.arange(batch * inner, dtype="int32") * count, (batch, inner, 1))
    rows = ops.take(ops.reshape(x, (batch * inner * count, size)), first + ops.expand_dims(places, 1), axis=0)
    return ops.reshape(rows, (batch, inner, shape_of(places)[1], size))  # not -1, because JAX needs the size if N is 0


def new_ancestry(batch, beam_size, max_length):
    """Returns the table of ancestors at the start of decoding, int [B, K, T]."""
    return ops.zeros((batch, beam_size, max_length), integer_dtype())


def see_ancestors(ancestry, position):
    """Adds a decoding step to the table of ancestors.

    Args:
        ancestry: int [B, K, T], already reordered by the parents chosen in the last step.
        position: int scalar, the number of the step.

    Returns:
        (the updated table, mask), where the mask is bool [B, K, T * K], True where beam k sees a slot.
    """
    batch, beam, length = shape_of(ancestry)
    beams, steps = ops.cast(ops.arange(beam, dtype="int32"), ancestry.dtype), ops.arange(length, dtype="int32")
    ancestry = ops.where(steps == position, ops.expand_dims(beams, 1), ancestry)
    # Beam k sees slot (p, j) if beam j is its ancestor at position p, and p is not in the future.
    mask = (ops.expand_dims(ancestry, -1) == beams) & ops.expand_dims(steps <= position, 1)
    return ancestry, ops.reshape(mask, (batch, beam, length * beam))


def see_prompt(mask, prompts, length):
    """Prepends the mask columns of the prompts' slots to the columns of the steps.

    Args:
        mask: bool [B, K, S], from `see_ancestors`.
        prompts: int32 [B], the number of ids in each prompt.
        length: int, P, the number of slots for the longest prompt.

    Returns:
        bool [B, K, P + S].
    """
    seen = ops.arange(length, dtype="int32") < ops.expand_dims(prompts, (1, 2))  # [B, 1, P]
    return ops.concatenate([ops.broadcast_to(seen, (*shape_of(mask)[:2], length)), mask], axis=2)


def add_to_cache(past, new, position):
    """Writes `new` [B, heads, T, size] into `past` [B, heads, S, size] at `position * T`, or appends it."""
    new = ops.cast(new, past.dtype)
    if position is None:
        return ops.concatenate([past, new], axis=2)
    if isinstance(shape_of(past)[2], int):
        return ops.slice_update(past, (0, 0, position * shape_of(new)[2], 0), new)
    return write_in_place(past, new, position)


def write_in_place(past, new, position):
    """Works like `ops.slice_update` at `position * T` of axis 2, but for TensorFlow graphs with unknown lengths.

    Keras' operation uses XLA: it needs static lengths, is compiled for every new shape, and is not available in
    TensorFlow Serving. This function does not copy `past` if nothing else refers to it, as in a loop. (The tensors are
    reshaped to two axes, because an update with four axes takes twice as long.)
    """
    import tensorflow as tf

    batch, heads, count, size = shape_of(new)  # not `shape_of(past)`, which would keep `past` in memory
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
