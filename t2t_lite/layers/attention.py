"""Multi-head attention (paper, sections 3.2.1 and 3.2.2)."""

import keras
from keras import ops

from t2t_lite.layers.attention_scores import AttentionScore
from t2t_lite.layers.base import GLOROT, Initializer, sublayer_initializers
from t2t_lite.layers.cache import Memory, Past
from t2t_lite.layers.checks import (
    check_built,
    check_rates,
    check_required_sizes,
    check_sequences,
    check_sizes,
    shape_of,
)
from t2t_lite.layers.context import Context
from t2t_lite.layers.dense import Projections
from t2t_lite.layers.dropout import Dropout
from t2t_lite.layers.key_patterns import make_pattern
from t2t_lite.layers.layer_kinds import make_kind
from t2t_lite.layers.masks import Visible, check_masks, masked_softmax, merge_masks, visible_keys
from t2t_lite.layers.positions import POSITIONS, Strides
from t2t_lite.registry import Registries


@keras.saving.register_keras_serializable("t2t_lite")
class MultiHeadAttention(Projections):
    """Multi-head attention, softmax(QKᵀ / √d_k) V in each head (paper, equation 1 and section 3.2.2).

    The first three arguments and the masks mean the same as in `keras.layers.MultiHeadAttention`. B is the batch size,
    T the length of the query and S the length of the key. True in a mask means visible. A subclass may override
    `project` or `attend`. If `attend` depends on positions, override `attend_cached` as well, for decoding.

    Args:
        num_heads: int, h, the number of heads.
        key_dim: int, d_k, the size of a head's queries and keys. Defaults to hidden size / num_heads.
        value_dim: int, d_v, the size of a head's values. Defaults to hidden size / num_heads.
        dropout: float in [0, 1), the dropout rate of the attention weights.
        use_bias: bool, whether the four projections have biases. The projections in the paper have no biases.
        positions: "rotary" to rotate the queries and keys of self-attention by their positions, or "none".
        kernel_initializer, bias_initializer, output_initializer: see `keras.layers.Dense`. output_initializer is for
            the kernel of the output projection and defaults to kernel_initializer.
        score: the scoring function: "dot_product", "relative" (Shaw et al.), "relative_v2" (Music Transformer) or
            "memory" (Transformer-XL), or a dict with this name and options.
        pattern: the attention pattern, which says which keys a query sees: "full", "window" (the paper, section 4),
            "local_1d", "local_2d" (Image Transformer), "strided" or "fixed" (Sparse Transformer), or a dict with this
            name and options, such as {"type": "local_1d", "block_length": 128}. A list divides the heads into equal
            groups, with one pattern per group. "full" and "window" also work without a causal order; in all other
            patterns, a query never sees later keys.

    Any score can be combined with any pattern. Sparse patterns save time only on long sequences. All n² scores are
    still computed if the sequence is known to be short, if the call requests the attention weights, if the
    call passes a context or one mask per query, or if a subclass overrides `attend`.

    Example:
        >>> layer = MultiHeadAttention(num_heads=2)
        >>> layer(keras.ops.ones((1, 5, 8)), use_causal_mask=True).shape
        (1, 5, 8)

    Raises:
        ValueError: if a size is not positive, the rate is outside [0, 1), an initializer is unknown, or the default
            size of a head is needed and the hidden size is not a multiple of `num_heads`.
    """

    context_class = Context  # the class of context that calls must pass; `lack` is its error message for other classes
    turned = None  # the function that rotates queries and keys, set by `build`; a subclass may replace it

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
        score: str | dict = "dot_product",
        pattern: str | dict | list = "full",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_required_sizes(num_heads=num_heads)
        check_sizes(key_dim=key_dim, value_dim=value_dim)
        check_rates(dropout=dropout)
        turning = [name for name, kind in POSITIONS.items() if kind.turn or name == "none"]
        if positions not in turning:
            raise ValueError(
                f"`positions` must be one of {', '.join(turning)}: received positions={positions!r}. A layer such as "
                "SinusoidalPositionEmbedding adds other positions to the inputs."
            )
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, value_dim
        self.dropout_rate = dropout
        self.use_bias = use_bias
        self.positions = positions
        self.score = make_kind("score", score, Registries.scores)
        self.pattern = make_pattern(pattern, num_heads)
        self.initializers = sublayer_initializers(kernel_initializer, bias_initializer, output_initializer)
        self.input_spec = keras.InputSpec(ndim=3)

    def build(self, query_shape, value_shape=None, key_shape=None):
        """Creates the projections, by default with Glorot uniform kernels as in tensor2tensor's common_attention.py."""
        check_sequences(query=query_shape, value=value_shape, key=key_shape)
        self.require_size(query_shape)
        hidden_size = query_shape[-1]
        value_shape = value_shape or query_shape
        if hidden_size % self.num_heads and None in (self.key_dim, self.value_dim):
            divisors = [n for n in range(1, hidden_size + 1) if hidden_size % n == 0]
            best = min(divisors, key=lambda n: abs(n - self.num_heads))
            raise ValueError(
                f"The hidden size must be a multiple of `num_heads`: received hidden size {hidden_size}, "
                f"num_heads={self.num_heads}. Use num_heads={best}, or set key_dim and value_dim."
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
        self.score.build(self, hidden_size)
        self.pattern.build(self)

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
        distances = Strides(shape_of(query)[2] - shape_of(key)[2])  # the last query and last key share a position
        return self.attend_parts(query, [(key, value, distances)], mask, training)

    @property
    def overrides_attend(self):
        """Whether a subclass overrides `attend`."""
        return type(self).attend is not MultiHeadAttention.attend

    def attend_parts(self, query, parts, mask, training):
        """Attends to keys and values stored in several tensors, with one softmax and without concatenating the tensors.

        Args:
            query: [B, heads, T, key_dim].
            parts: list of (key, value, distances), where distances are `Strides` or `Steps`.
            mask, training: as in `attend`, where S is the total number of keys.

        Returns:
            As `attend`.
        """
        # The queries are scaled instead of the scores, because oneDNN fuses a scaled product into a far slower kernel.
        query = query * ops.cast(self.query_size**-0.5, query.dtype)
        scores = [self.score.scores(self, query, key, [distances], training) for key, _, distances in parts]
        weights = masked_softmax(scores[0] if len(scores) == 1 else ops.concatenate(scores, axis=-1), mask)
        dropped = [self.dropout(weights, training=training)]
        if len(parts) > 1:
            size = shape_of(parts[0][0])[2]
            dropped = [dropped[0][..., :size], dropped[0][..., size:]]
        pairs = zip(dropped, parts, strict=True)
        outputs = [self.score.mix(self, part, value, [distances]) for part, (_, value, distances) in pairs]
        return sum(outputs[1:], outputs[0]), weights

    def attend_sequence(self, query, key, value, visible, training, needs_weights):
        """Computes attention for a whole sequence, in blocks if the pattern supports blocks, otherwise with `attend`.

        Args:
            query, key, value, training: as in `attend`.
            visible: Visible.
            needs_weights: bool.

        Returns:
            The same results as `attend`, but the weights may be None if `needs_weights` is False.
        """
        queries, keys = shape_of(query)[2], shape_of(key)[2]
        in_parts = isinstance(visible.first, int) and visible.first == 0 and visible.dense is None
        in_parts = in_parts and not (needs_weights or self.overrides_attend)
        output = self.pattern.attend(self, query, key, value, visible, training) if in_parts else None
        if output is not None:
            return output, None
        return self.attend(query, key, value, self.pattern.mask(visible, queries, keys), training)

    def attend_cached(self, query, past, mask, step):
        """Computes attention from the K beams of one decoding step to the cached keys that the pattern allows.

        Args:
            query: [B, heads, K, key_dim].
            past: Past, the cache, which already includes the keys and values of this step.
            mask: bool, broadcastable to [B, heads, K, P + steps * K], True where visible, with the columns of the
                prompts first; or None.
            step: int scalar.

        Returns:
            (output [B, heads, K, value_dim], weights [B, heads, K, number of keys read]).

        Raises:
            NotImplementedError: if a subclass overrides `attend` but not `attend_cached`, and its score depends on
                distances.
        """
        if self.overrides_attend and type(self.score) is not AttentionScore:
            raise NotImplementedError(
                f"{type(self).__name__} overrides `attend`; to decode, it must also override `attend_cached`."
            )
        parts, mask = self.pattern.read(past, shape_of(query)[2], step, mask)
        if not self.overrides_attend:
            return self.attend_parts(query, parts, mask, False)
        key, value = parts[0][:2] if len(parts) == 1 else (ops.concatenate([p[i] for p in parts], 2) for i in (0, 1))
        return self.attend(query, key, value, mask, False)

    def of_heads(self, x):
        """Returns the rows of a score's weights, [heads, …], for this layer's heads: here, all rows."""
        return x

    def flops(self, keys, context=0):
        """Returns the number of floating-point operations per query, for its scores and the weighted sum of the values.

        Args:
            keys: int, the number of keys.
            context: int, the number of keys from earlier states. If there are such keys, all scores are computed,
                whatever the pattern.
        """
        seen = keys + context if context else self.pattern.seen(keys)
        products = 2 * self.num_heads * (self.query_size + self.value_size) * seen
        return products + self.score.extra_flops(self, seen)

    def activations(self, keys, compute, context=0):
        """Returns the number of bytes stored per query for the backward pass.

        Args:
            keys, context: as in `flops`. The number of queries is assumed to equal `keys`.
            compute: int, bytes per number in the compute dtype.
        """
        seen, dropped = keys + context if context else self.pattern.seen(keys), self.dropout_rate > 0
        memory_share = context / keys if context else 0
        stored = (2 + memory_share) * self.num_heads * (self.query_size + self.value_size) * compute
        stored += self.num_heads * seen * (4 + compute * (dropped or compute < 4) + dropped)
        return stored + self.score.extra_memory(self, seen, compute)

    def empty_past(self, batch, slots):
        """Returns an empty `Past` for the start of decoding, with room for `slots` slots (positions times beams)."""
        check_built(self)
        sizes = self.query_size, self.value_size
        return Past(*(ops.zeros((batch, self.num_heads, slots, size), self.compute_dtype) for size in sizes))

    def memory(self, value, key=None):
        """Projects an encoder's output to keys and values once, for all later calls of `attend_to`.

        Args:
            value: [B, S, hidden]. `key` has the same shape, and defaults to `value`.

        Returns:
            Memory.
        """
        return Memory(self.project(value if key is None else key, "key"), self.project(value, "value"))

    def attend_to(self, query, memory, attention_mask=None):
        """Attends to an encoder's output that `memory` has projected.

        Args:
            query: [B, T, hidden].
            memory: Memory.
            attention_mask: as in `call`.

        Returns:
            [B, T, hidden].

        Raises:
            ValueError: if attention depends on positions, which are unknown here.
        """
        if self.turned or self.score.is_relative:
            raise ValueError(f"{self.name}: `attend_to` knows no positions. Expected no rotary or relative attention.")
        heads = self.project(query, "query")
        visible = visible_keys((*shape_of(heads)[:3], shape_of(memory.key)[2]), attention_mask, False)
        return self.project(self.attend_sequence(heads, *memory, visible, False, False)[0], "output")

    def prefill(self, query):
        """Processes prompts in one causal pass.

        Args:
            query: [B, P, hidden], padded on the right.

        Returns:
            (output [B, P, hidden], the prompts' keys and values as a `Memory`, which all beams share: see `Past`).
        """
        heads, keys, values = self._turned_alike(query)
        output, _ = self.attend_sequence(heads, keys, values, Visible(causal=True), False, False)
        return self.project(output, "output"), Memory(keys, values)

    def step(self, query, past, position=None, attention_mask=None):
        """Computes self-attention for one decoding step, in which each beam sees this position and all earlier ones.

        Args:
            query: [B, K, hidden], where K is the number of beams (1 if there is no beam search).
            past: Past, from `empty_past` or from the previous step.
            position: int scalar, the number of the step. The step's keys are written into slots `position * K` to
                `position * K + K - 1`. If None, the keys are appended to a cache that began with no slots.
            attention_mask: bool [B, K, P + steps * K], which slots each beam sees, with the slots of the prompt first;
                or another shape that `call` accepts. If None, each beam sees its prompt and its own slots so far.

        Returns:
            (output [B, K, hidden], the updated Past).
        """
        beams = shape_of(query)[1]
        step = past.step(beams) if position is None else position
        heads, keys, values = self._turned_alike(query, past.position(step))
        past = past.with_step(keys, values, position)
        slots = shape_of(past.key)[2] + past.prompt_slots
        attention_mask = past.own_slots(beams, step) if attention_mask is None else attention_mask
        mask = merge_masks((*shape_of(heads)[:3], slots), attention_mask)
        output, _ = self.attend_cached(heads, past, mask, step)
        return self.project(output, "output"), past

    def _turned_alike(self, query, position=None):
        """Returns the queries, keys and values of self-attention, with rotary positions applied to queries and keys."""
        heads, keys, values = self.project_alike(query)
        if self.turned:
            heads, keys = (self.turned(x, position) for x in (heads, keys))
        return heads, keys, values

    def call(
        self,
        query,
        value=None,
        key=None,
        attention_mask=None,
        use_causal_mask=False,
        context=None,
        return_attention_scores=False,
        training=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        mask=None,
    ):
        """Computes attention for a whole sequence. (To decode a single step, use `step`.)

        Args:
            query: [B, T, hidden].
            value: [B, S, hidden]. Defaults to `query` (self-attention).
            key: [B, S, hidden]. Defaults to `value`.
            attention_mask: bool, [T, S], [B, T, S] or [B, heads, T, S] (sizes of 1 broadcast), True where visible. A
                padding mask [B, S] must be passed as `value_mask`, or as [B, 1, S] here.
            use_causal_mask: bool, whether later positions are hidden from earlier positions.
            context: `Context` or None. Queries also see the states in the context, which come before `query`. The masks
                must not include these states, and `value` must be None.
            return_attention_scores: bool.
            training: bool.
            query_mask, value_mask, key_mask: bool [B, T] or [B, S], the masks that Keras attaches to the tensors. If
                `query` is the only tensor, Keras passes its mask as `mask`.

        Returns:
            output [B, T, hidden]; with `return_attention_scores`, a tuple (output, weights [B, heads, T, S]).

        Raises:
            ValueError: if a tensor does not have three axes, a mask has the wrong shape or holds floats (see
                `check_masks`), or the layer only supports self-attention and a `value` or `key` is given.
        """
        context = context if context is not None and context.has_states else None
        if not (self.pattern.is_full and context is None) and (value is not None or key is not None):
            raise ValueError(
                f"{type(self).__name__} only supports self-attention: received `value` or `key` in addition to `query`."
            )
        check_masks(query_mask=query_mask, value_mask=value_mask, key_mask=key_mask, mask=mask)
        check_sequences(value=value, key=key)
        if value is None and value_mask is None:
            value_mask = mask if query_mask is None else query_mask
        if context is not None:
            value = context.before(query)
        elif value is None:
            value = query
        if value is query and key is None:
            heads, keys, values = self._turned_alike(query)
        else:
            heads, (keys, values) = self.project(query, "query"), self.memory(value, key)
            if self.turned:
                first = 0 if context is None else shape_of(keys)[2] - shape_of(heads)[2]
                heads, keys = self.turned(heads, first=first), self.turned(keys)
        shape = (*shape_of(heads)[:3], shape_of(keys)[2])
        visible = visible_keys(shape, attention_mask, use_causal_mask, value_mask, key_mask, context)
        output, weights = self.attend_sequence(heads, keys, values, visible, training, return_attention_scores)
        output = self.project(output, "output")
        return (output, weights) if return_attention_scores else output
