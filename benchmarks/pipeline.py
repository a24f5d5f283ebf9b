"""The training stream against tf.data's `bucket_by_sequence_length`: tokens a second, fill, memory, state.

python benchmarks/pipeline.py make FOLDER --pairs train.en,train.de,dev.en,dev.de    # 1,000,000 examples in 100 shards
python benchmarks/pipeline.py measure 'FOLDER/wmt-train-*' [--rounds 9] [--sides ours,bucketed] > result.jsonl

The sides take turns in one process, and ratios are medians over neighbouring turns. Tokens are those of both sides
without padding. A turn's first fifth is not counted: batches made while the other side had its turn. Memory, and the
time to the first batch, are those of fresh processes. A shared machine falsifies wall time less than it seems to help:
tokens a second of CPU time, all threads together, stand beside it.
"""

import argparse
import glob
import gzip
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time

BATCH_SIZE, MAX_LENGTH, SEED = 4096, 256, 1


def make(folder, pairs, examples, shards, vocab_size):
    """Learns a vocabulary from the pairs of files, and writes records of pairs drawn from them."""
    import tensorflow as tf

    from t2t_lite.data import records
    from t2t_lite.text import subwords, vocabulary

    sides = [], []
    for number, path in enumerate(pairs.split(",")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            sides[number % 2].extend(line.rstrip("\n") for line in file)
    os.makedirs(folder, exist_ok=True)
    subwords.train_sentencepiece([*sides[0], *sides[1]], f"{folder}/vocab", vocab_size)
    encoder = vocabulary.SentencePieceEncoder(f"{folder}/vocab.model")
    serialized = [
        records.serialize({"inputs": [*encoder.encode(a), 1], "targets": [*encoder.encode(b), 1]})
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
    from t2t_lite.config import HParams

    return HParams(batch_size=BATCH_SIZE, max_length=MAX_LENGTH, random_seed=SEED, **settings)


def dropped_out(paths):
    """Returns the trainer's stream with BPE-dropout of 0.1."""
    from t2t_lite.text import vocabulary

    encoder = vocabulary.SentencePieceEncoder(os.path.join(os.path.dirname(paths[0]), "vocab.model"))
    return ours(paths, bpe_dropout=0.1, encoders={"inputs": encoder, "targets": encoder})


def bucketed(paths):
    """Returns tensor2tensor's way: single examples into buckets by their longer side, boundaries 1.1 times apart."""
    import tensorflow as tf

    from t2t_lite.data import batching
    from t2t_lite.data.example_reader import ExampleReader
    from t2t_lite.data.problem import Problem

    reader = ExampleReader(Problem(), _hparams(), "train", paths)
    boundaries = [8]
    while boundaries[-1] < MAX_LENGTH:
        boundaries.append(max(boundaries[-1] + 1, int(boundaries[-1] * 1.1)))
    # A bucket holds lengths below its boundary.
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
        .shuffle(batching._pool_size(reader, _hparams(), MAX_LENGTH), seed=SEED)
        .repeat()
        .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        .filter(lambda example: longer(example) <= MAX_LENGTH)
        .bucket_by_sequence_length(longer, boundaries, batch_sizes)
        .prefetch(tf.data.AUTOTUNE)
    )


SIDES = {"ours": ours, "bucketed": bucketed, "dropped_out": dropped_out}


class Side:
    """One iterator, read as the trainer does, and what was counted of its batches."""

    def __init__(self, name, paths):
        self._iterator = iter(SIDES[name](paths))
        self.tokens = self.cells = self.batches = 0
        self.shapes = set()

    def read(self, seconds):
        """Reads for so long; returns (tokens a second, tokens a second of CPU time)."""
        import numpy as np

        tokens, wall, cpu = self.tokens, time.perf_counter(), time.process_time()
        end = wall + seconds
        while time.perf_counter() < end:
            batch = next(self._iterator)
            inputs, targets = batch["inputs"].numpy(), batch["targets"].numpy()
            self.tokens += int(np.count_nonzero(inputs)) + int(np.count_nonzero(targets))
            self.cells += inputs.size + targets.size
            self.batches += 1
            self.shapes.add(inputs.shape + targets.shape[1:])
        tokens = self.tokens - tokens
        return tokens / (time.perf_counter() - wall), tokens / (time.process_time() - cpu)

    def facts(self):
        """Returns the fill, the tokens a batch and the number of shapes of all that was read."""
        return {
            "fill": round(self.tokens / self.cells, 4),
            "tokens_a_batch": round(self.tokens / self.batches),
            "batches": self.batches,
            "shapes": len(self.shapes),
        }


def compare(paths, names, rounds, seconds):
    """Prints the medians of the sides, and of the ratios of the first side to each other one, turn by turn."""
    sides = {name: Side(name, paths) for name in names}
    turns = []
    for side in sides.values():
        side.read(seconds / 2)
    for _ in range(rounds):
        turn = {}
        for name, side in sides.items():
            side.read(seconds / 5)
            turn[name] = side.read(seconds * 4 / 5)
        turns.append(turn)
        print(json.dumps({name: [round(rate) for rate in rates] for name, rates in turn.items()}), file=sys.stderr)
    for name, side in sides.items():
        result = {"side": name}
        for i, kind in enumerate(("tokens_a_second", "tokens_a_cpu_second")):
            rates = [turn[name][i] for turn in turns]
            result[kind] = round(statistics.median(rates))
            result[f"{kind}_range"] = [round(min(rates)), round(max(rates))]
            result[f"ratio_of_{kind}"] = round(
                statistics.median(turn[names[0]][i] / turn[name][i] for turn in turns), 2
            )
        print(json.dumps({**result, **side.facts()}), flush=True)


def first_batch(name, paths):
    """Returns the seconds from the paths to the first batch, and TensorFlow's import."""
    begin = time.perf_counter()
    import tensorflow as tf

    import t2t_lite.data.batching  # noqa: F401

    tf.constant(0)
    imported, cpu = time.perf_counter(), time.process_time()
    next(iter(SIDES[name](paths)))
    return {
        "seconds": round(time.perf_counter() - imported, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "import_seconds": round(imported - begin, 2),
    }


def peak(name, paths):
    """Returns the peak resident set in MB: of TensorFlow with a small data set, and of a side read and saved."""
    import tensorflow as tf

    small = tf.data.Dataset.range(10).map(lambda x: x + 1, num_parallel_calls=2).prefetch(2)
    list(small)
    alone = _peak_megabytes()
    side = Side(name, paths)
    side.read(20)
    read = _peak_megabytes()
    with tempfile.TemporaryDirectory() as folder:
        tf.train.Checkpoint(iterator=side._iterator).save(f"{folder}/it")
    return {"tensorflow_alone": alone, "read": read, "read_and_saved": _peak_megabytes(), "batches": side.batches}


def _peak_megabytes():
    # Not getrusage: a process begins with the peak of the one that started it.
    with open("/proc/self/status") as file:
        return next(round(int(line.split()[1]) * 1024 / 1e6) for line in file if line.startswith("VmHWM"))


def state(name, paths):
    """Returns size and time of the iterator's checkpoint, and whether the restored one goes on alike."""
    import numpy as np
    import tensorflow as tf

    side = Side(name, paths)
    side.read(5)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        saved = tf.train.Checkpoint(iterator=side._iterator).save(f"{folder}/it")
        written = time.perf_counter()
        restored = iter(SIDES[name](paths))
        made = time.perf_counter()
        tf.train.Checkpoint(iterator=restored).restore(saved).assert_consumed()
        again = [next(restored) for _ in range(200)]
        read = time.perf_counter()
        size = sum(os.path.getsize(path) for path in glob.glob(f"{folder}/it*"))
    going_on = [next(side._iterator) for _ in again]
    same = all(np.array_equal(a[key], b[key]) for a, b in zip(again, going_on, strict=True) for key in a)
    return {
        "megabytes": round(size / 1e6, 1),
        "save_seconds": round(written - begin, 2),
        "restore_seconds_with_200_batches": round(read - made, 2),
        "same_batches": same,
    }


def in_fresh_process(function, name, pattern, times):
    """Returns what a function of this script returns in a process of its own."""
    command = [sys.executable, __file__, "measure", pattern, "--child", f"{function.__name__},{name},{times}"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main():
    """Runs what the arguments say and prints JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("folder")
    making.add_argument("--pairs", required=True, help="inputs,targets,inputs,targets,…: packed by gzip")
    making.add_argument("--examples", type=int, default=1_000_000)
    making.add_argument("--shards", type=int, default=100)
    making.add_argument("--vocab_size", type=int, default=32_000)
    measuring = commands.add_parser("measure")
    measuring.add_argument("pattern")
    measuring.add_argument("--rounds", type=int, default=9)
    measuring.add_argument("--seconds", type=float, default=10, help="of a turn")
    measuring.add_argument("--sides", default="ours,bucketed", help="of ours, bucketed, dropped_out")
    measuring.add_argument("--only", default="compare,first_batch,peak,state")
    measuring.add_argument("--child", help="used by the script itself")
    options = parser.parse_args()
    if options.command == "make":
        make(options.folder, options.pairs, options.examples, options.shards, options.vocab_size)
        return
    paths = sorted(glob.glob(options.pattern))
    if options.child:
        function, name, times = options.child.split(",")
        print(json.dumps(globals()[function](name, paths * int(times))))
        return
    import tensorflow as tf

    print(
        json.dumps({"machine": platform.machine(), "cores": os.cpu_count(), "tensorflow": tf.__version__}), flush=True
    )
    names, only = options.sides.split(","), options.only.split(",")
    if "compare" in only:
        compare(paths, names, options.rounds, options.seconds)
    for name in names:
        for function, times in ((first_batch, 1), (first_batch, 10), (peak, 1), (state, 1)):
            if function.__name__ in only:
                result = in_fresh_process(function, name, options.pattern, times)
                print(json.dumps({function.__name__: name, "corpora": times, **result}), flush=True)


if __name__ == "__main__":
    main()
