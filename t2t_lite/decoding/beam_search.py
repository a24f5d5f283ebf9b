"""Beam search with the semantics of tensor2tensor's utils/beam_search.py, for any model with three methods.

What a model offers (the Transformer does; others go through `full_pass.FullPass`); B sentences, K beams, V ids:

    memory = model.encode(inputs)                             int32 [B, S], 0 pads -> pytree of [B, ...]
    cache = model.init_cache(memory, max_length, beam_size)   -> {"beams": pytree, "fixed": pytree, ...}
    logits, cache = model.decode_step(ids, position, cache)   int32 [B*K], int32 [] -> float32 [B*K, V]

* `ids` is the output of the step before; at position 0 it is ignored (the decoder's first input is the zero vector).
* Leaves under "beams" are [B, K, ...]; the search reorders them by parent beam after every step. All other leaves
  stay where they were written, so that keys and values are never moved (a model tells histories apart by an ancestry
  table under "beams").
* `max_length=T`: every shape is static and the cache is written in place. The cache for a larger T is the one for
  the smaller T padded with zeros at the end of its axes.
* `max_length=None`: the cache starts empty, its time axes of size 0, and grows by concatenation at every step.
"""

import typing

import tensorflow as tf

PAD_ID = 0
EOS_ID = 1

# Three phases of static cache cost little to compile and read little that is still empty (measured on base: 1.2x).
_NUM_PHASES = 3
_PHASE_GROWTH = 1.7


class Hypotheses(typing.NamedTuple):
    """The result of a search, best first.

    Attributes:
        ids: int32 [B, K, T], each hypothesis up to and including its EOS, then 0.
        scores: float32 [B, K], log-probability (nats) / length penalty; -inf where there is no hypothesis.
        ended: bool [B, K], whether the hypothesis ends in EOS. Where a sentence has one that ends, those that do
            not are left out (score -inf); otherwise the K live ones, cut off at the limit, are returned.
    """

    ids: tf.Tensor
    scores: tf.Tensor
    ended: tf.Tensor


class _State(typing.NamedTuple):
    """What the loop carries from step to step."""

    position: tf.Tensor  # int32 []
    ids: tf.Tensor  # int32 [B, K], output of the step before
    log_probs: tf.Tensor  # float32 [B, K], of the live hypotheses, best first
    live: tf.Tensor  # int32 [B, K, T]
    finished: tf.Tensor  # int32 [B, K, T]
    scores: tf.Tensor  # float32 [B, K], of the finished hypotheses, best first; -inf: none yet
    cache: dict


def beam_search(
    model, inputs, limit, *, beam_size=4, alpha=0.6, length_penalty="gnmt", n_best=1, prefix=None, max_length=None
) -> Hypotheses:
    """Finds the outputs of highest penalised log-probability. Call it inside a `tf.function`.

    A step takes the 2K best continuations of the K live hypotheses: those that end in EOS compete for K finished
    places, the best K others live on. A sentence is frozen as soon as no live hypothesis can enter its `n_best`
    finished ones (log-probabilities only fall, and the penalty is largest at the limit), or at its own limit. So
    all K hypotheses are those that the sentence would get alone: batch mates don't matter.

    `beam_size=1` is greedy search: it ends at the first step where EOS is the most probable id.

    Args:
        model: see the module's docstring.
        inputs: int32 [B, S], each row ends in EOS, then 0.
        limit: int32 [B], longest output of each sentence in ids, EOS included. 0: the row only fills up the batch,
            and costs no steps.
        beam_size: K, Python int >= 1.
        alpha: float or float32 scalar tensor, >= 0; exponent of the length penalty.
        length_penalty: "gnmt": ((5 + n) / 6)^alpha (Wu et al. 2016, equation 14), or "power": n^alpha; n counts EOS.
        n_best: Python int <= beam_size, how many of the best hypotheses have to be final. The search is longer for
            a larger number.
        prefix: int32 [B, P], ids that each output has to begin with, then 0 (no id is forced there); scores count
            them as any others. None: nothing is forced.
        max_length: Python int >= max(limit): static shapes throughout, for XLA (`jit_compile=True`).
            None: shapes may be unknown and only stock TensorFlow ops are used, for graphs without XLA.

    Returns:
        Hypotheses, with T = max_length, or max(limit, 1) where that is None.
    """
    search = _Search(model, limit, beam_size, alpha, length_penalty, n_best, prefix, max_length)
    return search.result(run_steps(search, model, model.encode(inputs), beam_size, max_length))


def run_steps(steps, model, memory, beam_size, max_length):
    """Repeats a step until nothing is open. Sampling runs on it as well.

    Args:
        steps: has `start(cache)`, which returns the first state; `open(state)`, bool; and `step(state)`, the next one.
            A state is a named tuple with `position` and `cache`.
        model, beam_size, max_length: see `beam_search`.
        memory: from `model.encode`.

    Returns:
        The last state, without its cache where `max_length` is given.
    """
    if max_length is None:
        return _run_growing(steps, steps.start(model.init_cache(memory, None, beam_size)))
    lengths = phase_lengths(max_length)
    shapes = [_cache_shapes(model, memory, length, beam_size) for length in lengths[1:]]
    state = steps.start(model.init_cache(memory, lengths[0], beam_size))
    return _run_phases(steps, state, lengths, shapes)


def phase_lengths(max_length) -> list[int]:
    """Returns the static cache lengths of the phases: growing, multiples of 8 but the last, which is `max_length`.

    Most outputs are far shorter than the limit, and attention reads the whole cache at every step.
    """
    lengths = [max_length]
    while len(lengths) < _NUM_PHASES:
        shorter = -(-int(lengths[0] / _PHASE_GROWTH) // 8) * 8
        if not 8 <= shorter < lengths[0]:
            break
        lengths.insert(0, shorter)
    return lengths


class _Search:
    """One search: its settings, and the step that `tf.while_loop` repeats."""

    def __init__(self, model, limit, beam_size, alpha, length_penalty, n_best, prefix, max_length):
        if length_penalty not in ("gnmt", "power"):
            raise ValueError(f"`length_penalty` must be 'gnmt' or 'power', received {length_penalty!r}.")
        if not 1 <= n_best <= beam_size:
            raise ValueError(f"`n_best` must be from 1 to beam_size={beam_size}, received {n_best}.")
        self.model = model
        self.limit = limit
        self.beam_size = beam_size
        self.alpha = tf.cast(alpha, tf.float32)
        self.length_penalty = length_penalty
        self.n_best = n_best
        self.prefix = prefix
        self.static = max_length is not None
        self.batch = limit.shape[0] if self.static else tf.shape(limit)[0]
        self.max_length = max_length if self.static else tf.maximum(tf.reduce_max(limit), 1)
        self.bound_penalty = self.penalty(tf.maximum(limit, 1))[:, None]  # [B, 1], the largest that can occur

    def penalty(self, length):
        """int32 of any shape -> float32 of that shape."""
        length = tf.cast(length, tf.float32)
        return length**self.alpha if self.length_penalty == "power" else ((5.0 + length) / 6.0) ** self.alpha

    def start(self, cache):
        """At first only beam 0 counts: all K are equal."""
        first = tf.constant([[0.0] + [-float("inf")] * (self.beam_size - 1)])
        nothing = tf.zeros((self.batch, self.beam_size, self.max_length), tf.int32)
        return _State(
            position=tf.constant(0),
            ids=tf.zeros((self.batch, self.beam_size), tf.int32),
            log_probs=tf.tile(first, (self.batch, 1)),
            live=nothing,
            finished=nothing,
            scores=tf.fill((self.batch, self.beam_size), -float("inf")),
            cache=cache,
        )

    def open(self, state):
        """bool [B]: whether another step may change the sentence's `n_best` best hypotheses."""
        if self.beam_size == 1:
            undecided = state.scores[:, 0] == -float("inf")
        else:
            reachable = state.log_probs[:, 0] / self.bound_penalty[:, 0]
            undecided = state.scores[:, self.n_best - 1] <= reachable
        return (state.position < self.limit) & undecided

    def step(self, state):
        """Extends every live hypothesis of the open sentences by one id."""
        beam = self.beam_size
        is_open = self.open(state)[:, None]  # [B, 1]
        logits, cache = self.model.decode_step(tf.reshape(state.ids, (-1,)), state.position, state.cache)
        log_probs, parents, ids = self.continuations(tf.cast(logits, tf.float32), state)  # [B, 2K]

        here = tf.range(self.max_length)[None, None] == state.position  # [1, 1, T]
        sequences = tf.where(here, ids[..., None], _pick(state.live, parents))  # [B, 2K, T]
        ends = ids == EOS_ID

        # Any of the 2K may finish (in greedy search: the first), if it comes from a hypothesis and not from the void.
        finishes = ends & is_open & (log_probs > -float("inf"))
        if beam == 1:
            finishes &= tf.constant([[True, False]])
        new_scores = tf.where(finishes, log_probs / self.penalty(state.position + 1), -float("inf"))
        scores, best = tf.math.top_k(tf.concat([state.scores, new_scores], 1), beam)
        finished = _pick(tf.concat([state.finished, sequences], 1), best)

        _, best = tf.math.top_k(tf.where(ends, -float("inf"), log_probs), beam)
        parents = _pick(parents, best)
        return _State(
            position=state.position + 1,
            ids=_pick(ids, best),
            log_probs=tf.where(is_open, _pick(tf.where(ends, -float("inf"), log_probs), best), state.log_probs),
            live=tf.where(is_open[..., None], _pick(sequences, best), state.live),
            finished=finished,
            scores=scores,
            cache={**cache, "beams": tf.nest.map_structure(lambda leaf: _pick(leaf, parents), cache["beams"])},
        )

    def continuations(self, logits, state):
        """Returns the best 2K of the K*V continuations of each sentence.

        Args:
            logits: float32 [B*K, V].
            state: _State before the step.

        Returns:
            log-probabilities float32, parents int32 and ids int32, all [B, 2K], best first.
        """
        beam = self.beam_size
        each = min(2 * beam + 1, logits.shape[-1])  # one more than wanted: padding is no output, and drops out
        top_k = block_top_k if self.static else tf.math.top_k
        values, ids = top_k(logits, each)  # [B*K, each]
        if self.prefix is not None:
            values, ids = self.forced(logits, values, ids, state.position)
        # What is constant in a row does not change its order: add it to the survivors, not to V values.
        values += tf.reshape(state.log_probs, (-1, 1)) - tf.reduce_logsumexp(logits, -1, keepdims=True)
        values = tf.where(ids == PAD_ID, -float("inf"), values)
        best, at = tf.math.top_k(tf.reshape(values, (self.batch, beam * each)), 2 * beam)  # [B, 2K]
        return best, at // each, _pick(tf.reshape(ids, (self.batch, beam * each)), at)

    def forced(self, logits, values, ids, position):
        """Leaves one continuation, the prefix's id, in the rows of sentences that have one at this position."""
        wanted = tf.reduce_sum(tf.where(tf.range(tf.shape(self.prefix)[1]) == position, self.prefix, 0), 1)  # [B]
        wanted = tf.repeat(wanted, self.beam_size)[:, None]  # [B*K, 1]
        first = tf.range(tf.shape(values)[1]) == 0
        forced_values = tf.where(first, _pick(logits, wanted), -float("inf"))
        return tf.where(wanted != 0, forced_values, values), tf.where(wanted != 0, wanted, ids)

    def result(self, state):
        """Finished hypotheses where the sentence has any, else the live ones."""
        any_ended = state.scores[:, :1] > -float("inf")  # [B, 1]
        return Hypotheses(
            ids=tf.where(any_ended[..., None], state.finished, state.live),
            scores=tf.where(any_ended, state.scores, state.log_probs / self.bound_penalty),
            ended=state.scores > -float("inf"),
        )


def _run_phases(search, state, lengths, shapes):
    """Runs the loop with a cache of static length lengths[0], then grows it for the next phase if anyone goes on.

    Phases are nested in `tf.cond`, so that those that are not reached cost nothing.
    """

    def unfinished(state):
        return tf.reduce_any(search.open(state))

    (state,) = tf.while_loop(
        lambda state: unfinished(state) & (state.position < lengths[0]), lambda state: (search.step(state),), (state,)
    )
    if len(lengths) == 1:
        return state._replace(cache=())

    def grow(leaf, shape):
        return tf.pad(leaf, [(0, after - before) for before, after in zip(leaf.shape, shape, strict=True)])

    def next_phase():
        cache = tf.nest.map_structure(grow, state.cache, shapes[0])
        return _run_phases(search, state._replace(cache=cache), lengths[1:], shapes[1:])

    return tf.cond(unfinished(state), next_phase, lambda: state._replace(cache=()))


def _run_growing(search, state):
    """Runs the loop with a cache that gets longer at every step. Axes that start at 0 are those that grow."""

    def invariant(leaf):
        return tf.TensorShape([size or None for size in leaf.shape])

    shapes = tf.nest.map_structure(invariant, state)

    def body(state):
        state = search.step(state)
        tf.nest.map_structure(lambda leaf, shape: leaf.set_shape(shape), state, shapes)
        return (state,)

    (state,) = tf.while_loop(
        lambda state: tf.reduce_any(search.open(state)), body, (state,), shape_invariants=(shapes,)
    )
    return state


def _cache_shapes(model, memory, length, beam_size):
    """Returns the shapes of `model.init_cache(memory, length, beam_size)` without computing it."""
    specs = tf.nest.map_structure(lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), memory)
    abstract = tf.function(lambda memory: model.init_cache(memory, length, beam_size), autograph=False)
    outputs = abstract.get_concrete_function(specs).structured_outputs
    return tf.nest.map_structure(lambda leaf: _Shape(leaf.shape), outputs)


class _Shape:
    """A shape as one leaf of a pytree, where a tuple would be a branch."""

    def __init__(self, shape):
        self.sizes = tuple(shape)

    def __iter__(self):
        return iter(self.sizes)


def block_top_k(values, k, block=128):
    """Exact `tf.math.top_k` of the last axis, several times faster under XLA on CPU when there are many columns.

    The k largest values lie in at most k blocks, each of which has a maximum at least as large as that of any block
    left out: take the k blocks of largest maximum, then the top k of their values. Ties resolve as in `top_k`.

    Args:
        values: float32 [N, V], static shape.
        k: Python int <= V.
        block: Python int, columns a block.

    Returns:
        Values float32 and indices int32, both [N, k], largest first.
    """
    rows, size = values.shape
    if size < 4 * k * block:  # hardly anything would be left out
        return tf.math.top_k(values, k)
    count = -(-size // block)
    padding = count * block - size
    padded = tf.pad(values, ((0, 0), (0, padding)), constant_values=-float("inf")) if padding else values
    blocks = tf.reshape(padded, (rows, count, block))
    _, chosen = tf.math.top_k(tf.reduce_max(blocks, -1), k)  # [N, k]
    chosen = tf.sort(chosen, -1)
    found, at = tf.math.top_k(tf.reshape(_pick(blocks, chosen), (rows, k * block)), k)
    return found, _pick(chosen, at // block) * block + at % block


def _pick(values, at):
    """[B, N, ...], int32 [B, M] -> [B, M, ...]: row b of the result is values[b, at[b]]."""
    return tf.gather(values, at, axis=1, batch_dims=1)
