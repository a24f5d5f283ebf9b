"""Multi-head attention (paper, sections 3.2.1 and 3.2.2)."""

import keras
from keras import ops

from t2t_lite.layers.attention_scores import AttentionScore
from t2t_lite.layers.base import GLOROT, Initializer, check_initializers
from t2t_lite.layers.cache import Memory, Past
from t2t_lite.layers.checks import check_rates, check_required_sizes, check_sequences, check_sizes, shape_of
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
    """softmax(QKᵀ / √d_k) V in `num_heads` heads (paper, equation 1 and section 3.2.2).

    The first three arguments and the meaning of masks are those of `keras.layers.MultiHeadAttention`: B is the batch, T
    the query's length, S the key's; True in a mask means visible. To subclass, override `project` or `attend`; where
    positions matter to `attend`, also `attend_cached`, which decodes.

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
        score: how well a key answers a query: "dot_product", "relative" (Shaw et al.), "relative_v2" (Music
            Transformer) or "memory" (Transformer-XL), or a dict of it and its options.
        pattern: which keys a query sees: "full", "window" (the paper, section 4), "local_1d", "local_2d" (Image
            Transformer), "strided" or "fixed" (Sparse Transformer), or a dict of it and its options, such as
            {"type": "local_1d", "block_length": 128}; or a list of patterns, among which the heads are divided evenly
            and in order. With all but the first two, a query sees only earlier keys.

    Any score can be combined with any pattern. All n² scores are computed for sequences that are known to be short, in
    calls that ask for the weights or give a context or one mask per query, and by a subclass that overrides `attend`.

    Example:
        >>> layer = MultiHeadAttention(num_heads=2)
        >>> layer(keras.ops.ones((1, 5, 8)), use_causal_mask=True).shape
        (1, 5, 8)

    Raises:
        ValueError: a size is not positive, the rate is outside [0, 1), an initializer is unknown, or the hidden size is
            not a multiple of `num_heads` where a head's size follows from it.
    """

    context_class = Context  # what a model has to call it with; a subclass says in `lack` what a model may lack
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
        score: str | dict = "dot_product",
        pattern: str | dict | list = "full",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_required_sizes(num_heads=num_heads)
        check_sizes(key_dim=key_dim, value_dim=value_dim)
        check_rates(dropout=dropout)
        if positions not in [*POSITIONS]:
            raise ValueError(f"`positions` must be one of {', '.join(POSITIONS)}: received positions={positions!r}.")
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, value_dim
        self.dropout_rate = dropout
        self.use_bias = use_bias
        self.positions = positions
        self.score = make_kind("score", score, Registries.scores)
        self.pattern = make_pattern(pattern, num_heads)
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
        """Makes the layer; older configurations have "rotary", a bool, instead of "positions"."""
        config = dict(config)
        return super().from_config({"positions": "rotary", **config} if config.pop("rotary", False) else config)

    def build(self, query_shape, value_shape=None, key_shape=None):
        """Creates the four projections, by default Glorot uniform, as in tensor2tensor's common_attention.py."""
        check_sequences(query=query_shape, value=value_shape, key=key_shape)
        hidden_size = query_shape[-1]
        self.require_size(query_shape)
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
        distances = Strides(shape_of(query)[2] - shape_of(key)[2])  # counted from the right: a memory is in front
        return self.attend_parts(query, [(key, value, distances)], mask, training)

    @property
    def overrides_attend(self):
        """Whether a subclass overrides `attend`."""
        return type(self).attend is not MultiHeadAttention.attend

    def attend_parts(self, query, parts, mask, training):
        """Attends to keys and values that lie in several tensors, with one softmax and without joining them.

        Args:
            query: [B, heads, T, key_dim].
            parts: list of (key, value, distances), the last `Strides` or `Steps`.
            mask, training: as `attend`, S being the number of all keys.

        Returns:
            As `attend`.
        """
        # Scaling the queries, not the scores: oneDNN fuses the scaled product into a far slower kernel.
        query = query * ops.cast(self.query_size**-0.5, query.dtype)
        scores = [self.score.scores(self, query, key, [distances], training) for key, _, distances in parts]
        if len(parts) == 1:
            weights = masked_softmax(scores[0], mask)
            dropped = [self.dropout(weights, training=training)]
        else:
            weights = masked_softmax(ops.concatenate(scores, axis=-1), mask)
            dropped = _split(self.dropout(weights, training=training), shape_of(parts[0][0])[2])
        pairs = zip(dropped, parts, strict=True)
        outputs = [self.score.mix(self, own, value, [distances]) for own, (_, value, distances) in pairs]
        return sum(outputs[1:], outputs[0]), weights

    def attend_sequence(self, query, key, value, visible, training, needs_weights):
        """Attends from a whole sequence: in parts if the pattern has any, else by `attend`.

        Args:
            query, key, value, training: as `attend`.
            visible: Visible.
            needs_weights: bool.

        Returns:
            As `attend`; the weights may be None unless they are needed.
        """
        queries, keys = shape_of(query)[2], shape_of(key)[2]
        in_parts = isinstance(visible.first, int) and visible.first == 0 and visible.dense is None
        in_parts = in_parts and not (needs_weights or self.overrides_attend)
        output = self.pattern.attend(self, query, key, value, visible, training) if in_parts else None
        if output is not None:
            return output, None
        return self.attend(query, key, value, self.pattern.mask(visible, queries, keys), training)

    def attend_cached(self, query, past, mask, step):
        """Attends from the K beams of one decoding step to what the pattern sees of the cache.

        Args:
            query: [B, heads, K, key_dim].
            past: Past with the step's own keys and values in it.
            mask: bool, broadcastable to [B, heads, K, P + steps * K], the prompts' columns first; or None.
            step: int scalar.

        Returns:
            (output [B, heads, K, value_dim], weights [B, heads, K, number of keys read]).

        Raises:
            NotImplementedError: a subclass overrides `attend` alone, and its score depends on distances.
        """
        if self.overrides_attend and type(self.score) is not AttentionScore:
            raise NotImplementedError(
                f"{type(self).__name__} overrides `attend`, and decodes only if it also overrides `attend_cached`."
            )
        parts, mask = self.pattern.read(past, shape_of(query)[2], step, mask)
        if not self.overrides_attend:
            return self.attend_parts(query, parts, mask, False)
        key, value = parts[0][:2] if len(parts) == 1 else (ops.concatenate([p[i] for p in parts], 2) for i in (0, 1))
        return self.attend(query, key, value, mask, False)

    def of_heads(self, x):
        """Returns the rows of a score's weights [heads, …] that belong to the queries; here all rows."""
        return x

    def flops(self, keys, context=0):
        """Returns the number of operations for one query: its scores and the weighted sum of the values.

        Args:
            keys: int.
            context: int, keys of earlier states; if there are any, all scores are computed, whatever the pattern.
        """
        seen = keys + context if context else self.pattern.seen(keys)
        products = 2 * self.num_heads * (self.query_size + self.value_size) * seen
        return products + self.score.extra_flops(self, seen)

    def activations(self, keys, compute, context=0):
        """Returns the bytes that one query keeps for the backward pass.

        Args:
            keys, context: as in `flops`; there are as many queries as `keys`.
            compute: int, bytes per number.
        """
        seen, dropped = keys + context if context else self.pattern.seen(keys), self.dropout_rate > 0
        of_memory = context / keys if context else 0
        kept = (2 + of_memory) * self.num_heads * (self.query_size + self.value_size) * compute
        kept += self.num_heads * seen * (4 + compute * (dropped or compute < 4) + dropped)
        return kept + self.score.extra_memory(self, seen, compute)

    def empty_past(self, batch, slots):
        """Returns the `Past` for decoding that has not started: zeros for `slots` positions (times beams)."""
        sizes = self.query_size, self.value_size
        return Past(*(ops.zeros((batch, self.num_heads, slots, size), self.compute_dtype) for size in sizes))

    def memory(self, value, key=None):
        """Projects a memory once, to be used by `attend_to` in all steps and for all beams.

        Args:
            value: [B, S, hidden]; `key`: the same, or None for `value`.

        Returns:
            Memory.
        """
        return Memory(self.project(value if key is None else key, "key"), self.project(value, "value"))

    def attend_to(self, query, memory, attention_mask=None):
        """Attends to a memory that `memory` has projected.

        Args:
            query: [B, T, hidden].
            memory: Memory.
            attention_mask: as `call`.

        Returns:
            [B, T, hidden].
        """
        heads = self.project(query, "query")
        visible = visible_keys((*shape_of(heads)[:3], shape_of(memory.key)[2]), attention_mask, False)
        return self.project(self.attend_sequence(heads, *memory, visible, False, False)[0], "output")

    def prefill(self, query):
        """Reads prompts in one causal pass.

        Args:
            query: [B, P, hidden], padded on the right.

        Returns:
            (output [B, P, hidden], Memory, which all beams share: see `Past`).
        """
        heads, keys, values = self._turned_alike(query)
        output, _ = self.attend_sequence(heads, keys, values, Visible(causal=True), False, False)
        return self.project(output, "output"), Memory(keys, values)

    def step(self, query, past, position=None, attention_mask=None):
        """Attends from one decoding step to itself and what came before it.

        Args:
            query: [B, K, hidden]; K is the number of beams, 1 without beam search.
            past: Past, from `empty_past` or the step before.
            position: int scalar, the step: its keys are written into slots `position * K` to `position * K + K - 1`;
                None: they are appended.
            attention_mask: bool, [B, K, P + steps * K], which slots each beam sees, the prompt's first; or another
                shape that `call` accepts.

        Returns:
            (output [B, K, hidden], new Past).
        """
        check_masks(attention_mask=attention_mask)
        beams = shape_of(query)[1]
        step = past.step(beams) if position is None else position
        heads, keys, values = self._turned_alike(query, past.position(step))
        past = past.with_step(keys, values, position)
        slots = shape_of(past.key)[2] + past.prompt_slots
        mask = merge_masks((*shape_of(heads)[:3], slots), attention_mask, False)
        output, _ = self.attend_cached(heads, past, mask, step)
        return self.project(output, "output"), past

    def _turned_alike(self, query, position=None):
        """Returns the queries, keys and values of self-attention; rotary positions have turned the first two."""
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
        """Attends from a whole sequence. (From one step of decoding: `step`.)

        Args:
            query: [B, T, hidden].
            value: [B, S, hidden]; None: `query` (self-attention).
            key: [B, S, hidden]; None: `value`.
            attention_mask: bool, [T, S], [B, T, S] or [B, heads, T, S] (sizes of 1 broadcast), True where visible.
                (Padding, [B, S], is `value_mask`, or [B, 1, S] here.)
            use_causal_mask: bool, hides later positions from earlier ones.
            context: None, or `Context`: queries also see its states, which come before the `query`. The masks are those
                of the positions after the states; `value` must be None.
            return_attention_scores: bool.
            training: bool.
            query_mask, value_mask, key_mask: bool [B, T] or [B, S]: the masks that Keras carries with the tensors. It
                passes that of `query` as `mask` if no other tensor is given.

        Returns:
            output [B, T, hidden]; with `return_attention_scores` a tuple of it and the weights [B, heads, T, S].

        Raises:
            ValueError: a tensor does not have three axes; a mask has another shape, or holds floats (see
                `check_masks`); or the layer is for self-attention only and a `value` or `key` is given.
        """
        context = context if context is not None and context.has_states else None
        if not (self.pattern.is_full and context is None) and (value is not None or key is not None):
            raise ValueError(
                f"{type(self).__name__} is self-attention: received `value` or `key` in addition to `query`."
            )
        masks = {"query_mask": query_mask, "value_mask": value_mask, "key_mask": key_mask, "mask": mask}
        check_masks(attention_mask=attention_mask, **masks)
        check_sequences(value=value, key=key)
        if value is None and value_mask is None:
            value_mask = mask if query_mask is None else query_mask
        if context is not None:
            value = context.before(query)
        if value is None or (value is query and key is None):
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


def _split(x, size):
    """[..., S] -> the first `size` columns, and the others."""
    return x[..., :size], x[..., size:]
