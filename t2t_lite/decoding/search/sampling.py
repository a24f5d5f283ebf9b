"""Samples outputs from any model with the decoding interface (see `beam_search`).

The random numbers depend only on the sentence's seed, the sample's index and the position. A sentence's samples
therefore do not depend on the rest of the batch, its size, or the number of samples.
"""

import typing

import tensorflow as tf

from t2t_lite.data.random_numbers import uniform_numbers
from t2t_lite.decoding.search.beam_search import SearchResult
from t2t_lite.decoding.search.loops import run_steps
from t2t_lite.decoding.search.rules import advance, change
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID

# Number of samples of a sentence that share a cache. In a larger group more samples share the memory's keys and values,
# but each sample attends to the slots of the whole group. Measured with 32 samples of 29 ids and hidden size 256:
# groups of this size are 1.1x as fast as one group, and 1.3x under XLA.
_TOGETHER = 4
_BLOCK = 128  # number of ids per block when running sums are computed


def sample(model, inputs, limit, options, **settings) -> SearchResult:
    """Samples outputs id by id until all outputs have finished. Call it inside a `tf.function`.

    Args:
        model, limit, options, **settings: see `Sampling`.
        inputs: int32 [B, S]; each row ends in EOS, then 0.

    Returns:
        SearchResult in the order of sampling, not by score. A score is the model's log-probability (nats) of the whole
        output, including a forced prefix. Temperature, truncation, rules against repetition and length penalty do not
        affect it, so samples with different settings are comparable.
    """
    steps = Sampling(model, limit, options, **settings)
    memory = tf.nest.map_structure(lambda leaf: tf.repeat(leaf, steps.groups, axis=0), model.encode(inputs))
    state = run_steps(steps, model, memory, steps.together, settings.get("max_length"))
    shape = (steps.batch, steps.groups * steps.together)
    return SearchResult(
        ids=tf.cast(tf.reshape(state.live, (*shape, steps.max_length)), tf.int32),
        scores=tf.reshape(state.log_probs, shape),
        ended=tf.reshape(state.ended, shape),
    )


def sample_step(model, inputs, limit, options, *, state=None, **settings):
    """Adds the next id to one sample of one input.

    Args:
        model, inputs, limit, options, **settings: see `sample`; `max_length` is required.
        state: the state returned by the last call, or None at the first call.

    Returns:
        (SamplingState of a batch of one; bool [], whether the sample is unfinished).
    """
    steps = Sampling(model, limit, options, **settings)
    if state is None:
        state = steps.start(model.init_cache(model.encode(inputs), steps.max_length, 1))
    state = steps.step(state)
    return state, steps.open(state)[0, 0]


class SamplingState(typing.NamedTuple):
    """The variables of the sampling loop, for R = B * groups rows of K samples; int64 as in `beam_search.BeamState`."""

    position: tf.Tensor  # int32 []
    ids: tf.Tensor  # int64 [R, K], output of the previous step
    log_probs: tf.Tensor  # float32 [R, K]
    live: tf.Tensor  # int64 [R, K, T]
    ended: tf.Tensor  # bool [R, K]
    cache: dict
    rules: tuple  # per rule, the states of the samples, int64 [R, K], or ()


class Sampling:
    """The settings of one sampling run, and the step that `tf.while_loop` repeats.

    The model's distribution is changed in the order of Hugging Face's `generate`. The rules change the logits, which
    are then divided by `temperature`. Only the `top_k` largest logits, and ties with the smallest of them, are
    kept. After renormalization the most probable ids are kept until the sum of their probabilities reaches `top_p`,
    including the id that reaches `top_p` (and its ties, which Hugging Face may drop). Padding is never sampled.

    Args:
        model: see `t2t_lite.decoding.search.beam_search`.
        limit: int32 [B], maximum number of ids in each sentence's output, EOS included. 0 marks a padding row.
        options: SearchOptions: `top_k`, `temperature`, `top_p`, and `n_best` (the number of samples).
        seeds: int32 [B, 2], the seed of each sentence: equal seeds and equal sentences give equal samples.
        temperature, top_p: float or float32 scalar tensor, which replaces the option.
        prefix: int32 [B, P], ids with which each output must begin, padded with 0, or None.
        max_length, end_id, rules: see `BeamSearch`.
    """

    def __init__(
        self,
        model,
        limit,
        options,
        *,
        seeds,
        temperature=None,
        top_p=None,
        prefix=None,
        max_length=None,
        end_id=EOS_ID,
        rules=(),
    ):
        num_samples = options.n_best
        groups = next(n for n in range(-(-num_samples // _TOGETHER), num_samples + 1) if num_samples % n == 0)
        self.model = model
        self.groups = groups
        self.together = num_samples // groups
        self.temperature = tf.cast(options.temperature if temperature is None else temperature, tf.float32)
        self.top_k = options.top_k
        self.top_p = options.top_p if top_p is None and options.top_p < 1 else top_p
        self.end_id = -1 if end_id is None else end_id
        self.rules = rules
        static = max_length is not None
        self.batch = limit.shape[0] if static else tf.shape(limit)[0]
        self.rows = self.batch * groups
        self.sentences = tf.repeat(tf.range(self.batch), groups) if rules else None  # int32 [R]
        self.max_length = max_length if static else tf.maximum(tf.reduce_max(limit), 1)
        self.limit = tf.repeat(tf.cast(limit, tf.int64), groups)[:, None]  # [R, 1]
        self.prefix = None if prefix is None else tf.repeat(tf.cast(prefix, tf.int64), groups, axis=0)  # [R, P]
        uniform = uniform_numbers(seeds, num_samples, self.max_length)  # [B, groups * K, T, 2]
        # With temperature 0, all numbers are 0, so that the first of equally good ids is chosen, as in greedy search.
        uniform *= tf.sign(self.temperature)
        self.uniform = tf.reshape(uniform, (self.rows, self.together, self.max_length, 2))

    def start(self, cache):
        """Returns the state before the first step."""
        shape = (self.rows, self.together)
        return SamplingState(
            position=tf.constant(0),
            ids=tf.zeros(shape, tf.int64),
            log_probs=tf.zeros(shape),
            live=tf.zeros((*shape, self.max_length), tf.int64),
            ended=tf.zeros(shape, tf.bool),
            cache=cache,
            rules=tuple(rule.first(self.sentences, self.together) for rule in self.rules),
        )

    def open(self, state):
        """Returns bool [R, K], whether each sample is unfinished."""
        return (tf.cast(state.position, tf.int64) < self.limit) & ~state.ended

    def step(self, state):
        """Adds one id to every open sample."""
        is_open = self.open(state)
        ids = tf.cast(tf.reshape(state.ids, (-1,)), tf.int32)
        logits, cache = self.model.decode_step(ids, state.position, state.cache)
        logits = tf.cast(logits, tf.float32)  # [R*K, V]
        uniform = tf.reshape(tf.gather(self.uniform, state.position, axis=2), (-1, 2))
        allowed = change(self.rules, logits, state.rules, state.live, state.position, self.sentences)
        ids = draw(truncated(allowed, self.temperature, self.top_k, self.top_p), uniform)
        ids = self.forced(tf.reshape(ids, (self.rows, self.together)), state.position)
        chosen = tf.gather(logits, tf.reshape(ids, (-1,)), axis=1, batch_dims=1) - tf.reduce_logsumexp(logits, -1)
        ids = tf.where(is_open, ids, PAD_ID)
        ends, states = advance(self.rules, state.rules, ids, self.end_id)
        here = tf.range(self.max_length) == state.position  # [T]
        return SamplingState(
            position=state.position + 1,
            ids=ids,
            log_probs=state.log_probs + tf.where(is_open, tf.reshape(chosen, (self.rows, self.together)), 0.0),
            live=tf.where(here, ids[..., None], state.live),
            ended=state.ended | ends,
            cache=cache,
            rules=states,
        )

    def forced(self, ids, position):
        """Replaces ids [R, K] with the prefix's id at this position, if any."""
        if self.prefix is None:
            return ids
        forced_ids = tf.reduce_sum(tf.where(tf.range(tf.shape(self.prefix)[1]) == position, self.prefix, 0), 1)[:, None]
        return tf.where(forced_ids != 0, forced_ids, ids)


def truncated(logits, temperature, top_k=0, top_p=None):
    """Returns the sampling weights, see `sample`.

    Args:
        logits: float32 [N, V].
        temperature: float32 scalar tensor.
        top_k: Python int.
        top_p: float, float32 scalar tensor or None.

    Returns:
        float32 [N, V], >= 0. The largest weight in a row is 1, and excluded ids have weight 0. Dividing by the sum
        gives probabilities.
    """
    size = logits.shape[-1]
    logits = tf.where(tf.range(size) == PAD_ID, -float("inf"), logits)
    # Subtract the largest logit, so that a temperature of nearly 0 gives 0 and -inf, but no NaN.
    logits = (logits - tf.reduce_max(logits, -1, keepdims=True)) / tf.maximum(temperature, 1e-30)
    if 0 < top_k < size:
        largest, _ = tf.math.top_k(logits, top_k)
        # Use the minimum instead of the last element, since a slice at the end makes XLA sort all ids (ten times as
        # slow).
        logits = tf.where(logits < tf.reduce_min(largest, -1, keepdims=True), -float("inf"), logits)
    weights = tf.exp(logits)
    return weights if top_p is None else tf.where(weights < _least_of_nucleus(weights, top_p), 0.0, weights)


def _least_of_nucleus(weights, top_p):
    """Returns the smallest weight, [N, 1], that top-p sampling keeps.

    The most probable ids are kept until their share reaches `top_p` (Holtzman et al. 2020, "The curious case of neural
    text degeneration", section 3.1). The smallest weight is found bit by bit, because floats from 0 to 1 are ordered
    like their bits. The 30 sums cost less than sorting, and much less under XLA.
    """
    enough = top_p * tf.reduce_sum(weights, -1, keepdims=True)

    def set_bit(bit, least):
        larger = tf.bitcast(tf.bitcast(least, tf.int32) | tf.bitwise.left_shift(1, bit), tf.float32)
        sums = tf.reduce_sum(tf.where(weights < larger, 0.0, weights), -1, keepdims=True)
        return bit - 1, tf.where(sums >= enough, larger, least)

    # The state is float, since TensorFlow would keep int32 in host memory.
    return tf.while_loop(lambda bit, _: bit >= 0, set_bit, (tf.constant(29), tf.zeros_like(enough)))[1]


def draw(weights, uniform):
    """Samples one id per row by means of running sums: first selects a block of ids, then an id in that block.

    Args:
        weights: float32 [N, V], >= 0; an id of weight 0 is never sampled.
        uniform: float32 [N, 2] in [0, 1).

    Returns:
        int64 [N], from 1 to V - 1; undefined if the weights contain NaN.
    """
    size = weights.shape[-1]
    count = -(-size // _BLOCK)
    blocks = tf.reshape(tf.pad(weights, ((0, 0), (0, count * _BLOCK - size))), (-1, count, _BLOCK))
    chosen = _first_beyond(tf.reduce_sum(blocks, -1), uniform[:, 0])
    within = _first_beyond(tf.gather(blocks, chosen, axis=1, batch_dims=1), uniform[:, 1])
    return tf.clip_by_value(chosen * _BLOCK + within, PAD_ID + 1, size - 1)


def _first_beyond(weights, uniform):
    """Returns the first index per row whose running sum exceeds a share of the total: [N, M], [N] -> int64 [N]."""
    sums = tf.cumsum(weights, -1)
    # XLA adds in a different order, so running sums may differ by rounding errors even where a weight is 0.
    beyond = (sums > uniform[:, None] * sums[:, -1:]) & (weights > 0)
    first = tf.argmax(tf.cast(beyond, tf.float32), -1)
    index = tf.where(tf.reduce_any(beyond, -1), first, tf.argmax(weights, -1))
    return tf.minimum(index, weights.shape[-1] - 1)  # the argmax of NaN is undefined
