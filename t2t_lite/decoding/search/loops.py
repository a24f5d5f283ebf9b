"""Loops that repeat a search's step with a growing cache: it has a few static sizes under XLA; otherwise it doubles."""

import concurrent.futures
import contextlib
import os

import numpy as np
import tensorflow as tf

# With three phases, a search with a static cache compiles quickly and reads few empty positions. Searches with
# transformer_base are 1.2x as fast.
_NUM_PHASES = 3
_PHASE_GROWTH = 1.7

# Initial number of positions in a growing cache, which doubles when it is full. A cache that grew by one position would
# be copied at every step, and TensorFlow's allocator rarely reuses memory when sizes keep changing. The process needed
# 2.0 times the memory of weights and cache when the cache grew by 1 position at a time, 1.6 times when it grew by 16,
# and 1.3 times when it doubled.
_FIRST_LENGTH = 8


def run_steps(steps, model, memory, beam_size, max_length):
    """Repeats the step of a beam search or of sampling until no row is open.

    Args:
        steps: object with three methods: `start(cache)` returns the first state, `open(state)` returns a bool, and
            `step(state)` returns the next state. A state is a named tuple with the fields `position` and `cache`.
        model, beam_size, max_length: see `beam_search`.
        memory: the result of `model.encode`.

    Returns:
        The last state, without its cache if `max_length` is given.
    """
    if max_length is None:
        cache = GrowingCache(model, memory, beam_size, steps.max_length)
        (state,) = cache.run(steps, lambda state: (steps.step(state),), steps.start(cache.first))
        return state
    return run_phases(steps, model, memory, beam_size, max_length)


def run_phases(steps, model, memory, beam_size, max_length):
    """Runs the loop of `run_steps` for a given `max_length`, in phases with static caches."""
    lengths = phase_lengths(max_length)
    shapes = [cache_shapes(model, memory, length, beam_size) for length in lengths[1:]]
    state = steps.start(model.init_cache(memory, lengths[0], beam_size))
    return _run_phases(steps, state, lengths, shapes)


def phase_lengths(max_length) -> list[int]:
    """Returns the static cache lengths of the phases: increasing multiples of 8, then `max_length`.

    Most outputs are far shorter than the limit, and attention reads the whole cache at every step.
    """
    lengths = [max_length]
    while len(lengths) < _NUM_PHASES:
        shorter = -(-int(lengths[0] / _PHASE_GROWTH) // 8) * 8
        if not 8 <= shorter < lengths[0]:
            break
        lengths.insert(0, shorter)
    return lengths


def _run_phases(search, state, lengths, shapes):
    """Runs the loop with a cache of static length lengths[0], then grows it for the next phase if any row is open.

    Phases are nested in `tf.cond`, so phases that are not reached cost nothing.
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


class GrowingCache:
    """A cache that grows during a search without static shapes.

    Args:
        limit: int32 [], the number of positions of the longest output.

    Attributes:
        first: the cache that the search starts with.
    """

    def __init__(self, model, memory, beam_size, limit):
        self.limit = limit
        self.first = model.init_cache(memory, _FIRST_LENGTH, beam_size)
        longer = cache_shapes(model, memory, _FIRST_LENGTH + 1, beam_size)
        self._growth = tf.nest.map_structure(_differences, self.first, longer)  # each axis's growth per position

    def run(self, search, body, state, *others):
        """Repeats `body` until no row is open, in a loop over the cache's lengths with an inner loop over the steps.

        A single loop that checks at each step whether the cache is full was 4 % slower per step for one sentence.

        Args:
            search: object with a method `open(state)`, bool.
            body: function from (state, *others) to the tuple of their next values.
            state: named tuple with `position` and `cache`; the cache is `first`.
            others: pytrees of tensors [B, …] whose batch does not shrink.

        Returns:
            The final (state, *others).
        """
        shapes = (self._state_shapes(state), *tf.nest.map_structure(_any_batch, others))

        def is_open(state, *_):
            return tf.reduce_any(search.open(state))

        def checked_body(*variables):
            return _with_shapes(body(*variables), shapes)

        def lengthen_and_run(state, *others):
            room = tf.maximum(_FIRST_LENGTH, 2 * state.position)
            state = state._replace(cache=self._lengthened(state.cache, state.position))
            return tf.while_loop(
                lambda state, *_: is_open(state) & (state.position < room),
                checked_body,
                _with_shapes((state, *others), shapes),
                shape_invariants=shapes,
            )

        return tf.while_loop(is_open, lengthen_and_run, (state, *others), shape_invariants=shapes)

    def _lengthened(self, cache, position):
        """Doubles the size of a full cache; before the first step the cache is returned unchanged."""
        more = tf.minimum(position, tf.maximum(self.limit - position, 0))

        def grow(leaf, growth):
            return tf.pad(leaf, [(0, int(each) * more) for each in growth]) if any(growth) else leaf

        return tf.nest.map_structure(grow, cache, self._growth)

    def _state_shapes(self, state):
        """Returns the shapes of a loop's state, in which the batch may shrink and the cache grows."""

        def shape(leaf, growth):
            axes = enumerate(zip(leaf.shape, growth, strict=True))
            return tf.TensorShape([None if axis == 0 or each else size for axis, (size, each) in axes])

        fixed = tf.nest.map_structure(_any_batch, state._replace(cache=()))
        cache = tf.nest.map_structure(shape, state.cache, self._growth)
        if "shared" in cache:
            cache["shared"] = tf.nest.map_structure(lambda leaf: leaf.shape, state.cache["shared"])
        return fixed._replace(cache=cache)


def run_dropping(search, cache):
    """Runs a beam search, and drops decided sentences whenever an eighth of the batch is decided.

    Args:
        search: BeamSearch.
        cache: GrowingCache.

    Returns:
        SearchResult of all sentences.
    """
    state = search.start(cache.first)
    outputs = search.result(state)  # placeholder of the right shapes; rows are filled in when sentences are dropped

    def store(done, state):
        at = state.rows[:, None]
        return tf.nest.map_structure(
            lambda all_, some: tf.tensor_scatter_nd_update(all_, at, some), done, search.result(state)
        )

    def body(state, done):
        state = search.step(state)
        is_open = search.open(state)
        few = 8 * tf.reduce_sum(tf.cast(is_open, tf.int32)) <= 7 * tf.shape(is_open)[0]
        return tf.cond(few, lambda: (take(state, tf.where(is_open)[:, 0]), store(done, state)), lambda: (state, done))

    state, outputs = cache.run(search, body, state, outputs)
    return store(outputs, state)


def take(state, at):
    """Returns the state of the rows `at`, int [N]. All leaves except scalars and shared leaves are [B, …]."""

    def rows(part):
        return tf.nest.map_structure(lambda leaf: tf.gather(leaf, at) if leaf.shape.rank else leaf, part)

    cache = {name: part if name == "shared" else rows(part) for name, part in state.cache.items()}
    return rows(state._replace(cache=()))._replace(cache=cache)


def _differences(leaf, shape):
    """Returns how much longer each axis is in `shape` than in `leaf`; 0 for axes of unknown size."""
    return np.array([0 if size is None else size - leaf.shape[axis] for axis, size in enumerate(shape)])


def _any_batch(leaf):
    """Returns the shape of a loop variable whose first axis, the batch, may shrink."""
    return tf.TensorShape([None, *leaf.shape[1:]] if leaf.shape.rank else [])


def _with_shapes(tensors, shapes):
    tf.nest.map_structure(lambda leaf, shape: leaf.set_shape(shape), tensors, shapes)
    return tensors


def cache_shapes(model, memory, length, beam_size):
    """Returns the shapes of `model.init_cache(memory, length, beam_size)` without creating the cache."""
    specs = tf.nest.map_structure(lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), memory)
    abstract = tf.function(lambda memory: model.init_cache(memory, length, beam_size), autograph=False)
    outputs = abstract.get_concrete_function(specs).structured_outputs
    return tf.nest.map_structure(lambda leaf: leaf.shape, outputs)


def use_a_thread_per_search():
    """Limits each operation to one thread, for processes that search many batches.

    Call it before TensorFlow's first operation. Two searches then keep two cores busy without waiting for each other's
    threads. On two cores, the only case that was measured, this is 1.1 times as fast in float32 and 1.25 times in
    bfloat16; a single batch becomes slower. The call has no effect with more than two cores, with a GPU, if the user
    has set a number of threads, or once TensorFlow runs.
    """
    chosen = os.environ.get("TF_NUM_INTRAOP_THREADS") or tf.config.threading.get_intra_op_parallelism_threads()
    if os.cpu_count() == 2 and not chosen and not tf.config.list_physical_devices("GPU"):
        with contextlib.suppress(RuntimeError):  # TensorFlow is already running
            tf.config.threading.set_intra_op_parallelism_threads(1)


def side_by_side(run, *arguments):
    """Returns `map(run, *arguments)`, with two calls in parallel on a CPU.

    A search step is a chain of small operations, which do not keep two cores busy (measured: 1.6 of the two were busy).
    """
    if os.cpu_count() == 1 or len(tf.config.list_logical_devices()) > 1:  # each device already has a thread
        yield from map(run, *arguments)
        return
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        yield from threads.map(run, *arguments)
