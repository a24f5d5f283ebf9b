"""Makes batches from records: a reproducible, endless, resumable stream for training, and a fixed pass for evaluation.

A pool of examples is sorted by length and split into batches within a token budget. Each feature is padded to its own
longest row. This is length bucketing in which no bucket waits to be filled. The pipeline uses only plain `tf.data` on
the host, so `tf.train.Checkpoint(iterator=iter(dataset))` saves the exact position.

Each batch is for one replica. The stream does not depend on the number of replicas; a step takes as many batches as it
needs. The order depends only on the files, the arguments and the seed.

A pool is a dict {feature: ragged int32 [n, (length)]}. The length of a row is the length of its longest feature.

The functions of this module do not branch on tensors in Python. So AutoGraph is disabled, which saves seconds at each
start.

Only `_walk` and `_pool_batches` assume that a row is one example. To pack several examples into rows of fixed length,
as is usual for decoder-only models, only these two functions would have to be replaced.
"""

import functools

import numpy as np
import tensorflow as tf

from t2t_lite.data.corruption import corrupted
from t2t_lite.data.example_reader import ExampleReader
from t2t_lite.data.manifests import longest_row
from t2t_lite.data.width_ladder import MOST_SHAPES, choose_ladder
from t2t_lite.errors import UserError
from t2t_lite.text.bpe_dropout import BpeDropout
from t2t_lite.text.vocabulary import SentencePieceEncoder

_FILES_AT_ONCE = 8  # number of shards that are read alternately, as in tensor2tensor
_RECORDS_IN_TURN = 16
_BATCHES_IN_POOL = 100  # number of batches per pool; with fewer than about 50, there is more padding
_SMALLEST_POOL = 2**13
_BATCHES_AHEAD = 8
_SAMPLE = 2**13  # number of records that are read to estimate the mean length
# maximum size in bytes of a saved iterator, as estimated by `usual_pool_size`; the real size is 4/5 of the estimate
_STATE_BYTES = 45 * 2**20


def training_batches(problem, hparams, paths, encoders=None, ladder=None, pool_size=None, shuffle=True, prefetch=True):
    """Returns the endless stream of training batches for one replica.

    Each pass over the data yields every kept example once, in a new order. A pool is filled from one pass only, but
    examples that do not fill the last batch of a pool are carried into the next pool, even across passes. After the
    last batch of a pass, only the carried examples have appeared less often than the rest. At any time, if one example
    has appeared n times, the others have appeared n - 2 to n + 2 times, unless one batch could hold the whole corpus.
    These statements hold for any number of batches per step, and after the iterator is restored.

    Args:
        problem: Problem; its `preprocess_example`, `_rev`, `_copy` and `corrupt` are applied.
        hparams: HParams, of which these are used. batch_size: maximum tokens per batch, padding included, that is, rows
            x longest feature. max_length: examples with more ids (EOS included) in a feature are dropped; see
            `Problem.max_length`. min_length: examples shorter than this in all features are dropped. random_seed:
            determines the order. bpe_dropout: probability of skipping a merge (`BpeDropout`). If 0, the ids in the
            records are not changed. The sampled segmentations depend only on `random_seed` and the pool's number. The
            limits on length apply to the stored ids. An example that dropout would make too long keeps its stored ids
            in that pass or, if `Problem.rows_are_windows`, is replaced by a random part of the result.
        paths: paths of the record files.
        encoders: {feature: encoder}, as `Problem.get_feature_encoders` returns them; needed for `bpe_dropout`. An id
            outside of a feature's vocabulary makes the iterator raise `tf.errors.InvalidArgumentError`.
        ladder: `WidthLadder`, the only shapes that batches may have; an example that fits no shape makes the iterator
            raise `tf.errors.InvalidArgumentError`. If None, each batch has the shape that its examples need.
        pool_size: number of examples in a pool. If None, a pool has enough examples for about 100 batches, but no more
            than the data contain, and few enough that the iterator's state stays below 50 MB.
        shuffle: whether to shuffle; False keeps the order of the files and of the sorted pools.
        prefetch: whether to prepare batches in the background; a checkpoint then holds the prepared batches.

    Returns:
        A `tf.data.Dataset` of {feature: int32 [rows, length of its longest row], or [rows]}, padded with 0.

    Raises:
        UserError: a file is damaged or missing, no example is within the length limits, the vocabulary has no merges to
            skip, or a feature of the problem is missing.
    """
    seed, longest = hparams.random_seed, longest_row(problem, hparams)
    reader = ExampleReader(problem, hparams, "train", paths, encoders)
    pool_size = pool_size or usual_pool_size(reader, hparams, longest)
    resample = lambda number, pool: pool  # noqa: E731
    if hparams.bpe_dropout:
        resample = _resampler(problem, hparams, encoders, ladder.widest if ladder else dict.fromkeys(encoders, longest))

    @tf.autograph.experimental.do_not_convert
    def parse(number, batch):
        pool = resample(number, _within(reader.parse(batch), hparams.min_length, longest))
        return number, ladder.checked(pool) if ladder else pool

    def one_pass(number):
        files = tf.data.Dataset.from_tensor_slices(list(paths))
        if not shuffle:
            return reader.batched(_interleaved(files), pool_size)
        files = _shuffled(files, len(paths), seed, 2 * number)
        return reader.batched(_shuffled(_interleaved(files), pool_size, seed, 2 * number + 1), pool_size)

    passes = tf.data.Dataset.counter()
    pools = passes.flat_map(one_pass).enumerate().map(parse, num_parallel_calls=2)
    none = {name: (tf.zeros([0], tf.int32), tf.zeros([0], tf.int64)) for name in pools.element_spec[1]}
    plan = _planner(tuple(none), hparams.batch_size, ladder, shuffle)
    plans = pools.scan(none, tf.autograph.experimental.do_not_convert(lambda carried, pool: plan(carried, *pool, seed)))
    batches = plans.flat_map(functools.partial(_pool_batches, problem, pad=ladder.pad if ladder else _padded))
    batches = corrupted(problem, batches, hparams, is_stream=True)
    return ahead(batches) if prefetch else batches


def evaluation_batches(problem, hparams, paths, encoders=None, whole=False):
    """Returns one pass over all examples, of any length, in a fixed order; see `training_batches` and `corrupted`.

    An example longer than `batch_size` forms a batch by itself.
    """
    reader = ExampleReader(problem, hparams, "eval", paths, encoders)
    pools = reader.batched(tf.data.TFRecordDataset(list(paths)), _SMALLEST_POOL).map(reader.parse)

    @tf.autograph.experimental.do_not_convert
    def sort_and_cut(pool):
        order, bounds = _walk(pool, hparams.batch_size, descending=True)
        return _pool_batches(problem, pool, order, bounds[:-1], bounds[1:], pad=_padded)

    return ahead(corrupted(problem, pools.flat_map(sort_and_cut), hparams, whole=whole))


def ahead(batches):
    """Returns a dataset that prepares batches in the background.

    Autotuning is off, because its thread sleeps for up to a minute and deleting the iterator would wait for this thread
    (`Model::OptimizeLoop`, tensorflow/core/framework/model.cc, TensorFlow 2.21).
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return batches.prefetch(_BATCHES_AHEAD).with_options(options)


def narrowest_batch(problem, hparams, ladder):
    """Returns a batch that contains only padding and has a ladder's first shape: {feature: int32}."""
    rows, *widths = ladder.shapes[0].tolist()
    ranks = {name: problem.features.get(name, 2) for name in ladder.features}
    batch = {name: tf.zeros([rows, width][: ranks[name]], tf.int32) for name, width in zip(ranks, widths, strict=True)}
    return corrupted(problem, tf.data.Dataset.from_tensors(batch), hparams).get_single_element()


def problem_ladder(problem, hparams, paths, encoders, facts, most=MOST_SHAPES):
    """Returns the `WidthLadder` for `training_batches`, based on the lengths of the first examples in some files.

    Args:
        problem, hparams, paths, encoders: see `training_batches`.
        facts: facts of the training split as the model sees it (`Records.seen_facts`); they set the widest shape.
        most: int, maximum number of shapes.

    Raises:
        UserError: a file is damaged, or the vocabulary has no merges to skip.
    """
    limit = longest_row(problem, hparams)
    reader = ExampleReader(problem, hparams, "train", paths)
    with reader.naming_damage():
        sample = reader.batched(_interleaved(tf.data.Dataset.from_tensor_slices(list(paths))), _SAMPLE)
        pool = _within(reader.parse(next(iter(sample))), hparams.min_length, limit)
    longest = {name: max(n for n in map(int, facts["side_lengths"][name]) if n <= limit) for name in pool}
    if hparams.bpe_dropout:
        # BPE-dropout can make an example longer than `longest`. Such a result is discarded.
        longest |= {name: min(2 * longest[name], limit) for name in _resampled(encoders) if name in pool}
        pool = _resampler(problem, hparams, encoders, longest)(0, pool)
    lengths = {name: ids.row_lengths().numpy() for name, ids in pool.items()}
    return choose_ladder(lengths, longest, hparams.batch_size, most)


@tf.autograph.experimental.do_not_convert
def _interleaved(files):
    """Reads the files in a dataset of paths, several at a time; returns the serialized examples in a fixed order."""
    return files.interleave(tf.data.TFRecordDataset, cycle_length=_FILES_AT_ONCE, block_length=_RECORDS_IN_TURN)


@tf.autograph.experimental.do_not_convert
def _shuffled(dataset, buffer_size, seed, number):
    """Shuffles strings like `Dataset.shuffle`, but in an order that depends only on `seed` and `number`."""
    # The order of `Dataset.shuffle` depends on TensorFlow's global seed and on a count of iterations, which a
    # checkpoint between two passes does not save. Inside a function, `Dataset.shuffle` cannot be saved at all. The
    # older kernel of this op has none of these problems.
    shuffled = tf.raw_ops.ShuffleDataset(
        input_dataset=tf.data.experimental.to_variant(dataset),
        buffer_size=tf.constant(buffer_size, tf.int64),
        seed=tf.constant(1 + seed % (2**63 - 2), tf.int64),  # never 0, because two seeds of 0 would give a random order
        seed2=number,
        output_types=[tf.string],
        output_shapes=[[]],
        reshuffle_each_iteration=False,
    )
    return tf.data.experimental.from_variant(shuffled, dataset.element_spec)


def usual_pool_size(reader, hparams, longest):
    """Returns the number of examples in a pool, estimated from the first records of some files."""
    sample = _interleaved(tf.data.Dataset.from_tensor_slices(reader.paths))
    with reader.naming_damage():
        # Lengths are measured in the stored records, before `_copy`. This must not change, because the position in a
        # checkpoint depends on the size of the pool.
        first = next(iter(reader.batched(sample.take(_SAMPLE), _SAMPLE)), None)
        if first is None:
            raise UserError(f"{reader.paths[0]}: the file has no records. Run t2t-datagen again.")
        pool = reader.stored(first)
    lengths = [ids.row_lengths().numpy() for ids in pool.values()]
    length = np.maximum.reduce(lengths)
    fits = (length >= hparams.min_length) & (length <= longest)
    if not fits.any() and len(length) < _SAMPLE:
        raise UserError(
            f"{reader.paths[0]}: no example has between {hparams.min_length} and {longest} ids in its longest feature. "
            "Raise max_length or batch_size."
        )
    mean_length = length[fits].mean() if fits.any() else longest
    pool_size = max(_SMALLEST_POOL, _BATCHES_IN_POOL * hparams.batch_size / mean_length)
    # A checkpoint holds the shuffle buffer (about 2 bytes per id and 50 bytes per example) and up to four pools of
    # int32 ids and int64 lengths inside the pipeline.
    ids = sum(lengths).mean()
    pool_size = min(pool_size, _STATE_BYTES / ((2 * ids + 50) + 4 * (4 * ids + 8 * len(lengths))))
    if len(length) < _SAMPLE:
        # A pool larger than the data would contain copies of a sentence, which sorting puts next to each other.
        pool_size = min(pool_size, fits.sum())
    else:
        pool_size = min(pool_size, sum(int(tf.size(records)) for records in sample.take(int(pool_size)).batch(_SAMPLE)))
    return max(1, int(pool_size))


def _resampled(encoders):
    """Returns the names of the features to which BPE-dropout applies, because their vocabularies have merges."""
    return [name for name, encoder in encoders.items() if isinstance(encoder, SentencePieceEncoder)] or list(encoders)


def _resampler(problem, hparams, encoders, limits):
    """Returns a function of (pool number, pool) that applies BPE-dropout, with at most `limits` ids per feature."""
    if problem.targets_are_places:
        raise UserError(
            f"bpe_dropout={hparams.bpe_dropout}: the targets of {problem.full_name} refer to positions of pieces, "
            "which BPE-dropout would change. Expected 0."
        )
    if problem.keeps_pieces:
        raise UserError(
            f"bpe_dropout={hparams.bpe_dropout}: resegmented texts would reveal the answers of {problem.full_name}. "
            "Expected 0."
        )
    dropouts = {name: BpeDropout(encoders[name], hparams.bpe_dropout) for name in _resampled(encoders)}

    def sample(name, pool_number, ids, lengths):
        key = [hparams.random_seed % 2**64, int(pool_number), [*problem.features, *encoders].index(name)]
        draw = np.random.default_rng(key)
        sampled = dropouts[name](ids, lengths, draw)
        return _windows(*sampled, limits[name], draw) if problem.rows_are_windows else sampled

    def resample(name, number, ragged):
        arguments = number, ragged.flat_values, ragged.row_lengths()
        # The function is declared stateless, because an iterator with a stateful function cannot be saved.
        draw = functools.partial(sample, name)
        flat, lengths = tf.numpy_function(draw, arguments, (tf.int32, tf.int64), stateful=False)
        lengths = tf.ensure_shape(lengths, [None])
        sampled = tf.RaggedTensor.from_row_lengths(tf.ensure_shape(flat, [None]), lengths, validate=False)
        either = tf.concat([sampled, ragged], 0)
        count = tf.size(lengths)
        return tf.gather(either, tf.range(count) + tf.where(lengths > limits[name], count, 0))

    def resample_all(number, pool):
        pool = {name: resample(name, number, ids) if name in dropouts else ids for name, ids in pool.items()}
        return {**pool, "targets": pool["inputs"]} if problem.was_copy else pool

    return resample_all


def _windows(ids, lengths, limit, draw):
    """Cuts concatenated rows to at most `limit` ids, each at a random offset; returns the rows' (ids, lengths)."""
    first = draw.integers(0, np.maximum(lengths - limit, 0) + 1)
    place = np.arange(ids.size) - np.repeat(np.cumsum(lengths) - lengths + first, lengths)
    return ids[(place >= 0) & (place < limit)], np.minimum(lengths, limit)


@functools.lru_cache(maxsize=16)
def _planner(features, batch_size, ladder, shuffle):
    """Returns a function for `Dataset.scan` that plans a pool's batches and carries remaining examples to the next."""
    # The function takes the carried examples as {feature: (flat ids, lengths)}, the pool's number, the pool and the
    # seed. It is traced here, once, because tracing takes half of the time needed to make a stream. `scan` would trace
    # it twice, since the shape of its state changes when the first examples are carried. The function must not contain
    # assertions: TensorFlow would regard it as stateful and not save the iterator.
    walk = ladder.walk if ladder else functools.partial(_walk, batch_size=batch_size)
    left_over = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int64)
    rows, scalar = tf.RaggedTensorSpec([None, None], tf.int32), tf.TensorSpec([], tf.int64)
    signature = [dict.fromkeys(features, left_over), scalar, dict.fromkeys(features, rows), scalar]

    @functools.partial(tf.function, input_signature=signature, autograph=False)
    def plan(carried, number, new, seed):
        ragged = {name: tf.RaggedTensor.from_row_lengths(*parts, validate=False) for name, parts in carried.items()}
        pool = {name: tf.concat([ragged[name], new[name]], 0) for name in features}
        # In descending order the shortest examples are carried over, and in ascending order the longest. The two orders
        # alternate, so that no example is carried over for long.
        order, bounds, *shapes = walk(
            pool, descending=number % 2 == 0, carried=tf.size(next(iter(carried.values()))[1])
        )
        starts, ends = bounds[:-1], bounds[1:]
        is_full = shapes[0] >= 0 if shapes else tf.range(tf.size(starts)) < tf.size(starts) - 1
        batches = [tf.boolean_mask(values, is_full) for values in (starts, ends, *shapes)]
        if shuffle:
            turn = tf.random.experimental.stateless_shuffle(tf.range(tf.size(batches[0])), [seed, number])
            batches = [tf.gather(values, turn) for values in batches]
        rest = _gather(pool, tf.boolean_mask(order, tf.repeat(~is_full, ends - starts)))
        return {name: (ids.flat_values, ids.row_lengths()) for name, ids in rest.items()}, (pool, order, *batches)

    return plan


@tf.autograph.experimental.do_not_convert
def _pool_batches(problem, pool, order, *batches, pad):
    """Returns a dataset of a pool's batches; each has a start and end in `order` and, optionally, a shape."""

    def batch(start, end, *shape):
        padded = pad(_gather(pool, order[start:end]), *shape)
        return {name: tf.squeeze(ids, 1) if problem.features.get(name) == 1 else ids for name, ids in padded.items()}

    return tf.data.Dataset.from_tensor_slices(batches).map(batch)


def _padded(pool):
    """Returns the features of a batch, each padded to the longest row of that feature."""
    return {name: ids.to_tensor() for name, ids in pool.items()}


def _gather(pool, rows):
    return {name: tf.gather(ids, rows) for name, ids in pool.items()}


def _lengths(pool):
    """Returns the length of each example's longest feature, int64 [n]."""
    return functools.reduce(tf.maximum, [ids.row_lengths() for ids in pool.values()])


def _within(pool, shortest, longest):
    """Removes from a pool the examples whose longest feature is not within the limits."""
    length = _lengths(pool)
    return _gather(pool, tf.where((length >= shortest) & (length <= longest))[:, 0])


def _walk(pool, batch_size, descending, carried=None):
    """Sorts a pool and splits it into batches of up to `batch_size` cells (rows x longest); see `WidthLadder.walk`."""
    length = _lengths(pool)
    # Examples of one length are sorted by the length difference of their first two features, alternately ascending and
    # descending from one length to the next. Thus the shorter sides in a batch also have similar lengths: on Multi30k,
    # 0.963 of the cells are filled (0.931 if sorted by the shorter length).
    first, second, *_ = 2 * [ids.row_lengths() for ids in pool.values()]
    difference = first - second
    key = length * 2**32 + tf.where(length % 2 == 0, difference, -difference)
    order = tf.argsort(tf.where(descending, -key, key), stable=True)
    length = tf.gather(length, order)
    size = tf.size(order)

    def close_batch(start, number, bounds):
        rest = length[start : start + batch_size]
        # number of cells if the batch has 1, 2, … rows
        cost = tf.range(1, tf.size(rest, tf.int64) + 1) * tf.maximum(rest, rest[0])
        rows = tf.maximum(1, tf.searchsorted(cost, [tf.cast(batch_size, tf.int64)], side="right")[0])
        return start + rows, number + 1, bounds.write(number, start + rows)

    bounds = tf.TensorArray(tf.int32, 1, dynamic_size=True, clear_after_read=False).write(0, 0)
    _, _, bounds = tf.while_loop(lambda start, *_: start < size, close_batch, (0, 1, bounds))
    return order, bounds.stack()
