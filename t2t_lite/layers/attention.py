"""Multi-head attention (paper, sections 3.2.1 and 3.2.2)."""

import keras
from keras import ops

from t2t_lite.layers.base import Layer
from t2t_lite.layers.cache import add_to_cache, cached_parts, step_position
from t2t_lite.layers.checks import check_rates, check_sequences, check_sizes
from t2t_lite.layers.dense import Dense
from t2t_lite.layers.dropout import Dropout, is_compiled
from t2t_lite.layers.keras_names import GLOROT, Initializer, check_initializers, dense_initializers
from t2t_lite.layers.masks import check_masks, masked_softmax, merge_masks
from t2t_lite.layers.positions import POSITIONS


@keras.saving.register_keras_serializable("t2t_lite")
class MultiHeadAttention(Layer):
    """softmax(QKᵀ / √d_k) V in `num_heads` heads (paper, equation 1 and section 3.2.2).

    The first three arguments and the meaning of masks are those of `keras.layers.MultiHeadAttention`: B is the batch, T
    the query's length, S the key's; True in a mask means visible. To subclass, override `project` or `attend`; where
    positions matter to `attend`, also `attend_cached`.

    Args:
        num_heads: int, h.
        key_dim: int, d_k, size of a head's queries and keys; None: hidden size / num_heads.
        value_dim: int, d_v, size of a head's values; None: key_dim's default.
        dropout: float in [0, 1), on the attention weights.
        use_bias: bool, biases in the four projections; the paper's equations have none.
        positions: the kind of position by which queries and keys of self-attention are turned, "rotary", or "none":
            see `POSITIONS`.
        kernel_initializer, bias_initializer, output_initializer: see `keras.layers.Dense`; the third is of the last
            projection's kernel, None: kernel_initializer.

    Example:
        >>> layer = MultiHeadAttention(num_heads=2)
        >>> layer(keras.ops.ones((1, 5, 8)), use_causal_mask=True).shape
        (1, 5, 8)

    Raises:
        ValueError: a size is not positive, the rate is outside [0, 1), an initializer is unknown, or the hidden size is
            not a multiple of `num_heads` where a head's size follows from it.
    """

    is_self_attention = False  # whether it takes neither `value` nor `key`

    turned = None  # how positions turn queries and keys; made by `build`, which a subclass may replace

    def __init__(
        self,
        num_heads: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = False,
        positions: str = "none",
        kernel_initializer: Initializer = GLOROT,
        bias_initializer: Initializer = "zeros",
        output_initializer: Initializer = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_sizes(num_heads=num_heads, key_dim=key_dim, value_dim=value_dim)
        check_rates(dropout=dropout)
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, value_dim
        self.dropout_rate = dropout
        self.use_bias = use_bias
        self.positions = positions
        self.initializers = {
            "kernel_initializer": kernel_initializer,
            "bias_initializer": bias_initializer,
            "output_initializer": output_initializer,
        }
        check_initializers(**self.initializers)
        self.input_spec = keras.InputSpec(ndim=3)
        self.supports_masking = True

    @classmethod
    def from_config(cls, config):
        """Makes the layer, also of a configuration with "rotary" in the place of "positions", as they once were."""
        config = dict(config)
        return super().from_config({"positions": "rotary", **config} if config.pop("rotary", False) else config)

    def build(self, query_shape, value_shape=None, key_shape=None):
        """Creates the four projections, by default Glorot uniform as in tensor2tensor's common_attention.py."""
        check_sequences(query=query_shape, value=value_shape, key=key_shape)
        hidden_size = query_shape[-1]
        value_shape = value_shape or query_shape
        if hidden_size % self.num_heads and None in (self.key_dim, self.value_dim):
            divisors = [n for n in range(1, hidden_size + 1) if hidden_size % n == 0]
            best = min(divisors, key=lambda n: abs(n - self.num_heads))
            raise ValueError(
                f"The hidden size must be a multiple of `num_heads`: received hidden size {hidden_size}, "
                f"num_heads={self.num_heads}. Nearest valid num_heads: {best}. Or set key_dim and value_dim."
            )
        self.query_size = self.key_dim or hidden_size // self.num_heads
        self.value_size = self.value_dim or hidden_size // self.num_heads
        turn = POSITIONS[self.positions].turn
        self.turned = turn and turn(self.query_size)
        inputs = {"query": query_shape, "key": key_shape or value_shape, "value": value_shape}
        for role, shape in inputs.items():
            size = self.value_size if role == "value" else self.query_size
            self._add_projection(role, shape[-1], self.num_heads * size)
        self._add_projection("output", self.num_heads * self.value_size, hidden_size)
        self.dropout = Dropout(self.dropout_rate, dtype=self.dtype_policy, name="dropout")
        self.freeze_new_parts()

    def _add_projection(self, role, input_size, output_size):
        own = dense_initializers(self.initializers, role == "output") | {"name": f"{role}_projection"}
        dense = Dense(output_size, use_bias=self.use_bias, dtype=self.dtype_policy, **own)
        dense.build((None, input_size))
        setattr(self, f"{role}_projection", dense)

    def project(self, x, role):
        """Projects to or from the heads. Override to change a projection.

        Args:
            x: [B, T, hidden] for the roles "query", "key" and "value"; [B, heads, T, value_dim] for "output".
            role: "query", "key", "value" or "output".

        Returns:
            [B, heads, T, head size], or [B, T, hidden] for "output".
        """
        dense = getattr(self, f"{role}_projection")
        if role == "output":
            batch, heads, length, size = ops.shape(x)
            x = ops.reshape(_swap(x), (-1, heads * size))
            return ops.reshape(dense(x), (batch, length, dense.units))
        batch, length, hidden_size = ops.shape(x)
        # One matrix product of two dimensions: the batched form is slower, and its gradient much slower.
        heads = (batch, length, self.num_heads, dense.units // self.num_heads)  # a -1 would mean 0 in an empty batch
        return _swap(ops.reshape(dense(ops.reshape(x, (-1, hidden_size))), heads))

    def project_alike(self, x):
        """Returns what `project` gives for queries, keys and values of the same [B, T, hidden].

        Where XLA compiles a training step it is one product with the three kernels side by side, and their gradients
        are one product each: base's step took 2 % less on an H200. Elsewhere they stay three, whose bits runs rely on.
        """
        roles = "query", "key", "value"
        if not is_compiled() or type(self).project is not MultiHeadAttention.project:
            return [self.project(x, role) for role in roles]
        layers = [getattr(self, f"{role}_projection") for role in roles]
        batch, length, hidden_size = ops.shape(x)
        kernel = ops.cast(ops.concatenate([layer.kernel for layer in layers], axis=1), self.compute_dtype)
        joined = ops.matmul(ops.reshape(x, (-1, hidden_size)), kernel)
        if self.use_bias:
            joined = joined + ops.cast(ops.concatenate([layer.bias for layer in layers]), self.compute_dtype)
        ends = self.num_heads * self.query_size, 2 * self.num_heads * self.query_size
        return [
            _swap(ops.reshape(part, (batch, length, self.num_heads, part.shape[-1] // self.num_heads)))
            for part in ops.split(joined, ends, axis=1)
        ]

    def attend(self, query, key, value, mask, training):
        """Scaled dot-product attention (paper, equation 1). Override to change how heads attend.

        Args:
            query: [B, heads, T, key_dim].
            key: [B, heads, S, key_dim].
            value: [B, heads, S, value_dim].
            mask: bool, broadcastable to [B, heads, T, S], True where visible; or None.
            training: bool.

        Returns:
            (output [B, heads, T, value_dim], weights [B, heads, T, S]).
        """
        return self.attend_parts(query, [(key, value, None)], mask, training)

    @property
    def overrides_attend(self):
        """Whether a subclass attends in a way of its own."""
        return type(self).attend is not MultiHeadAttention.attend

    def attend_parts(self, query, parts, mask, training):
        """Attends to keys and values that lie in several tensors, with one softmax and without joining them.

        Args:
            query: [B, heads, T, key_dim].
            parts: list of (key, value, distances); of the distances see `scores`.
            mask, training: as `attend`, S being the number of all keys.

        Returns:
            As `attend`.
        """
        # Scaling the queries, not the scores: oneDNN fuses the scaled product into a far slower kernel.
        query = query * ops.cast(self.query_size**-0.5, query.dtype)
        scores = [self.scores(query, key, distances) for key, _, distances in parts]
        if len(parts) == 1:
            weights = masked_softmax(scores[0], mask)
            dropped = [self.dropout(weights, training=training)]
        else:
            weights = masked_softmax(ops.concatenate(scores, axis=-1), mask)
            dropped = _split(self.dropout(weights, training=training), ops.shape(parts[0][0])[2])
        outputs = [self.mix(w, value, distances) for w, (_, value, distances) in zip(dropped, parts, strict=True)]
        return sum(outputs[1:], outputs[0]), weights

    def scores(self, query, key, distances):
        """Returns the scores of keys before the softmax, [B, heads, T, S]. Override where distances matter.

        Args:
            query: [B, heads, T, key_dim], scaled.
            key: [B, heads, S, key_dim].
            distances: int32 [S] or [B, S], how far each key is from the queries, all of one position, negative to
                the left; None: query i and key j of one sequence.
        """
        return ops.matmul(query, ops.swapaxes(key, -1, -2))

    def mix(self, weights, value, distances):
        """Returns the sums of values, [B, heads, T, value_dim]; `distances` as in `scores`."""
        return ops.matmul(weights, value)

    def attend_sequence(self, query, key, value, mask, causal, training, needs_weights):
        """Attends from a whole sequence, by `attend`. Override where fewer scores do.

        Args:
            query, key, value, training: as `attend`.
            mask: bool, broadcastable to [B, heads, T, S], or None.
            causal: bool, hides later positions from earlier ones, in addition to `mask`.
            needs_weights: bool.

        Returns:
            As `attend`; the weights may be None unless they are needed.
        """
        if causal:
            mask = merge_masks((*ops.shape(query)[:3], ops.shape(key)[2]), mask, True)
        return self.attend(query, key, value, mask, training)

    def attend_cached(self, query, key, value, mask, position, training, prompt=None):
        """Attends from the T beams of one decoding step to all that is in the cache.

        This is `attend`, as the base class does not care about positions. Override where they matter.

        Args:
            query: [B, heads, T, key_dim].
            key, value: [B, heads, steps * T, size]: slot `p * T + beam` holds position p.
            mask: bool, broadcastable to [B, heads, T, steps * T], or None.
            position: int scalar, the step.
            training: bool.
            prompt: None, or (keys, values, lengths) of prompts that all beams see: [B, heads, P, size] twice and int32
                [B]. Their columns come first in the mask. The queries' position is that of the step after the prompt.

        Returns:
            As `attend`.
        """
        if prompt is None:
            return self.attend(query, key, value, mask, training)
        parts = cached_parts(ops.shape(query)[2], key, value, position, prompt)
        if not self.overrides_attend:  # does not need them joined
            return self.attend_parts(query, parts, mask, training)
        key, value = (ops.concatenate([part[at] for part in parts], axis=2) for at in (0, 1))
        return self.attend(query, key, value, mask, training)

    def empty_cache(self, batch, slots):
        """Returns the cache for `call` for decoding that has not started: zeros for `slots` positions (times beams)."""
        sizes = {"key": self.query_size, "value": self.value_size}
        return {n: ops.zeros((batch, self.num_heads, slots, size), self.compute_dtype) for n, size in sizes.items()}

    def memory_cache(self, value, key=None):
        """Projects a memory once, for cross-attention of many steps and beams: a `cache` for `call`.

        Args:
            value: [B, S, hidden]; `key`: the same, or None for `value`.

        Returns:
            dict of "memory_key" [B, heads, S, key_dim] and "memory_value" [B, heads, S, value_dim].
        """
        key = value if key is None else key
        return {"memory_key": self.project(key, "key"), "memory_value": self.project(value, "value")}

    def call(
        self,
        query,
        value=None,
        key=None,
        attention_mask=None,
        use_causal_mask=False,
        cache=None,
        position=None,
        return_attention_scores=False,
        training=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        mask=None,
    ):
        """Attends.

        Args:
            query: [B, T, hidden].
            value: [B, S, hidden]; None: `query` (self-attention).
            key: [B, S, hidden]; None: `value`.
            attention_mask: bool, [T, S], [B, T, S] or [B, heads, T, S] (sizes of 1 broadcast), True where visible.
                (Padding, [B, S], is `value_mask`, or [B, 1, S] here.)
            use_causal_mask: bool, hides later positions from earlier ones.
            cache: None, or what was computed before: {"memory_key", "memory_value"} from `memory_cache`, used as it
                is; or {"key" [B, heads, S, key_dim], "value" [B, heads, S, value_dim]}, to which those of `query` are
                added, with {"prompt_key", "prompt_value" [B, heads, P, size], "prompt_length" int32 [B]} where all
                beams share a prompt; or {}: the new cache is {"prompt_key", "prompt_value"} of `query`, a prompt.
            position: int scalar: the T new keys are written into the cache at slot `position * T`; None: they are
                appended. (T is 1, or the number of beams, whose slots of one step lie side by side.)
            return_attention_scores: bool.
            training: bool.
            query_mask, value_mask, key_mask: bool [B, T] or [B, S]: masks that Keras carries with tensors; `mask` is
                its name for that of `query` where no other tensor is given.

        Returns:
            output [B, T, hidden]; with `return_attention_scores` also weights [B, heads, T, S]; with a `cache` also
            the new cache; as a tuple when there is more than the output.

        Raises:
            ValueError: a tensor has not three axes, or a mask is of another shape, or of floats: see `check_masks`;
                or the layer is of self-attention alone, and there is a `value` or `key`.
        """
        if self.is_self_attention and (value is not None or key is not None):
            raise ValueError(
                f"{type(self).__name__} is self-attention: received `value` or `key` in addition to `query`."
            )
        masks = {"query_mask": query_mask, "value_mask": value_mask, "key_mask": key_mask, "mask": mask}
        check_masks(attention_mask=attention_mask, **masks)
        check_sequences(value=value, key=key)
        query_mask = mask if query_mask is None else query_mask
        if value is None:
            value = query
            if not cache and value_mask is None:  # in a cache there are other keys than those of the query
                value_mask = query_mask
        is_memory = bool(cache) and "memory_key" in cache
        is_step = bool(cache) and not is_memory
        if value is query and key is None and not is_memory:
            heads, keys, values = self.project_alike(query)
        else:
            heads = self.project(query, "query")
            if is_memory:
                keys, values = cache["memory_key"], cache["memory_value"]
            else:
                keys = self.project(value if key is None else key, "key")
                values = self.project(value, "value")
        if self.turned and not is_memory:
            at = step_position(cache, ops.shape(heads)[2], position) if is_step else None
            heads, keys = (self.turned(x, at) for x in (heads, keys))
        prompt = {}
        if is_step:
            keys = add_to_cache(cache["key"], keys, position)
            values = add_to_cache(cache["value"], values, position)
            cache = {**cache, "key": keys, "value": values}
            if "prompt_key" in cache:
                prompt["prompt"] = tuple(cache[f"prompt_{name}"] for name in ("key", "value", "length"))
        elif not is_memory and cache is not None:
            cache = {"prompt_key": keys, "prompt_value": values}
        query_length, key_length = ops.shape(heads)[2], ops.shape(keys)[2]
        num_keys = key_length + (ops.shape(prompt["prompt"][0])[2] if prompt else 0)
        shape = (*ops.shape(heads)[:3], num_keys)
        mask = merge_masks(shape, attention_mask, is_step and use_causal_mask, value_mask, key_mask)
        if is_step:
            position = key_length // query_length - 1 if position is None else position
            output, weights = self.attend_cached(heads, keys, values, mask, position, training, **prompt)
        else:
            output, weights = self.attend_sequence(
                heads, keys, values, mask, use_causal_mask, training, return_attention_scores
            )
        results = [self.project(output, "output")]
        if return_attention_scores:
            results.append(weights)
        if cache is not None:
            results.append(cache)
        return tuple(results) if len(results) > 1 else results[0]


def _split(x, size):
    """[..., S] -> the first `size` columns, and the others."""
    return x[..., :size], x[..., size:]


def _swap(x):
    """[B, M, N, size] -> [B, N, M, size]: of length and heads, either way."""
    # Einsum moves data itself; oneDNN's transpose, which TensorFlow puts in the place of its own, is slow to set out:
    # 0.28 ms against 0.06 for the 128 rows of a decoding step.
    return ops.einsum("bmnd->bnmd", x)
