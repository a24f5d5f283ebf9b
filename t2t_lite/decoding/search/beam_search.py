"""Beam search with the semantics of tensor2tensor's utils/beam_search.py, for any model with three methods.

The Transformer has these methods; `adapters.FullPass` adds them to other models. B sentences, K beams, V ids:

    memory = model.encode(inputs)                             int32 [B, S], 0 pads -> pytree of [B, ...]
    cache = model.init_cache(memory, max_length, beam_size)   int T, int K -> {"beams": pytree, ...}
    logits, cache = model.decode_step(ids, position, cache)   int32 [B*K], int32 [] -> float32 [B*K, V]

The first two start a search, the third is its step. The task decides what the inputs are (a source with EOS, a prompt),
the longest output (`limit`), the id that ends one (`end_id`) and with what it begins (`prefix`).

* `position` counts outputs from 0. `ids` is the output of the previous step; at position 0 it is ignored: the model
  knows what comes first (the Transformer's decoder gets the zero vector, a language model the last id of its prompt).
* A language model reads its prompts once, in `encode`, padded on the right as any inputs. Their keys and values
  get slots of their own in the cache, which all beams share: see `t2t_lite.layers.cache`, `TransformerStack.prefill`.
* Leaves under "beams" are [B, K, ...]; the search reorders them by parent beam after every step. Leaves under "shared"
  are optional. They are computed once per search and belong to all sentences. All other leaves are [B, ...] and stay
  where they were written, so keys and values are never moved (an ancestry table under "beams" tells a model which of
  them belong to a beam).
* The cache has room for T positions. The cache for a larger T is the one for the smaller T, padded with zeros at the
  end of axes whose size does not depend on the inputs' width; the search pads it when it is full. With static shapes
  (for XLA) the cache is static, too. Otherwise the growing axes have unknown size in the loop, and T usually lies
  between the number of decoded ids and the limit.
"""

import typing

import tensorflow as tf

from t2t_lite.decoding.search.banned_texts import banned_rule
from t2t_lite.decoding.search.loops import GrowingCache, run_dropping, run_phases
from t2t_lite.decoding.search.repetition import repetition_rules
from t2t_lite.decoding.search.stop_strings import first_states, next_states
from t2t_lite.layers.shapes import shape_of
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID


class SearchResult(typing.NamedTuple):
    """The result of a search, best first.

    Attributes:
        ids: int32 [B, K, T], each hypothesis up to and including its EOS, or the piece that ends a stop string, then 0.
        scores: float32 [B, K], log-probability (nats) / length penalty; -inf for missing hypotheses.
        ended: bool [B, K], whether the hypothesis ends so, not at the limit. If any hypothesis of a sentence does,
            unfinished ones are left out (score -inf). Otherwise the K live ones are returned, truncated at the limit.
    """

    ids: tf.Tensor
    scores: tf.Tensor
    ended: tf.Tensor


class BeamState(typing.NamedTuple):
    """The loop's variables.

    Arrays of integers are int64, for int32 TensorFlow keeps in host memory: a GPU would copy them at every step.
    """

    position: tf.Tensor  # int32 []
    rows: tf.Tensor  # int64 [B], the sentence in each row; decided sentences may be dropped
    ids: tf.Tensor  # int64 [B, K], output of the previous step
    log_probs: tf.Tensor  # float32 [B, K], of the live hypotheses, best first
    live: tf.Tensor  # int64 [B, K, T]
    finished: tf.Tensor  # int64 [B, K, T]
    scores: tf.Tensor  # float32 [B, K], of the finished hypotheses, best first; -inf: none yet
    cache: dict
    matched: tf.Tensor  # int64 [B, K], how much of a stop string each live hypothesis ends in; (): there are none
    begun: tf.Tensor  # int64 [B, K], how much of a banned text likewise


def beam_search(
    model,
    inputs,
    limit,
    *,
    beam_size=SearchOptions.beam_size,
    alpha=SearchOptions.alpha,
    length_penalty=SearchOptions.length_penalty,
    n_best=SearchOptions.n_best,
    ends=SearchOptions.ends,
    prefix=None,
    max_length=None,
    end_id=EOS_ID,
    no_repeat_ngram_size=SearchOptions.no_repeat_ngram_size,
    repetition_penalty=None,
    continues_inputs=False,
    stops=None,
    stop_states=None,
    banned=None,
    banned_states=None,
    search_class=None,
) -> SearchResult:
    """Finds the outputs with the highest length-penalized log-probability. Call it inside a `tf.function`.

    Each step takes the 2K best continuations of the K live hypotheses. Those that end in EOS compete for K finished
    places; the best K others stay alive. A sentence is decided when it reaches its limit, or when no live hypothesis
    can still become one of its `n_best` finished ones (log-probabilities only fall, and the penalty is largest at the
    limit). The result of a sentence does not depend on the rest of the batch.

    `beam_size=1` is greedy search: it stops at the first step where EOS is the most probable id.

    Args:
        model: see the module's docstring.
        inputs: int32 [B, S], each row ends in EOS, then 0.
        limit: int32 [B], longest output of each sentence in ids, EOS included. 0 marks a padding row, which costs
            no steps.
        beam_size: K, Python int >= 1.
        alpha: float or float32 tensor [] or [B], >= 0; exponent of the length penalty.
        length_penalty: "gnmt": ((5 + n) / 6)^alpha (Wu et al. 2016, equation 14), or "power": n^alpha; n counts EOS.
        n_best: Python int <= beam_size, how many of the best hypotheses have to be final. A larger number
            makes the search longer.
        ends: which of a step's 2K continuations may finish: "any", as in tensor2tensor, or only the "top" K, as in
            Hugging Face and CTranslate2.
        prefix: int32 [B, P], ids that each output has to begin with, then 0 (nothing is forced there). Scores include
            them. None: no prefixes.
        max_length: Python int >= max(limit): all shapes are static, for XLA (`jit_compile=True`).
            None: shapes may be unknown and only stock TensorFlow ops are used, for graphs without XLA.
        end_id: Python int, the id that ends an output (EOS in this text); None: outputs end at their limit.
        no_repeat_ngram_size: Python int n, no n-gram occurs twice in an output; 0: off.
        repetition_penalty: float or float32 scalar tensor > 0, see `Repetition`; None: off. As in Hugging Face, beam
            search changes log-probabilities by it, and a score is the sum of what results; greedy search changes
            logits, and a score is the model's own log-probability, as in sampling.
        continues_inputs: Python bool, whether an output continues its input, as a prompt: its ids count for both.
        stops: int32 [S, V], the table of `stop_strings.stop_table`: a hypothesis ends as by EOS when its text contains
            one of these strings. None: there are none.
        stop_states: int32 [B], the states of the table in which outputs begin; None: 0.
        banned, banned_states: int32 [S, V], the table of `banned_texts.banned_table`, and as `stop_states`: no output
            contains one of these texts. Scores remain the model's own log-probabilities. None: there are none.
        search_class: a subclass of BeamSearch, which may change what its `run` returns; None: BeamSearch.

    Returns:
        SearchResult, with T = max_length, or max(limit, 1) if `max_length` is None.
    """
    repetition = repetition_rules(no_repeat_ngram_size, repetition_penalty, inputs if continues_inputs else None)
    search = (search_class or BeamSearch)(
        model, limit, beam_size, alpha, length_penalty, n_best, ends, prefix, max_length, end_id, repetition, stops,
        stop_states, banned_rule(banned, banned_states),
    )  # fmt: skip
    memory = model.encode(inputs)
    if max_length is None:
        return search.run(GrowingCache(model, memory, beam_size, search.max_length))
    return search.result(run_phases(search, model, memory, beam_size, max_length))


class BeamSearch:
    """One search: its settings, and the step that `tf.while_loop` repeats."""

    def __init__(
        self,
        model,
        limit,
        beam_size,
        alpha,
        length_penalty,
        n_best,
        ends,
        prefix,
        max_length,
        end_id,
        repetition,
        stops,
        stop_states,
        banned,
    ):
        if length_penalty not in ("gnmt", "power"):
            raise ValueError(f"`length_penalty` must be 'gnmt' or 'power', received {length_penalty!r}.")
        if ends not in ("any", "top"):
            raise ValueError(f"`ends` must be 'any' or 'top', received {ends!r}.")
        if not 1 <= n_best <= beam_size:
            raise ValueError(f"`n_best` must be from 1 to beam_size={beam_size}, received {n_best}.")
        self.model = model
        self.limit = tf.cast(limit, tf.int64)
        self.beam_size = beam_size
        self.alpha = tf.cast(alpha, tf.float32)
        self.length_penalty = length_penalty
        self.n_best = n_best
        # In greedy search only the first of the two candidates may finish.
        self.end_ranks = 2 * beam_size if ends == "any" and beam_size > 1 else beam_size
        self.prefix = None if prefix is None else tf.cast(prefix, tf.int64)
        self.end_id = -1 if end_id is None else end_id
        self.repetition = repetition
        self.stops, self.stop_states = stops, stop_states
        self.banned = banned
        self.max_length = tf.maximum(tf.reduce_max(limit), 1) if max_length is None else max_length
        self.bound_penalty = self.penalty(tf.maximum(limit, 1), self.alpha)  # [B], the largest that can occur

    def run(self, cache):
        """Returns the SearchResult of all sentences, without static shapes.

        Args:
            cache: GrowingCache.
        """
        return run_dropping(self, cache)

    def penalty(self, length, alpha):
        """int32 and float32 of shapes that broadcast -> float32."""
        length = tf.cast(length, tf.float32)
        return length**alpha if self.length_penalty == "power" else ((5.0 + length) / 6.0) ** alpha

    def alpha_of(self, rows):
        """The exponent, float32 []; or [R, 1], that of the given rows, if each sentence has its own."""
        return tf.gather(self.alpha, rows)[:, None] if self.alpha.shape.rank else self.alpha

    def start(self, cache):
        """Only beam 0 counts at first, since all K beams are equal."""
        batch = shape_of(self.limit)[0]
        first = tf.constant([[0.0] + [-float("inf")] * (self.beam_size - 1)])
        nothing = tf.zeros((batch, self.beam_size, self.max_length), tf.int64)
        return BeamState(
            position=tf.constant(0),
            rows=tf.cast(tf.range(batch), tf.int64),
            ids=tf.zeros((batch, self.beam_size), tf.int64),
            log_probs=tf.tile(first, (batch, 1)),
            live=nothing,
            finished=nothing,
            scores=tf.fill((batch, self.beam_size), -float("inf")),
            cache=cache,
            matched=() if self.stops is None else first_states(self.stop_states, (batch, self.beam_size)),
            begun=() if self.banned is None else self.banned.first((batch, self.beam_size)),
        )

    def open(self, state):
        """bool [B]: whether another step may change the sentence's `n_best` best hypotheses."""
        if self.beam_size == 1:
            undecided = state.scores[:, 0] == -float("inf")
        else:
            reachable = state.log_probs[:, 0] / tf.gather(self.bound_penalty, state.rows)
            undecided = state.scores[:, self.n_best - 1] <= reachable
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
        ends, matched = self.ending(state, parents, ids)
        finishes = self.finishes(log_probs, ends) & is_open
        penalty = self.penalty(state.position + 1, self.alpha_of(state.rows))
        new_scores = tf.where(finishes, log_probs / penalty, -float("inf"))
        scores, best = tf.math.top_k(tf.concat([state.scores, new_scores], 1), beam)
        finished = pick(tf.concat([state.finished, sequences], 1), best)

        _, best = tf.math.top_k(tf.where(ends, -float("inf"), log_probs), beam)
        parents = pick(parents, best)
        best_ids = pick(ids, best)
        return BeamState(
            position=state.position + 1,
            rows=state.rows,
            ids=best_ids,
            log_probs=tf.where(is_open, pick(tf.where(ends, -float("inf"), log_probs), best), state.log_probs),
            live=tf.where(is_open[..., None], pick(sequences, best), state.live),
            finished=finished,
            scores=scores,
            cache={**cache, "beams": tf.nest.map_structure(lambda leaf: pick(leaf, parents), cache["beams"])},
            matched=() if self.stops is None else pick(matched, best),
            begun=() if self.banned is None else self.banned.next(pick(state.begun, parents), best_ids),
        )

    def ending(self, state, parents, ids):
        """Returns which continuations [B, 2K] end an output, bool, and their `BeamState.matched`."""
        ends = ids == self.end_id
        if self.stops is None:
            return ends, ()
        matched, stopped = next_states(self.stops, pick(state.matched, parents), ids)
        return ends | stopped, matched

    def finishes(self, log_probs, ends):
        """float32 and bool [B, 2K], of a step's continuations -> bool [B, 2K], whether they may finish."""
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
        each = min(2 * beam + 1, logits.shape[-1])  # one more than wanted, since padding is dropped
        allowed = logits
        has_rules = self.repetition is not None or self.banned is not None
        if has_rules:
            allowed = logits if beam == 1 else tf.nn.log_softmax(logits)
            if self.repetition is not None:
                allowed = self.repetition(allowed, state.live, state.position, state.rows)
            if self.banned is not None:
                allowed = self.banned(allowed, state.begun)
            logits = tf.nn.log_softmax(logits)
        values, ids = block_top_k(allowed, each)  # [B*K, each]
        if has_rules:
            log_sum = 0.0
        else:  # from the probability of the best id: a softmax is one kernel, a log-sum-exp would be three
            log_sum = values[:, :1] - tf.math.log(pick(tf.nn.softmax(allowed), ids[:, :1]))
        if self.prefix is not None:
            values, ids = self.forced(logits, values, ids, state)  # with the model's own probability
        # A constant does not change the order of a row, so add it to the survivors, not to all V values.
        values += tf.reshape(state.log_probs, (-1, 1)) - log_sum
        values = tf.where(ids == PAD_ID, -float("inf"), values)
        best, at = top_k(tf.reshape(values, (-1, beam * each)), 2 * beam)  # [B, 2K]
        ids = pick(tf.reshape(ids, (-1, beam * each)), at)
        if has_rules and beam == 1:  # the rules choose, and the model itself says how probable it was
            own = state.log_probs + pick(logits, ids)
            best = tf.where((best > -float("inf")) & (tf.range(2) == 0), own, -float("inf"))
        return best, at // each, ids

    def forced(self, logits, values, ids, state):
        """Leaves only the prefix's id as a continuation where a sentence has one at this position."""
        prefix = tf.gather(self.prefix, state.rows)
        wanted = tf.reduce_sum(tf.where(tf.range(tf.shape(prefix)[1]) == state.position, prefix, 0), 1)  # [B]
        wanted = tf.repeat(wanted, self.beam_size)[:, None]  # [B*K, 1]
        first = tf.range(tf.shape(values)[1]) == 0
        forced_values = tf.where(first, pick(logits, wanted), -float("inf"))
        return tf.where(wanted != 0, forced_values, values), tf.where(wanted != 0, wanted, ids)

    def result(self, state):
        """Returns each sentence's finished hypotheses, or its live ones if none has finished."""
        any_ended = state.scores[:, :1] > -float("inf")  # [B, 1]
        return SearchResult(
            ids=tf.cast(tf.where(any_ended[..., None], state.finished, state.live), tf.int32),
            scores=tf.where(
                any_ended, state.scores, state.log_probs / tf.gather(self.bound_penalty, state.rows)[:, None]
            ),
            ended=state.scores > -float("inf"),
        )


def block_top_k(values, k, block=128):
    """Exact `tf.math.top_k` of the last axis, several times faster on CPUs for many columns.

    The k largest values are in the k blocks with the largest maxima, so only the values of those blocks are compared.
    Ties are resolved as in `top_k`.

    Args:
        values: float32 [N, V], V static.
        k: Python int <= V.
        block: Python int, approximate number of columns per block.

    Returns:
        Values float32 and indices int64, both [N, k], largest first.
    """
    size = values.shape[-1]
    if size < 4 * k * block:  # hardly anything would be left out
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
    found, at = top_k(tf.reshape(pick(blocks, chosen), (rows, k * block)), k)
    return found, pick(chosen, at // block) * block + at % block


def top_k(values, k):
    """`tf.math.top_k`, with indices int64, which a GPU computes with; int32 would be copied to the host for it."""
    found, at = tf.math.top_k(values, k)
    return found, tf.cast(at, tf.int64)


def pick(values, at):
    """[B, N, ...], int [B, M] -> [B, M, ...]: row b of the result is values[b, at[b]]."""
    return tf.gather(values, at, axis=1, batch_dims=1)
