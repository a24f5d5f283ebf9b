"""Batches from records: one ordered, endless, resumable stream for training, one fixed pass for evaluation.

A pool of examples is sorted by length and split into batches within a token budget. Each side is padded to its own
longest sentence. This is length bucketing without buckets that wait to be filled. It uses only plain `tf.data` on the
host, so `tf.train.Checkpoint(iterator=iter(dataset))` saves the position exactly.

Batches have the size for one replica, and the stream does not depend on the number of replicas; a step takes as many
batches as it needs. The order depends only on the files, the arguments and the seed.

Only `_walk` and `_cut` assume that a row is one pair. To pack several examples into rows of fixed length, as for
decoder-only models, it would suffice to replace these two.
"""

import functools
import logging

import numpy as np
import tensorflow as tf

from t2t_lite.data import records, split_facts
from t2t_lite.data.width_ladder import choose_ladder
from t2t_lite.errors import UserError
from t2t_lite.text.bpe_dropout import BpeDropout

_LOGGER = logging.getLogger("t2t_lite")

_FILES_AT_ONCE = 8  # shards read in turn, as in tensor2tensor
_RECORDS_IN_TURN = 16
_BATCHES_IN_POOL = 100  # with fewer than about 50, fill falls (last batch, mixed lengths)
_SMALLEST_POOL = 2**13
_BATCHES_AHEAD = 8
_SAMPLE = 2**13  # records that are read to estimate the mean length
_STATE_BYTES = 45 * 2**20  # of the iterator in a checkpoint, estimated by `_pool_size`; measured: 4/5 of it


def training_batches(
    paths,
    *,
    batch_size,
    max_length=0,
    min_length=0,
    seed=0,
    was_reversed=False,
    was_copy=False,
    pool_size=None,
    shuffle=True,
    vocab_size=None,
    bpe_dropout=0.0,
    encoders=None,
    ladder=None,
):
    """Returns the endless stream of training batches.

    Each pass over the data yields every kept example once, in a new order. The last pool of a pass holds no examples of
    the next one, but examples that do not fill a pool's last batch are carried into the next pool, also across passes.
    After the last batch of a pass, only these have appeared less often than the rest, and at any time the numbers of
    appearances of two examples differ by at most two. This holds for any number of batches per step, and after the
    iterator is restored.

    Args:
        paths: paths of the record files.
        batch_size: tokens per batch: the largest value of rows x the longest sentence of either side, padding included.
        max_length: examples with more ids (EOS included) on a side are left out. 0, or more than `batch_size`: those
            that do not fit into a batch alone.
        min_length: examples shorter than this on both sides are left out.
        seed: int, decides the order.
        was_reversed: swap inputs and targets.
        was_copy: targets become a copy of inputs, after the swap.
        pool_size: examples in a pool; None: about 100 batches, but no more examples than the data has, or than keep the
            iterator's state below 50 MB.
        shuffle: False keeps the order of the files and of the sorted pools.
        vocab_size: when given, a larger id makes the iterator raise `tf.errors.InvalidArgumentError`; one int, or a
            pair for inputs and targets.
        bpe_dropout: probability of skipping a merge (`BpeDropout`), on both sides; 0: the records' ids are not changed.
            Samples depend only on `seed` and the pool's number. The records decide which examples are too long or too
            short; an example that dropout would make too long keeps its own ids that time.
        encoders: {"inputs", "targets"} as `Problem.get_feature_encoders` returns them; needed for `bpe_dropout`.
        ladder: `WidthLadder`, the only shapes that batches may have; an example that fits into none makes the iterator
            raise `tf.errors.InvalidArgumentError`. None: each batch has the shape that its examples need.

    Returns:
        A `tf.data.Dataset` of {"inputs": int32 [rows, longest of inputs], "targets": int32 [rows, longest of targets]},
        padded with 0.

    Raises:
        UserError: a file is damaged or missing, no example has a length within the limits, or the vocabulary has no
            merges to skip.
    """
    longest = min(max_length or batch_size, batch_size)
    if pool_size is None:
        pool_size = _pool_size(paths, batch_size, longest, min_length)
    parse = _parser(was_reversed, was_copy, vocab_size, paths)
    limits = ladder.shapes[-1, 1:] if ladder else (longest, longest)
    cut_anew = _resampler(bpe_dropout, encoders, limits, seed) if bpe_dropout else lambda number, *pool: pool

    def read(number, serialized):
        inputs, targets = cut_anew(number, *_within(*parse(serialized), min_length, longest))
        return number, (inputs, inputs if was_copy else targets)

    def one_pass(number):
        files = tf.data.Dataset.from_tensor_slices(list(paths))
        if not shuffle:
            return _interleaved(files).batch(pool_size)
        files = _shuffled(files, len(paths), seed, 2 * number)
        return _shuffled(_interleaved(files), pool_size, seed, 2 * number + 1).batch(pool_size)

    passes = tf.data.Dataset.counter()
    pools = passes.flat_map(one_pass).enumerate().map(read, num_parallel_calls=2)
    none = tf.zeros([0], tf.int32), tf.zeros([0], tf.int64)
    walk = ladder.walk if ladder else lambda *pool, carried, **options: _walk(*pool, batch_size, **options)
    plan = _planner(walk, seed if shuffle else None)
    cut = functools.partial(_cut, pad=ladder.pad if ladder else _padded)
    return pools.scan((*none, *none), plan).flat_map(cut).prefetch(_BATCHES_AHEAD)


def problem_batches(problem, hparams, paths, encoders, vocab_size=None, ladder=None):
    """Returns the `training_batches` of a problem's shards for one replica with the given hyperparameters.

    Args:
        problem: Problem; its `_rev` and `_copy` are applied.
        hparams: HParams.
        paths, vocab_size, ladder: see `training_batches`.
        encoders: {"inputs", "targets"}, as `Problem.get_feature_encoders` returns them.

    Raises:
        UserError: as `training_batches`.
    """
    return training_batches(
        paths,
        batch_size=hparams.batch_size,
        max_length=problem.max_length(hparams),
        min_length=hparams.min_length,
        seed=hparams.random_seed,
        was_reversed=problem.was_reversed,
        was_copy=problem.was_copy,
        vocab_size=vocab_size,
        bpe_dropout=hparams.bpe_dropout,
        encoders=encoders,
        ladder=ladder,
    )


def problem_ladder(problem, hparams, paths, encoders, facts):
    """Returns the `WidthLadder` for `problem_batches`, from the lengths of the first records of some files.

    Args:
        problem, hparams, paths, encoders: see `problem_batches`.
        facts: facts of the training split, see `split_facts`, which set the widest shape.

    Raises:
        UserError: a file is damaged, or the vocabulary has no merges to skip.
    """
    limit = min(problem.max_length(hparams) or hparams.batch_size, hparams.batch_size)
    parse = _parser(problem.was_reversed, problem.was_copy, None, paths)
    with records.naming_damage(*paths):
        sample = _interleaved(tf.data.Dataset.from_tensor_slices(list(paths))).batch(_SAMPLE)
        sides = _within(*parse(next(iter(sample))), hparams.min_length, limit)
    shown = problem.maybe_reverse_and_copy({side: side for side in split_facts.SIDES}).values()
    longest = [max(n for n in map(int, facts["side_lengths"][side]) if n <= limit) for side in shown]
    if hparams.bpe_dropout:
        longest = [min(2 * length, limit) for length in longest]  # longer results of dropout are discarded
        sides = _resampler(hparams.bpe_dropout, encoders, longest, hparams.random_seed)(0, *sides)
        sides = (sides[0], sides[0]) if problem.was_copy else sides
    lengths = np.stack([side.row_lengths().numpy() for side in sides], 1)
    return choose_ladder(lengths, longest, hparams.batch_size)


def evaluation_batches(
    paths, *, batch_size, max_length=0, min_length=0, was_reversed=False, was_copy=False, vocab_size=None
):
    """Returns one pass over all examples in a fixed order; the arguments are those of `training_batches`.

    Examples are left out only because of `max_length` or `min_length`. A sentence longer than `batch_size` is a batch
    of its own.
    """
    parse = _parser(was_reversed, was_copy, vocab_size, paths)
    pools = tf.data.TFRecordDataset(list(paths)).batch(_SMALLEST_POOL).map(parse)

    def sort_and_cut(inputs, targets):
        inputs, targets = _within(inputs, targets, min_length, max_length or tf.int32.max)
        order, bounds = _walk(inputs, targets, batch_size, descending=True)
        return _cut(inputs, targets, order, bounds[:-1], bounds[1:], pad=_padded)

    return pools.flat_map(sort_and_cut).prefetch(_BATCHES_AHEAD)


def _interleaved(files):
    """Returns the serialized examples of a dataset of paths, some files at a time, in a fixed order."""
    return files.interleave(tf.data.TFRecordDataset, cycle_length=_FILES_AT_ONCE, block_length=_RECORDS_IN_TURN)


def _shuffled(dataset, buffer_size, seed, number):
    """Returns `dataset.shuffle(buffer_size)`, of strings, in an order that depends only on `seed` and `number`.

    `Dataset.shuffle` mixes TensorFlow's global seed into the order, counts its iterations, and loses this count in a
    checkpoint between two passes; inside a function it cannot be saved at all. Its older kernel has no such problems.
    """
    shuffled = tf.raw_ops.ShuffleDataset(
        input_dataset=tf.data.experimental.to_variant(dataset),
        buffer_size=tf.constant(buffer_size, tf.int64),
        seed=tf.constant(1 + seed % (2**63 - 2), tf.int64),  # two zeros would mean a random order
        seed2=number,
        output_types=[tf.string],
        output_shapes=[[]],
        reshuffle_each_iteration=False,
    )
    return tf.data.experimental.from_variant(shuffled, dataset.element_spec)


def _parser(was_reversed, was_copy, vocab_size, paths):
    def parse(serialized):
        inputs, targets = records.parse_batch(serialized)
        if was_reversed:
            inputs, targets = targets, inputs
        if was_copy:
            targets = inputs
        if vocab_size:
            largest = tf.stack([_largest(inputs), _largest(targets)])  # compared with one size, or one per side
            message = f"{paths[0]} and its like: {records.OUTSIDE} of {vocab_size}"
            with tf.control_dependencies([tf.debugging.assert_less(largest, vocab_size, message)]):
                inputs = tf.identity(inputs)
        return inputs, targets

    return parse


def _largest(ragged):
    return tf.reduce_max(tf.concat([[0], ragged.flat_values], 0))


def _pool_size(paths, batch_size, longest, min_length):
    """Returns the number of examples in a pool, estimated from the first records of some files."""
    sample = _interleaved(tf.data.Dataset.from_tensor_slices(list(paths)))
    with records.naming_damage(*paths):
        batches = list(sample.take(_SAMPLE).batch(_SAMPLE).map(records.parse_batch))
        if not batches:
            raise UserError(f"{paths[0]}: no record in it. Run t2t-datagen again.")
        inputs, targets = batches[0]
    inputs, targets = inputs.row_lengths().numpy(), targets.row_lengths().numpy()
    length = np.maximum(inputs, targets)
    fits = (length >= min_length) & (length <= longest)
    if not fits.any() and not split_facts.count_kept(split_facts.read_facts(paths)["lengths"], longest, min_length)[0]:
        raise UserError(
            f"{paths[0]}: no example has between {min_length} and {longest} ids on its longer side. Raise max_length "
            "or batch_size."
        )
    mean_length = length[fits].mean() if fits.any() else longest
    wanted = max(_SMALLEST_POOL, _BATCHES_IN_POOL * batch_size / mean_length)
    # A checkpoint holds the shuffle buffer (about 2 bytes per id and 50 per example), and up to four pools of int32 ids
    # inside the pipeline.
    ids = (inputs + targets).mean()
    wanted = min(wanted, _STATE_BYTES / ((2 * ids + 50) + 4 * (4 * ids + 16)))
    if len(length) < _SAMPLE:
        # A pool larger than the data would put copies of one sentence next to each other.
        wanted = min(wanted, fits.sum())
    else:
        wanted = min(wanted, sample.take(int(wanted)).reduce(0, lambda count, _: count + 1).numpy())
    return max(1, int(wanted))


def _resampler(probability, encoders, limits, seed):
    """Returns a function of (number, inputs, targets) that segments a pool anew, into at most `limits` ids per side."""
    dropouts = [BpeDropout(encoders[side], probability) for side in ("inputs", "targets")]

    def cut_side(side, ids, lengths, number):
        return dropouts[side](ids, lengths, np.random.default_rng([seed % 2**64, number, side]))

    def cut_anew(number, *pool):
        return [resample(side, number, ragged) for side, ragged in enumerate(pool)]

    def resample(side, number, ragged):
        arguments = side, ragged.flat_values, ragged.row_lengths(), number
        # Declared stateless, because an iterator with a stateful function cannot be saved.
        flat, lengths = tf.numpy_function(cut_side, arguments, (tf.int32, tf.int64), stateful=False)
        lengths = tf.ensure_shape(lengths, [None])
        sampled = tf.RaggedTensor.from_row_lengths(tf.ensure_shape(flat, [None]), lengths, validate=False)
        either = tf.concat([sampled, ragged], 0)
        count = tf.size(lengths)
        return tf.gather(either, tf.range(count) + tf.where(lengths > limits[side], count, 0))

    return cut_anew


def _planner(walk, seed):
    """Returns the function of `Dataset.scan` that plans the batches of a pool and carries its last batch over.

    Its state is the carried examples as flat ids and lengths, inputs then targets. `walk` is `_walk` or a ladder's.
    """

    def plan(carried, element):
        number, pool = element
        inputs = tf.concat([tf.RaggedTensor.from_row_lengths(*carried[:2], validate=False), pool[0]], 0)
        targets = tf.concat([tf.RaggedTensor.from_row_lengths(*carried[2:], validate=False), pool[1]], 0)
        # Descending order leaves the shortest sentences over, ascending the longest: alternate, so none waits long.
        order, bounds, *shapes = walk(inputs, targets, descending=number % 2 == 0, carried=tf.size(carried[1]))
        starts, ends = bounds[:-1], bounds[1:]
        is_full = shapes[0] >= 0 if shapes else tf.range(tf.size(starts)) < tf.size(starts) - 1
        batches = [tf.boolean_mask(of_batch, is_full) for of_batch in (starts, ends, *shapes)]
        if seed is not None:
            turn = tf.random.experimental.stateless_shuffle(
                tf.range(tf.size(batches[0])), [tf.cast(seed, tf.int64), number]
            )
            batches = [tf.gather(of_batch, turn) for of_batch in batches]
        rest = tf.boolean_mask(order, tf.repeat(~is_full, ends - starts))
        left = tf.gather(inputs, rest), tf.gather(targets, rest)
        carried = [part for ragged in left for part in (ragged.flat_values, ragged.row_lengths())]
        return tuple(carried), (inputs, targets, order, *batches)

    return plan


def _cut(inputs, targets, order, *batches, pad):
    """Returns the dataset of a pool's batches, each given by its start and end in `order`, and optionally a shape."""

    def batch(start, end, *shape):
        rows = order[start:end]
        sides = pad(tf.gather(inputs, rows), tf.gather(targets, rows), *shape)
        return dict(zip(split_facts.SIDES, sides, strict=True))

    return tf.data.Dataset.from_tensor_slices(batches).map(batch)


def _padded(inputs, targets):
    """Returns both sides of a batch, each padded to its own longest sentence."""
    return inputs.to_tensor(), targets.to_tensor()


def _within(inputs, targets, shortest, longest):
    """Removes examples whose longer side is not within the limits."""
    length = tf.maximum(inputs.row_lengths(), targets.row_lengths())
    keep = tf.where((length >= shortest) & (length <= longest))[:, 0]
    return tf.gather(inputs, keep), tf.gather(targets, keep)


def _walk(inputs, targets, batch_size, descending):
    """Sorts a pool and splits it into batches, each as large as the budget allows.

    Args:
        inputs: ragged [n, (length)].
        targets: ragged [n, (length)].
        batch_size: the budget of rows x longest; a single row may exceed it.
        descending: bool, the direction.

    Returns:
        order: int32 [n], indices of the examples, sorted.
        bounds: int32 [batches + 1], index in `order` at which each batch begins, and the end.
    """
    length = tf.maximum(inputs.row_lengths(), targets.row_lengths())
    # Examples of one length are sorted by the difference of their sides, alternately up and down from one length to the
    # next. Thus the shorter sides in a batch are similar, too (fill on Multi30k: 0.963; by the shorter length: 0.931).
    difference = inputs.row_lengths() - targets.row_lengths()
    key = length * 2**32 + tf.where(length % 2 == 0, difference, -difference)
    order = tf.argsort(tf.where(descending, -key, key), stable=True)
    length = tf.gather(length, order)
    size = tf.size(order)

    def close_batch(start, number, bounds):
        rest = length[start : start + batch_size]
        cost = tf.range(1, tf.size(rest, tf.int64) + 1) * tf.maximum(rest, rest[0])  # of the first 1, 2, … rows
        rows = tf.maximum(1, tf.searchsorted(cost, [tf.cast(batch_size, tf.int64)], side="right")[0])
        return start + rows, number + 1, bounds.write(number, start + rows)

    bounds = tf.TensorArray(tf.int32, 1, dynamic_size=True, clear_after_read=False).write(0, 0)
    _, _, bounds = tf.while_loop(lambda start, *_: start < size, close_batch, (0, 1, bounds))
    return order, bounds.stack()
