"""Compares the training stream with tf.data's `bucket_by_sequence_length`: speed, padding, memory and state.

python -m benchmarks.pipeline
python -m benchmarks.pipeline --pairs=train.en.gz,train.de.gz,dev.en.gz,dev.de.gz --examples=1000000 --vocab_size=32000
python -m benchmarks.pipeline --sides=ours,dropped_out

The sides take turns, each in a separate process. Tokens are counted in inputs and targets, without padding. The first
fifth of a turn is not counted, because its batches were prepared during the other side's turn. The files in `--pairs`
are compressed with gzip; by default, the texts of `work.py` are used. Memory and the seconds until warm are measured in
the process that reads; the iterator is saved and restored in another process.
"""

import glob
import gzip
import json
import os
import random
import sys
import tempfile
import time

from benchmarks.harness import work
from benchmarks.harness.command import alone, compare, main
from benchmarks.harness.turns import peak_mb

TITLE = "The training stream against bucket_by_sequence_length"
SIDES = {"ours": "t2t_lite", "bucketed": "bucket_by_sequence_length", "dropped_out": "t2t_lite, BPE-dropout 0.1"}
DEFAULT_SIDES = "ours", "bucketed"
NEEDS = {}
BATCH_SIZE, MAX_LENGTH, SEED = 4096, 256, 1


def make(folder, pairs, examples, shards, vocab_size):
    """Learns a vocabulary from the pairs of files, and writes records of randomly sampled pairs."""
    import tensorflow as tf

    from t2t_lite.data import record_format
    from t2t_lite.text import subwords, vocabulary

    sides = [], []
    for number, path in enumerate(pairs):
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
            sides[number % 2].extend(line.rstrip("\n") for line in file)
    os.makedirs(folder, exist_ok=True)
    subwords.train_sentencepiece([*sides[0], *sides[1]], f"{folder}/vocab", vocab_size)
    encoder = vocabulary.SentencePieceEncoder(f"{folder}/vocab.model")
    serialized = [
        record_format.serialize({"inputs": [*encoder.encode(a), 1], "targets": [*encoder.encode(b), 1]})
        for a, b in zip(*sides, strict=True)
    ]
    draw = random.Random(SEED)
    for shard in range(shards):
        with tf.io.TFRecordWriter(f"{folder}/wmt-train-{shard:05d}-of-{shards:05d}") as writer:
            for record in draw.choices(serialized, k=examples // shards):
                writer.write(record)


def ours(paths, encoders=None, **settings):
    """Returns the trainer's stream."""
    from t2t_lite.data import batching
    from t2t_lite.data.problem import Problem

    return batching.training_batches(Problem(), _hparams(**settings), paths, encoders)


def _hparams(**settings):
    from t2t_lite.settings.config import HParams

    return HParams(batch_size=BATCH_SIZE, max_length=MAX_LENGTH, random_seed=SEED, **settings)


def dropped_out(paths):
    """Returns the trainer's stream with BPE-dropout of 0.1."""
    from t2t_lite.text import vocabulary

    encoder = vocabulary.SentencePieceEncoder(os.path.join(os.path.dirname(paths[0]), "vocab.model"))
    return ours(paths, bpe_dropout=0.1, encoders={"inputs": encoder, "targets": encoder})


def bucketed(paths):
    """Returns tensor2tensor's pipeline: buckets by the longer side's length, each 1.1 times the one before."""
    import tensorflow as tf

    from t2t_lite.data import batching
    from t2t_lite.data.example_reader import ExampleReader
    from t2t_lite.data.problem import Problem

    reader = ExampleReader(Problem(), _hparams(), "train", paths)
    boundaries = [8]
    while boundaries[-1] < MAX_LENGTH:
        boundaries.append(max(boundaries[-1] + 1, int(boundaries[-1] * 1.1)))
    # A bucket contains lengths below its boundary.
    batch_sizes = [BATCH_SIZE // (longest - 1) for longest in boundaries] + [1]
    spec = {key: tf.io.RaggedFeature(tf.int64) for key in ("inputs", "targets")}

    def parse(record):
        example = tf.io.parse_single_example(record, spec)
        return {key: tf.cast(ids, tf.int32) for key, ids in example.items()}

    def longer(example):
        return tf.maximum(tf.size(example["inputs"]), tf.size(example["targets"]))

    return (
        tf.data.Dataset.from_tensor_slices(paths)
        .shuffle(len(paths), seed=SEED)
        .interleave(tf.data.TFRecordDataset, cycle_length=8, block_length=16, num_parallel_calls=tf.data.AUTOTUNE)
        .shuffle(batching.usual_pool_size(reader, _hparams(), MAX_LENGTH), seed=SEED)
        .repeat()
        .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        .filter(lambda example: longer(example) <= MAX_LENGTH)
        .bucket_by_sequence_length(longer, boundaries, batch_sizes)
        .prefetch(tf.data.AUTOTUNE)
    )


STREAMS = {"ours": ours, "bucketed": bucketed, "dropped_out": dropped_out}


class Reader:
    """Reads an iterator like the trainer, and counts tokens, cells and shapes of its batches."""

    def __init__(self, name, paths):
        self.iterator = iter(STREAMS[name](paths))
        self.tokens = self.cells = 0
        self.shapes = set()

    def read(self, seconds):
        """Reads for a number of seconds; returns (tokens, seconds, seconds of CPU time)."""
        import numpy as np

        tokens, wall, cpu = self.tokens, time.perf_counter(), time.process_time()
        end = wall + seconds
        while time.perf_counter() < end:
            batch = next(self.iterator)
            inputs, targets = batch["inputs"].numpy(), batch["targets"].numpy()
            self.tokens += int(np.count_nonzero(inputs)) + int(np.count_nonzero(targets))
            self.cells += inputs.size + targets.size
            self.shapes.add(inputs.shape + targets.shape[1:])
        return self.tokens - tokens, time.perf_counter() - wall, time.process_time() - cpu


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument("--pairs", help="inputs,targets,inputs,targets,…: text files instead of the phrasebook")
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--vocab_size", type=int, default=4_000)
    parser.add_argument("--seconds", type=float, default=4, help="seconds per turn")


def measure(result, flags):
    """Compares the sides' speed, then saves and restores their iterators."""
    this = sys.modules[__name__]
    examples, shards, seconds = (2_000, 2, 0.5) if flags.quick else (flags.examples, flags.shards, flags.seconds)
    paths = work.texts(flags.bench_dir)
    pairs = flags.pairs.split(",") if flags.pairs else [paths["train.en"], paths["train.de"]]
    folder = os.path.join(flags.bench_dir, f"pipeline_{examples}")
    if not glob.glob(f"{glob.escape(folder)}/wmt-train-*"):
        making = {"examples": examples, "shards": shards, "vocab_size": flags.vocab_size}
        alone(this, "make", folder=folder, pairs=pairs, **making)
    compare(this, result, flags, f"{examples:,} examples", rounds=5, folder=folder, seconds=seconds)
    states = {name: alone(this, name, folder=folder) for name in flags.sides}
    for case, figure in (
        ("saving the iterator", "seconds"),
        ("restoring it, with 200 batches", "seconds"),
        ("the saved iterator", "disk_mb"),
    ):
        key = "disk_mb" if figure == "disk_mb" else case
        result.add(case, figure, {name: [figures[key]] for name, figures in states.items()})
    for name, figures in states.items():
        if not figures["same_batches"]:
            result.notes.append(f"**{SIDES[name]}: the restored iterator gave different batches.**")


def side(name, folder, seconds=None, **making):
    """Reads for some seconds per turn, or makes the records, or (without seconds) saves and restores the iterator."""
    if name == "make":
        make(folder, **making)
        print(json.dumps({}))
        return
    paths = sorted(glob.glob(f"{glob.escape(folder)}/wmt-train-*"))
    if seconds is None:
        print(json.dumps(state(name, paths)))
        return
    reader = Reader(name, paths)
    reader.read(seconds / 2)
    print(json.dumps({"warm": True}), flush=True)
    for _ in sys.stdin:
        reader.read(seconds / 5)
        tokens, wall, cpu = reader.read(seconds * 4 / 5)
        figures = {"tokens_per_second": round(tokens / wall), "tokens_per_cpu_second": round(tokens / cpu)}
        figures |= {"fill": round(reader.tokens / reader.cells, 4), "shapes": len(reader.shapes)}
        print(json.dumps({**figures, "peak_mb": round(peak_mb(), 1)}), flush=True)


def state(name, paths):
    """Returns the iterator's checkpoint size and time, and whether the restored iterator yields the same batches."""
    import numpy as np
    import tensorflow as tf

    reader = Reader(name, paths)
    reader.read(5)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        saved = tf.train.Checkpoint(iterator=reader.iterator).save(f"{folder}/it")
        write_time = time.perf_counter()
        restored = iter(STREAMS[name](paths))
        make_time = time.perf_counter()
        tf.train.Checkpoint(iterator=restored).restore(saved).assert_consumed()
        again = [next(restored) for _ in range(200)]
        read_time = time.perf_counter()
        size = sum(os.path.getsize(path) for path in glob.glob(f"{folder}/it*"))
    going_on = [next(reader.iterator) for _ in again]
    same = all(np.array_equal(a[key], b[key]) for a, b in zip(again, going_on, strict=True) for key in a)
    return {
        "disk_mb": round(size / 1e6, 2),
        "saving the iterator": round(write_time - begin, 2),
        "restoring it, with 200 batches": round(read_time - make_time, 2),
        "same_batches": same,
    }


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
