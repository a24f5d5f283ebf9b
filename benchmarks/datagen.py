"""Measures the speed and memory of t2t-datagen on a synthetic corpus with natural statistics.

python -m benchmarks.datagen
python -m benchmarks.datagen --seed_files=a.en.gz,a.de.gz --pairs=5000000 --vocab_size=32000

The corpus has the words and the lengths of the seed sentences (by default those of `work.py`). Additional words are
made by joining two seed words, so that new words keep appearing as in real text. Frequencies follow Zipf's law with two
exponents, as in real text. The command then runs in a separate process. The resident memory of the command and its
workers is read ten times per second. The report gives the peak of the main process, of a worker, and of all processes
together. In the last of these figures, shared pages are counted only once (PSS).
"""

import contextlib
import gzip
import os
import shutil
import subprocess
import sys
import time

import numpy as np

from benchmarks.harness import work
from benchmarks.harness.command import main

TITLE = "t2t-datagen on a synthetic corpus"
SIDES = {"ours": "t2t-datagen"}
NEEDS = {}
TYPES = 3_000_000
FREQUENT = 10_000
BLOCK = 100_000  # pairs


def write_side(path, seed_file, pairs, seed):
    """Writes one side of the corpus. Line lengths follow the seed's order, so that the sides of a pair fit together."""
    with opened(seed_file) as file:
        lines = [line.split() for line in file]
    lengths = np.array([len(line) for line in lines])
    words, counts = np.unique([word for line in lines for word in line], return_counts=True)
    words = words[np.argsort(-counts, kind="stable")]
    draw = np.random.default_rng(seed)
    long = np.array([word for word in words if word.isalpha() and len(word) > 3])
    missing = TYPES - len(words)
    firsts, seconds = (long[draw.integers(0, len(long), missing)] for _ in range(2))
    words = [*words.tolist(), *(first + second for first, second in zip(firsts, seconds, strict=True))]
    # Exponent 1 for frequent words, 1.8 for other words (Ferrer i Cancho and Solé 2001: 1 and about 2).
    ranks = np.arange(len(words)) + 2.7
    cumulative = np.cumsum(np.where(ranks < FREQUENT, 1 / ranks, FREQUENT**0.8 / ranks**1.8))
    with open(path + ".incomplete", "w", encoding="utf-8", newline="\n") as file:
        for begin in range(0, pairs, BLOCK):
            of_lines = lengths[np.arange(begin, min(begin + BLOCK, pairs)) % len(lengths)]
            ranks = np.searchsorted(cumulative, draw.random(int(of_lines.sum())) * cumulative[-1])
            text = [words[rank] for rank in ranks.tolist()]
            ends = np.cumsum(of_lines).tolist()
            starts = [0, *ends[:-1]]
            file.writelines(" ".join(text[start:end]) + "\n" for start, end in zip(starts, ends, strict=True))
    os.rename(path + ".incomplete", path)


def children(pid):
    """Returns the ids of a process and all its descendants."""
    pids = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            for child in file.read().split():
                pids += children(int(child))
    return pids


def memory(pid):
    """Returns (resident bytes, bytes that count shared pages proportionally) of one process."""
    sizes = dict.fromkeys(("Rss", "Pss"), 0)
    with open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.split(":")[0] in sizes:
                sizes[line.split(":")[0]] = int(line.split()[1]) * 1024
    return sizes["Rss"], sizes["Pss"]


def run(command, log):
    """Runs a command; returns its seconds and peak memory: the total, the main process, and one worker."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, text=True)
    main = worker = total = 0
    while process.poll() is None:
        sums = 0
        # A process may end while its memory is being read; the sum is then only a lower bound.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for pid in children(process.pid):
                rss, pss = memory(pid)
                sums += pss
                main, worker = (max(main, rss), worker) if pid == process.pid else (main, max(worker, rss))
        total = max(total, sums)
        time.sleep(0.1)
    if process.returncode:
        raise RuntimeError(f"t2t-datagen failed with status {process.returncode}; see {log.name}")
    peaks = {"peak_main_mb": main / 1e6, "peak_worker_mb": worker / 1e6, "peak_mb": total / 1e6}
    return {"seconds": round(time.monotonic() - begin, 1), **peaks}


def opened(path):
    """Opens a text file that may be compressed with gzip."""
    return (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", newline="\n")


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument("--seed_files", help="inputs,targets: files of real text, plain or gzip")
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--vocab_size", type=int, default=8_000)
    parser.add_argument("--datagen_flags", default="", help="additional flags for t2t-datagen, separated by spaces")


def measure(result, flags):
    """Writes the corpus unless its files already exist, and runs t2t-datagen."""
    pairs, paths_by_name = 5_000 if flags.quick else flags.pairs, work.texts(flags.bench_dir)
    seeds = flags.seed_files.split(",") if flags.seed_files else [paths_by_name["train.en"], paths_by_name["train.de"]]
    folder = os.path.join(flags.bench_dir, "datagen")
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, f"{pairs}.{language}") for language in ("en", "de")]
    for number, (seed_file, path) in enumerate(zip(seeds, paths, strict=True)):
        if not os.path.exists(path):
            write_side(path, seed_file, pairs, seed=number)
    data_dir = os.path.join(folder, f"data-{pairs}")
    shutil.rmtree(data_dir, ignore_errors=True)
    command = [
        work.installed("t2t-datagen"),
        "--problem=translate_own",
        f"--train_files={','.join(paths)}",
        f"--dev_files={paths_by_name['dev.en']},{paths_by_name['dev.de']}",
        f"--vocab_size={flags.vocab_size}",
        f"--data_dir={data_dir}",
        *flags.datagen_flags.split(),
    ]
    with open(os.path.join(folder, f"{pairs}.log"), "w") as log:
        figures = run(command, log)
    figures["pairs_per_second"] = pairs / figures["seconds"]
    result.add_turns(f"{pairs:,} pairs, all of it", {"ours": [figures]})


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
