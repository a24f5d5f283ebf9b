"""Speed and memory of t2t-datagen on an invented corpus of WMT14's proportions.

Usage: python benchmarks/datagen.py --seed_files=a.en.gz,a.de.gz --pairs=5000000 --folder=F [-- FLAGS OF T2T-DATAGEN]

The corpus has the lengths of the seed's sentences and its words; beyond them words are put together of two, so that new
ones keep coming as in real text. Their frequencies follow Zipf's law with two exponents, as those of real text do. It
is written once to F/<pairs>.en and .de. The command then runs in a process of its own; every second the resident memory
of it and of its workers is looked at: the largest of each, and the largest sum, in which pages that they share count
once (PSS). The result is JSON on stdout.
"""

import argparse
import contextlib
import gzip
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time

import numpy as np

TYPES = 3_000_000
FREQUENT = 10_000
BLOCK = 100_000  # pairs


def write_side(path, seed_file, pairs, seed):
    """Writes one side; the seed's lines with their order of lengths, so that the two sides of a pair go together."""
    with gzip.open(seed_file, "rt", encoding="utf-8", newline="\n") as file:
        lines = [line.split() for line in file]
    lengths = np.array([len(line) for line in lines])
    words, counts = np.unique([word for line in lines for word in line], return_counts=True)
    words = words[np.argsort(-counts, kind="stable")]
    draw = np.random.default_rng(seed)
    long = np.array([word for word in words if word.isalpha() and len(word) > 3])
    missing = TYPES - len(words)
    firsts, seconds = (long[draw.integers(0, len(long), missing)] for _ in range(2))
    words = [*words.tolist(), *(first + second for first, second in zip(firsts, seconds, strict=True))]
    # 1 among the frequent words, 1.8 among the others (Ferrer i Cancho and Solé 2001: 1 and about 2).
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
    found = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            for child in file.read().split():
                found += children(int(child))
    return found


def memory(pid):
    """Returns (resident bytes, bytes with shared pages counted in part) of one process."""
    found = dict.fromkeys(("Rss", "Pss"), 0)
    with open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.split(":")[0] in found:
                found[line.split(":")[0]] = int(line.split()[1]) * 1024
    return found["Rss"], found["Pss"]


def run(command, log):
    """Runs a command; returns its seconds, CPU seconds, and peaks of memory."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, text=True)
    main = worker = total = 0
    while process.poll() is None:
        sums = 0
        # A process may end while it is looked at; what was added up until then is a lower bound, and no peak.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for pid in children(process.pid):
                rss, pss = memory(pid)
                sums += pss
                main, worker = (max(main, rss), worker) if pid == process.pid else (main, max(worker, rss))
        total = max(total, sums)
        time.sleep(1)
    return {
        "status": process.returncode,
        "seconds": round(time.monotonic() - begin, 1),
        "peak_rss_main_mb": main >> 20,
        "peak_rss_worker_mb": worker >> 20,
        "peak_pss_all_mb": total >> 20,
    }


def main():
    """Writes the corpus where it is missing, runs the command, prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed_files", required=True, help="inputs,targets: packed files of real text")
    parser.add_argument("--pairs", type=int, default=5_000_000)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--vocab_size", type=int, default=32_000)
    parser.add_argument("flags", nargs="*", help="after --: more flags of t2t-datagen")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    paths = [os.path.join(arguments.folder, f"{arguments.pairs}.{language}") for language in ("en", "de")]
    dev = [os.path.join(arguments.folder, f"dev.{language}") for language in ("en", "de")]
    for number, (seed_file, path, dev_path) in enumerate(zip(arguments.seed_files.split(","), paths, dev, strict=True)):
        if not os.path.exists(path):
            write_side(path, seed_file, arguments.pairs, seed=number)
        with gzip.open(seed_file, "rb") as packed, open(dev_path, "wb") as file:
            file.writelines(packed.readlines()[:1000])
    data_dir = os.path.join(arguments.folder, f"data-{arguments.pairs}")
    shutil.rmtree(data_dir, ignore_errors=True)
    command = [
        os.path.join(os.path.dirname(sys.executable), "t2t-datagen"),
        "--problem=translate_own",
        f"--train_files={','.join(paths)}",
        f"--dev_files={','.join(dev)}",
        f"--vocab_size={arguments.vocab_size}",
        f"--data_dir={data_dir}",
        *arguments.flags,
    ]
    log_path = os.path.join(arguments.folder, f"{arguments.pairs}.log")
    with open(log_path, "w") as log:
        result = run(command, log)
    with open(log_path) as file:
        ends = [line.strip() for line in file if re.search(r"a second$", line.strip())]
    bytes_ = {key: os.path.getsize(path) for key, path in zip(("inputs", "targets"), paths, strict=True)}
    facts = {"machine": platform.platform(), "cores": os.cpu_count(), "pairs": arguments.pairs, "bytes": bytes_}
    print(json.dumps({**facts, "flags": arguments.flags, **result, "log": ends}, indent=1))


if __name__ == "__main__":
    main()
