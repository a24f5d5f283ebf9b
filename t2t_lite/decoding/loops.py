"""Repeats the step of a search: with a cache of static size that grows in phases, for XLA, or that grows by itself."""

import tensorflow as tf

# Three phases of static cache cost little to compile and read little that is still empty (measured on base: 1.2x).
_NUM_PHASES = 3
_PHASE_GROWTH = 1.7


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
    return run_phases(steps, model, memory, beam_size, max_length)


def run_phases(steps, model, memory, beam_size, max_length):
    """As `run_steps` with a `max_length`."""
    lengths = phase_lengths(max_length)
    shapes = [cache_shapes(model, memory, length, beam_size) for length in lengths[1:]]
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

    shapes = tf.nest.map_structure(_growing, state)

    def body(state):
        return (_with_shapes(search.step(state), shapes),)

    (state,) = tf.while_loop(
        lambda state: tf.reduce_any(search.open(state)), body, (state,), shape_invariants=(shapes,)
    )
    return state


def run_dropping(search, cache):
    """Runs a beam search with a cache that grows, and drops the sentences that are decided when an eighth of them is.

    Args:
        search: BeamSearch.
        cache: from `model.init_cache(memory, None, beam_size)`.

    Returns:
        Hypotheses of all sentences.
    """
    state = search.start(cache)
    found = search.result(state)  # of the right shapes, filled in when sentences are dropped
    shapes = tf.nest.map_structure(_growing, (state, found))

    def store(found, state):
        at = state.rows[:, None]
        return tf.nest.map_structure(
            lambda all_, some: tf.tensor_scatter_nd_update(all_, at, some), found, search.result(state)
        )

    def body(state, found):
        state = search.step(state)
        is_open = search.open(state)
        few = 8 * tf.reduce_sum(tf.cast(is_open, tf.int32)) <= 7 * tf.shape(is_open)[0]
        left = tf.cond(few, lambda: (take(state, tf.where(is_open)[:, 0]), store(found, state)), lambda: (state, found))
        return _with_shapes(left, shapes)

    state, found = tf.while_loop(
        lambda state, found: tf.reduce_any(search.open(state)), body, (state, found), shape_invariants=shapes
    )
    return store(found, state)


def take(state, at):
    """Returns the state of the rows `at`, int [N], alone: all of its tensors but scalars have the batch first."""
    return tf.nest.map_structure(lambda leaf: tf.gather(leaf, at) if leaf.shape.rank else leaf, state)


def _growing(leaf):
    """The shape of a loop's variable whose batch shrinks and whose axes of size 0 grow."""
    return tf.TensorShape([None if at == 0 else size or None for at, size in enumerate(leaf.shape)])


def _with_shapes(tensors, shapes):
    tf.nest.map_structure(lambda leaf, shape: leaf.set_shape(shape), tensors, shapes)
    return tensors


def cache_shapes(model, memory, length, beam_size):
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
