"""Beam search with the semantics of tensor2tensor's utils/beam_search.py, for any model with three methods.

The Transformer has these methods, and `adapters.FullPass` adds them to other models. B sentences, K beams, V ids:

    memory = model.encode(inputs)                             int32 [B, S], 0 pads -> pytree of [B, ...]
    cache = model.init_cache(memory, max_length, beam_size)   int T, int K -> {"beams": pytree, ...}
    logits, cache = model.decode_step(ids, position, cache)   int32 [B*K], int32 [] -> float32 [B*K, V]

The first two methods start a search, and the third is called at each step. The task determines the inputs (a source
with EOS, or a prompt), the longest output (`limit`), the id that ends an output (`end_id`) and an output's forced
beginning (`prefix`).

* `position` is the index, from 0, of the id to predict. `ids` are the outputs of the previous step; at position 0 they
  are ignored, since the model supplies its first input (the zero vector in the Transformer's decoder, the last id of
  the prompt in a language model).
* A language model reads its prompts once, in `encode`, padded on the right like all inputs. Their keys and values get
  separate slots in the cache, which all beams share: see `t2t_lite.layers.cache`, `TransformerStack.prefill`.
* Leaves under "beams" are [B, K, ...]; the search reorders them by parent beam after every step. Leaves under "shared"
  are optional; they are computed once per search for all sentences. All other leaves are [B, ...] and stay where they
  were written, so keys and values are never moved (an ancestry table under "beams" records which keys and values
  belong to a beam).
* The cache has room for T positions. To get the cache for a larger T, the search pads the axes that grow with T with
  zeros at their end; the sizes of these axes must not depend on the inputs' width. With static shapes (for XLA) the
  cache is static as well. Otherwise the growing axes have unknown size in the loop, and T usually lies between the
  number of decoded ids and the limit.
"""

import typing

import tensorflow as tf

from t2t_lite.decoding.search.loops import GrowingCache, run_dropping, run_phases
from t2t_lite.decoding.search.rules import advance, change
from t2t_lite.layers.checks import shape_of
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID


class SearchResult(typing.NamedTuple):
    """The result of a search: the hypotheses of each sentence, best first.

    Attributes:
        ids: int32 [B, K, T], each hypothesis up to and including its EOS, or the piece that ends a stop string, then 0.
        scores: float32 [B, K], log-probability (nats) / length penalty; -inf for missing hypotheses.
        ended: bool [B, K], True if the hypothesis ended, False if it was truncated at the limit. If any hypothesis of a
            sentence ended, the sentence's unfinished hypotheses are dropped (score -inf); otherwise the K live
            hypotheses are returned.
    """

    ids: tf.Tensor
    scores: tf.Tensor
    ended: tf.Tensor


class BeamState(typing.NamedTuple):
    """The variables of the search loop.

    Integer arrays are int64, since TensorFlow keeps int32 arrays in host memory and a GPU would copy them at every
    step.
    """

    position: tf.Tensor  # int32 []
    rows: tf.Tensor  # int64 [B], the sentence in each row; decided sentences may be dropped
    ids: tf.Tensor  # int64 [B, K], output of the previous step
    log_probs: tf.Tensor  # float32 [B, K], of the live hypotheses, best first
    live: tf.Tensor  # int64 [B, K, T]
    finished: tf.Tensor  # int64 [B, K, T]
    scores: tf.Tensor  # float32 [B, K], of the finished hypotheses, best first; -inf for places still empty
    cache: dict
    rules: tuple  # per rule, the states of the live hypotheses, int64 [B, K], or ()


def beam_search(model, inputs, limit, options, *, max_length=None, search_class=None, **settings) -> SearchResult:
    """Finds the outputs with the highest length-penalized log-probability. Call it inside a `tf.function`.

    Each step takes the 2K best continuations of the K live hypotheses. Continuations that end in EOS compete for K
    places among the finished hypotheses; the best K of the other continuations stay alive. A sentence is decided when
    it reaches its limit, or when no live hypothesis can still become one of its `n_best` finished hypotheses
    (log-probabilities only decrease, and the penalty is largest at the limit). The result of a sentence does not depend
    on the rest of the batch.

    `beam_size=1` is greedy search, which stops at the first step where EOS is the most probable id.

    Args:
        model: see the module's docstring.
        inputs: int32 [B, S], each row ends in EOS, then 0.
        limit, options, max_length, **settings: see `BeamSearch`.
        search_class: BeamSearch, which None also means, or a subclass, which may change what its `run` returns.

    Returns:
        SearchResult, with T = max_length, or max(limit, 1) if `max_length` is None.
    """
    search = (search_class or BeamSearch)(model, limit, options, max_length=max_length, **settings)
    memory = model.encode(inputs)
    if max_length is None:
        return search.run(GrowingCache(model, memory, search.beam_size, search.max_length))
    return search.result(run_phases(search, model, memory, search.beam_size, max_length))


class BeamSearch:
    """A single beam search: its settings, and the step that `tf.while_loop` repeats.

    Args:
        model: see the module's docstring.
        limit: int32 [B], maximum number of ids in each sentence's output, EOS included. 0 marks a padding row, which
            costs no steps.
        options: SearchOptions: `beam_size` K, `length_penalty`, `ends`, `alpha`, and `n_best`, the number of best
            hypotheses that must be final. A larger `n_best` makes the search longer.
        alpha: float or float32 tensor [] or [B], >= 0, which replaces the option `alpha`.
        prefix: int32 [B, P], ids with which each output must begin, padded with 0, or None. Scores include these ids.
        max_length: Python int >= max(limit). If it is given, all shapes are static, as XLA (`jit_compile=True`)
            requires. If it is None, shapes may be unknown and only stock TensorFlow ops are used, for graphs without
            XLA.
        end_id: Python int, the id that ends an output (called EOS here), or None if outputs end only at their limit.
        rules: list of `Rule`, see `rules.rules_of`. As in Hugging Face, a beam search with several hypotheses applies
            `Repetition` to log-probabilities; the sum of the changed log-probabilities is the score. Greedy search,
            like sampling, changes logits, and the score is the model's log-probability.
    """

    def __init__(self, model, limit, options, *, alpha=None, prefix=None, max_length=None, end_id=EOS_ID, rules=()):
        self.model = model
        self.options, self.beam_size = options, options.beam_size
        self.limit = tf.cast(limit, tf.int64)
        self.alpha = tf.cast(options.alpha if alpha is None else alpha, tf.float32)
        # In greedy search only the first of the two candidates may finish.
        self.end_ranks = 2 * self.beam_size if options.ends == "any" and self.beam_size > 1 else self.beam_size
        self.prefix = None if prefix is None else tf.cast(prefix, tf.int64)
        self.end_id = -1 if end_id is None else end_id
        self.rules = rules
        self.max_length = tf.maximum(tf.reduce_max(limit), 1) if max_length is None else max_length
        self.bound_penalty = self.penalty(tf.maximum(limit, 1), self.alpha)  # [B], the largest possible penalty

    def run(self, cache):
        """Returns the SearchResult of all sentences, without static shapes.

        Args:
            cache: GrowingCache.
        """
        return run_dropping(self, cache)

    def penalty(self, length, alpha):
        """Returns the length penalty, float32, for int32 lengths and float32 exponents whose shapes broadcast."""
        length = tf.cast(length, tf.float32)
        return length**alpha if self.options.length_penalty == "power" else ((5.0 + length) / 6.0) ** alpha

    def alpha_of(self, rows):
        """The length penalty's exponent: float32 [], or [R, 1] for the rows `rows` if it depends on the sentence."""
        return tf.gather(self.alpha, rows)[:, None] if self.alpha.shape.rank else self.alpha

    def start(self, cache):
        """Returns the state before the first step, in which only beam 0 is alive, since all K beams are equal."""
        batch = shape_of(self.limit)[0]
        first = tf.constant([[0.0] + [-float("inf")] * (self.beam_size - 1)])
        nothing = tf.zeros((batch, self.beam_size, self.max_length), tf.int64)
        rows = tf.cast(tf.range(batch), tf.int64)
        return BeamState(
            position=tf.constant(0),
            rows=rows,
            ids=tf.zeros((batch, self.beam_size), tf.int64),
            log_probs=tf.tile(first, (batch, 1)),
            live=nothing,
            finished=nothing,
            scores=tf.fill((batch, self.beam_size), -float("inf")),
            cache=cache,
            rules=tuple(rule.first(rows, self.beam_size) for rule in self.rules),
        )

    def open(self, state):
        """Returns bool [B], whether another step may change the `n_best` best hypotheses of a sentence."""
        if self.beam_size == 1:
            undecided = state.scores[:, 0] == -float("inf")
        else:
            reachable = state.log_probs[:, 0] / tf.gather(self.bound_penalty, state.rows)
            undecided = state.scores[:, self.options.n_best - 1] <= reachable
        return (tf.cast(state.position, tf.int64) < tf.gather(self.limit, state.rows)) & undecided

    def step(self, state):
        """Extends every live hypothesis of the open sentences by one id."""
        beam = self.beam_size
        is_open = self.open(state)[:, None]  # [B, 1]
        ids = tf.cast(tf.reshape(state.ids, (-1,)), tf.int32)
        logits, cache = self.model.decode_step(ids, state.position, state.cache)
        log_probs, parents, ids = self.continuations(tf.cast(logits, tf.float32), state)  # [B, 2K]

        here = tf.range(self.max_length)[None, None] == state.position  # [1, 1, T]
        sequences = tf.where(here, ids[..., None], pick(state.live, parents))  # [B, 2K, T]
        ends, states = self.ending(state, parents, ids)
        finishes = self.finishes(log_probs, ends) & is_open
        penalty = self.penalty(state.position + 1, self.alpha_of(state.rows))
        new_scores = tf.where(finishes, log_probs / penalty, -float("inf"))
        scores, best = tf.math.top_k(tf.concat([state.scores, new_scores], 1), beam)
        finished = pick(tf.concat([state.finished, sequences], 1), best)

        _, best = tf.math.top_k(tf.where(ends, -float("inf"), log_probs), beam)
        parents = pick(parents, best)
        return BeamState(
            position=state.position + 1,
            rows=state.rows,
            ids=pick(ids, best),
            log_probs=tf.where(is_open, pick(tf.where(ends, -float("inf"), log_probs), best), state.log_probs),
            live=tf.where(is_open[..., None], pick(sequences, best), state.live),
            finished=finished,
            scores=scores,
            cache={**cache, "beams": _picked(cache["beams"], parents)},
            rules=_picked(states, best),
        )

    def ending(self, state, parents, ids):
        """Returns whether continuations end their output, bool [B, 2K], and the continuations' `BeamState.rules`."""
        return advance(self.rules, _picked(state.rules, parents), ids, self.end_id)

    def finishes(self, log_probs, ends):
        """Returns which continuations finish, bool [B, 2K], given log-probabilities and whether they end, [B, 2K]."""
        # A finished output must extend a real hypothesis, not an empty beam.
        may_end = tf.range(2 * self.beam_size) < self.end_ranks
        return ends & (log_probs > -float("inf")) & may_end

    def continuations(self, logits, state):
        """Returns the best 2K of the K*V continuations of each sentence.

        Args:
            logits: float32 [B*K, V].
            state: BeamState before the step.

        Returns:
            log-probabilities float32, parents int64 and ids int64, all [B, 2K], best first.
        """
        beam = self.beam_size
        width = min(2 * beam + 1, logits.shape[-1])  # one extra, since the padding id may be among them and is dropped
        allowed = logits
        has_rules = any(rule.changes_scores for rule in self.rules)
        if has_rules:
            allowed = logits if beam == 1 else tf.nn.log_softmax(logits)
            allowed = change(self.rules, allowed, state.rules, state.live, state.position, state.rows)
            logits = tf.nn.log_softmax(logits)
        values, ids = block_top_k(allowed, width)  # [B*K, each]
        if has_rules:
            log_sum = 0.0
        else:  # computed from the best id's probability, since softmax is one kernel and log-sum-exp would be three
            log_sum = values[:, :1] - tf.math.log(pick(tf.nn.softmax(allowed), ids[:, :1]))
        if self.prefix is not None:
            values, ids = self.forced(logits, values, ids, state)  # the score is the model's own log-probability
        # A constant does not change the order of a row, so add it only to the selected values, not to all V values.
        values += tf.reshape(state.log_probs, (-1, 1)) - log_sum
        values = tf.where(ids == PAD_ID, -float("inf"), values)
        best, at = top_k(tf.reshape(values, (-1, beam * width)), 2 * beam)  # [B, 2K]
        ids = pick(tf.reshape(ids, (-1, beam * width)), at)
        if has_rules and beam == 1:  # the rules select the id, but the score is the model's log-probability
            log_probs = state.log_probs + pick(logits, ids)
            best = tf.where((best > -float("inf")) & (tf.range(2) == 0), log_probs, -float("inf"))
        return best, at // width, ids

    def forced(self, logits, values, ids, state):
        """Excludes all continuations but the prefix's id, for sentences whose prefix covers this position."""
        prefix = tf.gather(self.prefix, state.rows)
        forced_ids = tf.reduce_sum(tf.where(tf.range(tf.shape(prefix)[1]) == state.position, prefix, 0), 1)  # [B]
        forced_ids = tf.repeat(forced_ids, self.beam_size)[:, None]  # [B*K, 1]
        first = tf.range(tf.shape(values)[1]) == 0
        forced_values = tf.where(first, pick(logits, forced_ids), -float("inf"))
        return tf.where(forced_ids != 0, forced_values, values), tf.where(forced_ids != 0, forced_ids, ids)

    def result(self, state):
        """Returns each sentence's finished hypotheses or, if there are none, its live hypotheses."""
        any_ended = state.scores[:, :1] > -float("inf")  # [B, 1]
        return SearchResult(
            ids=tf.cast(tf.where(any_ended[..., None], state.finished, state.live), tf.int32),
            scores=tf.where(
                any_ended, state.scores, state.log_probs / tf.gather(self.bound_penalty, state.rows)[:, None]
            ),
            ended=state.scores > -float("inf"),
        )


def block_top_k(values, k):
    """Computes `tf.math.top_k` of the last axis exactly, but several times faster on CPUs for many columns.

    The k largest values are in the k blocks with the largest maxima, so only the values of those blocks are compared.
    Ties are resolved as in `top_k`.

    Args:
        values: float32 [N, V], V static.
        k: Python int <= V.

    Returns:
        Values float32 and indices int64, both [N, k], largest first.
    """
    size, block = values.shape[-1], 128  # the block's size is approximate
    if size < 4 * k * block:  # with so few blocks almost no values would be skipped
        return top_k(values, k)
    rows = shape_of(values)[0]
    divisors = [n for n in range(block // 2, 2 * block + 1) if size % n == 0]
    if divisors:
        block = min(divisors, key=lambda n: abs(n - block))
    else:
        values = tf.pad(values, ((0, 0), (0, -size % block)), constant_values=-float("inf"))
    blocks = tf.reshape(values, (rows, -1, block))
    _, chosen = top_k(tf.reduce_max(blocks, -1), k)  # [N, k]
    chosen = tf.sort(chosen, -1)
    best, at = top_k(tf.reshape(pick(blocks, chosen), (rows, k * block)), k)
    return best, pick(chosen, at // block) * block + at % block


def top_k(values, k):
    """Returns `tf.math.top_k` with int64 indices, which stay on a GPU, unlike int32."""
    best, at = tf.math.top_k(values, k)
    return best, tf.cast(at, tf.int64)


def _picked(values, at):
    """Applies `pick` to all leaves of a pytree."""
    return tf.nest.map_structure(lambda leaf: pick(leaf, at), values)


def pick(values, at):
    """Gathers along axis 1: values [B, N, ...] and `at` int [B, M] -> [B, M, ...], whose row b is values[b, at[b]]."""
    return tf.gather(values, at, axis=1, batch_dims=1)
