"""Writes a stream of samples to shuffled shards in several processes, in bounded memory; resumes after interruptions.

The stream is split into chunks. Each chunk is encoded, its samples are assigned to shards, and the result is written to
a file next to the shards. Then each shard is assembled from the parts of all chunks and shuffled in memory. The
position of a sample depends only on the seed and on its index in the stream, so neither the number of processes nor an
interruption changes a byte of the shards.
"""

import collections
import concurrent.futures
import contextlib
import copy
import hashlib
import itertools
import json
import multiprocessing
import os
import random
import re
import signal
import struct
import threading
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.reduction import ForkingPickler

import numpy as np
import tensorflow as tf

from t2t_lite import files
from t2t_lite.cli.usr_dirs import import_paths
from t2t_lite.data.manifests import Facts, check_examples, check_facts
from t2t_lite.data.record_format import SIDES, serialize
from t2t_lite.errors import LOGGER, Failure, UserError, first_line
from t2t_lite.files.file_errors import explain
from t2t_lite.process.quiet_import import start_worker

CHUNK_FORMAT = 3  # version of the chunks; increase it when existing chunks can no longer be used
_FRAME = 16  # number of bytes that a TFRecord adds to its data: the length, and checksums of the length and of the data


class ChangedSource(UserError):
    """The samples differ from the samples in the chunks of an unfinished generation."""


def write_shards(samples, paths, *, seed, encode=None, num_workers=1, groups=None, features=SIDES, is_ordered=False):
    """Writes samples to shards in an order shuffled by `seed`.

    An existing chunk or shard is assumed to come from an earlier call with the same arguments. The chunks remain until
    the caller has recorded the results and calls `remove_chunks`. After an error in the samples, chunks and shards are
    removed.

    Args:
        samples: iterable of {feature: ids}, or of any picklable objects if `encode` is given.
        paths: paths of the shards to write. Each process needs enough memory for one shard.
        seed: any int or str; the same samples, number of paths and seed give the same files.
        encode: picklable function that turns a list of samples into a list of {feature: ids}.
        num_workers: int, number of additional processes. If it is 1, or if there is only one chunk, this process does
            all the work.
        groups: list of int, the sizes of groups of successive shards in `paths`. Facts are counted per group. If None,
            all shards form one group.
        features: names of the features.
        is_ordered: bool, whether the samples keep their order, which requires a single shard.

    Returns:
        A list with the facts of each group of shards, see `manifests`: "examples", "tokens", …, "bytes".

    Raises:
        ChangedSource: the samples differ from the samples in existing chunks.
        UserError: an id is below 0.
    """
    chunks = Chunks(paths, seed, groups or [len(paths)], features, is_ordered)
    for path in _chunk_files(paths, files.INCOMPLETE):
        files.remove(path)
    with removed_on_failure(paths), contextlib.ExitStack() as stack:
        run = _Runner(num_workers, stack)
        for index in run.all(chunks.tasks(samples, encode)):
            chunks.add(index)
        for _ in run.all(chunks.shard_tasks(), starts_processes=False):
            pass
    return chunks.facts()


class Chunks:
    """Divides the writing of shards into tasks (function, *arguments) for any process, and collects their results.

    Args:
        paths, seed, groups, features, is_ordered: see `write_shards`.

    Attributes:
        size: int, number of samples in a chunk.
    """

    size = 2**14

    def __init__(self, paths, seed, groups, features, is_ordered=False):
        self._paths = paths
        self._seed = seed
        self._is_ordered = is_ordered
        self._groups = groups
        self._features = features
        self._facts = [Facts(features) for _ in groups]
        self._sizes = []  # for each chunk, a list of the number of bytes that belong to each shard

    def tasks(self, samples, encode):
        """Yields one task per chunk; the result of each task must be passed to `add`."""
        samples = iter(samples)
        for number in itertools.count():
            # the samples are copied, because a generator may change and yield the same dict again
            chunk = [copy.copy(sample) for sample in itertools.islice(samples, self.size)]
            if not chunk:
                return
            path = chunk_path(self._paths, number)
            if files.exists(f"{path}.json"):
                yield _read_index, path, _fingerprint(chunk), len(self._paths), len(self._groups), self._features
            else:
                yield _write_chunk, path, chunk, self._groups, f"{self._seed} {number}", encode, self._features

    def add(self, index):
        """Adds the result of one of the `tasks`; the results must be added in the order of the tasks."""
        self._sizes.append(index["bytes"])
        for group, facts in zip(self._facts, index["groups"], strict=True):
            group.add_json(facts)

    def shard_tasks(self):
        """Yields one task per shard; call it after the results of all `tasks` have been added."""
        offsets = [list(itertools.accumulate(chunk_sizes, initial=0)) for chunk_sizes in self._sizes]
        for shard, path in enumerate(self._paths):
            parts = [
                (chunk_path(self._paths, number), begin[shard], begin[shard + 1] - begin[shard])
                for number, begin in enumerate(offsets)
            ]
            yield _write_shard, path, parts, None if self._is_ordered else f"{self._seed} {os.path.basename(path)}"

    def facts(self):
        """Returns the result of `write_shards`."""
        sizes = iter([sum(chunk_sizes[shard] for chunk_sizes in self._sizes) for shard in range(len(self._paths))])
        return [
            {**group.as_json(), "bytes": list(itertools.islice(sizes, shards))}
            for group, shards in zip(self._facts, self._groups, strict=True)
        ]


@contextlib.contextmanager
def removed_on_failure(paths):
    """Context manager that removes the shards `paths` and their chunks if the samples raise an error.

    After any other error, such as a full disk or a killed process, the chunks are kept, so that the same command
    resumes.
    """
    try:
        yield
    except Exception as error:
        if not _is_of_the_machine(error):
            remove_chunks(paths)
            for path in paths:  # shards may be left from an earlier run
                files.remove_if_there(path)
        raise


def remove_chunks(paths):
    """Removes the chunks that `write_shards` left next to the shards `paths`."""
    for path in _chunk_files(paths):
        files.remove_if_there(path)


def chunk_path(paths, number):
    """Returns the path of a chunk, given the `paths` of the shards."""
    return f"{paths[0]}.chunk-{number:05d}"


def _chunk_files(paths, ending=""):
    folder, name = os.path.split(paths[0])
    return files.list_files(folder, rf"{re.escape(name)}\.chunk-.*{re.escape(ending)}")


def _is_of_the_machine(error):
    """Returns whether an error has a cause other than the samples, so that the finished chunks can still be used."""
    return isinstance(error, Failure | tf.errors.ResourceExhaustedError) or isinstance(explain(error), Failure)


class _Runner:
    """Calls functions in this or other processes, with a bounded number of tasks in progress."""

    def __init__(self, num_workers, stack):
        self._num_workers = num_workers
        self._stack = stack
        self._pool = None

    def all(self, tasks, starts_processes=True):
        """Yields the results of all tasks (function, *arguments), in order. The first task runs in this process.

        Starting processes takes seconds, so the other tasks run in other processes only if `starts_processes` is set or
        processes already run. If no process can be started, this process does all the work.
        """
        waiting = collections.deque()
        try:
            for number, (function, *arguments) in enumerate(tasks):
                wants_processes = number > 0 and (self._pool or starts_processes)
                if not wants_processes or not self._start(arguments):
                    yield function(*arguments)
                    continue
                if len(waiting) == 2 * self._num_workers:
                    yield waiting.popleft().result()
                waiting.append(self._pool.submit(function, *arguments))
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise Failure(
                "an encoding process was killed, probably because memory ran out (each process takes about 600 MB). "
                "Run the same command with a smaller --num_workers; it resumes from the finished chunks."
            ) from None

    def _start(self, arguments):
        """Starts the processes unless they run, and returns whether they run; `arguments` are those of a task."""
        if self._pool is None and self._num_workers > 1:
            # The processes are not forked, because TensorFlow has already started threads.
            context, needs = multiprocessing.get_context("spawn"), "an encoder that can be pickled"
            try:
                ForkingPickler.dumps(arguments)
                needs = "a writable /dev/shm"  # some containers have none, which the queues' semaphores need
                options = self._num_workers, context, start_worker, (import_paths(),)
                self._pool = concurrent.futures.ProcessPoolExecutor(*options)
            except Exception as error:  # pickling a user's encoder may raise any exception
                LOGGER.warning(
                    f"--num_workers={self._num_workers}: other processes cannot be started ({first_line(error)}; "
                    f"they need {needs}). One process does all the work."
                )
                self._num_workers = 1
            else:
                self._stack.callback(self._end)
        return self._pool is not None

    def _end(self):
        is_main, interrupts = threading.current_thread() is threading.main_thread(), []
        # If Ctrl-C interrupted the ending of processes, some would keep running, and Python would wait for them. So the
        # interrupt is deferred until all have ended.
        handler = signal.signal(signal.SIGINT, lambda *signalled: interrupts.append(signalled)) if is_main else None
        try:
            self._pool.shutdown(cancel_futures=True)
        finally:
            if is_main:
                signal.signal(signal.SIGINT, handler)
        if interrupts:
            signal.raise_signal(signal.SIGINT)


def read_index(path, shards, groups, features):
    """Returns the facts of a chunk that `_write_chunk` recorded. Raises `UserError` if the file is damaged."""
    index = files.read_json(f"{path}.json", {"samples": str, "bytes": [int], "groups": [dict]})
    if len(index["bytes"]) != shards or len(index["groups"]) != groups or min(index["bytes"]) < 0:
        raise UserError(
            f"{path}.json: damaged, since it does not list {shards} shards. Run t2t-datagen again; it starts over."
        )
    if files.size(path) != sum(index["bytes"]):
        raise UserError(f"{path}: damaged or truncated. Run t2t-datagen again: it starts over.")
    for number, facts in enumerate(index["groups"]):
        check_facts(facts, features, f"{path}.json: groups: item {number}")
    return index


def _read_index(path, samples, shards, groups, features):
    index = read_index(path, shards, groups, features)
    if index["samples"] != samples:
        raise ChangedSource(
            f"{path}: the source yields other samples than when t2t-datagen was stopped. Run t2t-datagen again; it "
            "starts over."
        )
    return index


def _fingerprint(samples):
    """Returns the SHA-256 (hex) of a list of samples."""
    # JSON and not a pickle, whose bytes depend on which strings are the same object
    return hashlib.sha256(json.dumps(samples, default=_as_json).encode()).hexdigest()


def _as_json(value):
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()  # all numbers; `str` would abbreviate a long array
    return str(value) if isinstance(value, bytes) else type(value).__name__  # `str` may contain an object's address


def _write_chunk(path, samples, groups, seed, encode, features):
    """Encodes a chunk and writes its TFRecords, sorted by shard, and a file with their facts."""
    examples = samples if encode is None else encode(samples)
    check_examples(examples, features)
    shards = sum(groups)
    shard_of_example = _deal(len(examples), shards, seed)
    group_of_shard = np.repeat(np.arange(len(groups)), groups)
    facts, sizes = [Facts(features) for _ in groups], [0] * shards
    for group, facts_of_group in enumerate(facts):
        facts_of_group.add_examples([examples[at] for at in np.flatnonzero(group_of_shard[shard_of_example] == group)])
    with files.replacing(path) as temporary, tf.io.TFRecordWriter(temporary) as writer:
        for at in np.argsort(shard_of_example, kind="stable").tolist():
            record = serialize({name: examples[at][name] for name in features})
            writer.write(record)
            sizes[shard_of_example[at]] += len(record) + _FRAME
    groups = [facts_of_group.as_json() for facts_of_group in facts]
    index = {"samples": _fingerprint(samples), "bytes": sizes, "groups": groups}
    # the file of facts is written last, since its existence means that the chunk is complete
    files.write_bytes(f"{path}.json", json.dumps(index).encode())
    return index


def _deal(count, shards, seed):
    """Assigns each example to a shard; within each block of `shards` successive examples, every shard is used once."""
    draw = np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode()).digest()))
    rounds = draw.permuted(np.tile(np.arange(shards), (-(-count // shards), 1)), axis=1)
    return rounds.reshape(-1)[:count]


def _write_shard(path, parts, seed):
    """Assembles a shard from parts (path of a chunk, first byte, number of bytes); no seed keeps the order."""
    if files.exists(path):
        return
    records = []
    for chunk, begin, size in parts:
        with tf.io.gfile.GFile(chunk, "rb") as file:
            file.seek(begin)
            records += _split(file.read(size), chunk, size)
    if seed is not None:
        random.Random(seed).shuffle(records)
    files.write_bytes(path, b"".join(records))


def _split(data, chunk, size):
    """Splits bytes into TFRecords, each with its length and checksums. Raises `UserError` if they are truncated."""
    records, begin = [], 0
    while begin < size:
        end = begin + _FRAME + (struct.unpack_from("<Q", data, begin)[0] if begin + _FRAME <= len(data) else size)
        if end > min(size, len(data)):
            raise UserError(f"{chunk}: damaged or truncated. Run t2t-datagen again: it starts over.")
        records.append(data[begin:end])
        begin = end
    return records
