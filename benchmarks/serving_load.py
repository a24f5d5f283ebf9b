"""An export under load: many threads, hostile texts among the others. Wrong answers, memory, latency, throughput.

python benchmarks/serving_load.py make FOLDER --run RUN --text test.en --count 10000
python benchmarks/serving_load.py load FOLDER --threads 32 --batches 1,8,32 --counts 1000,2000,10000 > result.jsonl
python benchmarks/serving_load.py table result.jsonl

`make` exports the run, draws texts (sentences whole, cut and joined; one in twenty is hostile: random bytes, control
characters, other scripts, 100,000 characters …) and translates them offline, by Translator; what is not UTF-8 after the
replacement by U+FFFD that TensorFlow defines. `load` is a process of its own, without t2t_lite. It loads the export as
TensorFlow Serving does, by the session loader, and runs its tensors by name from `--threads` threads, each of which
sends its next request when it has the answer to the last one. That is done for each of `--batches` texts a request,
with the first so many texts of `--counts`, by default all.

Every answer is compared. One is wrong if its text or its `truncated` differs; where the two outputs' scores are within
1e-5 of each other it is a tie, counted apart. Memory is the process's resident set: after `--warm_up` texts of each
batch size, at most, and in the end.
"""

import argparse
import base64
import itertools
import json
import os
import random
import statistics
import sys
import threading
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.turns import machine, resident_bytes

HOSTILE = [
    lambda draw: b"",
    lambda draw: b" \t\r\n" + "\u2003\u3000".encode(),
    lambda draw: draw.randbytes(draw.randint(1, 60)),  # hardly ever UTF-8
    lambda draw: bytes(range(32)) + b" two dogs \x7f\x00 run",
    lambda draw: b"a man \xed\xa0\x80 and \xc3( a \xf4\x90\x80\x80 woman \xe2\x82",
    lambda draw: "שני כלבים רצים \u202eعلى الشاطئ\u202c today".encode(),
    lambda draw: "二匹の犬が 개가 달린다 собаки τρέχουν".encode(),
    lambda draw: "👩‍👩‍👧‍👦🏳️‍🌈 a dog 🐕‍🦺".encode() * draw.randint(1, 4),
    lambda draw: b"<s></s><unk><0x0A>\x1b[31m %s {} ${HOME} '; --",
    lambda draw: "e\u0301\u0327\u20dd".encode() * draw.randint(1, 40),
    lambda draw: "\ufeff\u200b\u00ad\ufffe\U0010ffff a dog".encode(),
]
LONG = [
    lambda draw: b"a" * 100_000,
    lambda draw: b"two dogs run on the beach . " * 3_600,
    lambda draw: draw.randbytes(50_000),
]
TIE = 1e-5


def texts_of(sentences, count, seed=1):
    """Returns `count` texts, bytes: in ten thousand of them about 500 are hostile, and 12 long."""
    draw = random.Random(seed)
    found = []
    for i in range(count):
        sentence, kind = draw.choice(sentences), draw.random()
        if i % 1000 == 500 or i in (200, 800):  # all kinds within the warm-up
            found.append(LONG[i // 300 % len(LONG)](draw))
        elif kind < 0.05:
            found.append(draw.choice(HOSTILE)(draw))
        elif kind < 0.2:
            words = sentence.split()
            found.append(" ".join(words[: draw.randint(1, len(words))]).encode())
        elif kind < 0.3:
            found.append(" ".join([sentence, *draw.choices(sentences, k=draw.randint(1, 4))]).encode())
        else:
            found.append(sentence.encode())
    return found


def make(folder, run, text, count):
    """Writes the export, the texts and what they are offline."""
    import tensorflow as tf

    from t2t_lite.decoding.translator import Translator
    from t2t_lite.export.saved_model import export_saved_model

    with open(text, encoding="utf-8", newline="\n") as file:
        texts = texts_of(file.read().split("\n")[:-1], count)
    os.makedirs(folder)
    translator = Translator.load(run)
    start = time.perf_counter()
    path = export_saved_model(translator, os.path.join(folder, "export"))
    print(f"exported in {time.perf_counter() - start:.1f} s", file=sys.stderr)
    readable = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace").numpy()
    answers = translator.translate([one.decode() for one in readable], max_input_length=512)
    with open(os.path.join(folder, "texts.jsonl"), "w") as file:
        for one, answer in zip(texts, answers, strict=True):
            expected = {"text": answer.text, "score": answer.score, "truncated": bool(answer.truncated)}
            file.write(json.dumps({"b64": base64.b64encode(one).decode(), **expected}) + "\n")
    os.symlink(os.path.relpath(path, folder), os.path.join(folder, "version"))


def load(folder, threads, batches, counts, warm_up):
    """Prints what the loading took, then figures for each batch size, then of memory."""
    with open(os.path.join(folder, "texts.jsonl")) as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        row["bytes"] = base64.b64decode(row.pop("b64"))
    start = time.perf_counter()
    ask = loaded(os.path.realpath(os.path.join(folder, "version")))
    print(json.dumps({"load_s": round(time.perf_counter() - start, 2), "threads": threads, **machine()}), flush=True)
    for size in batches:
        run(ask, rows[:warm_up], size, threads)
    memory = Memory()
    for size, count in zip(batches, counts or [len(rows)] * len(batches), strict=True):
        print(json.dumps({"batch": size, **run(ask, rows[:count], size, threads), **memory.now()}), flush=True)
    print(json.dumps(memory.stop()))


def loaded(path):
    """Returns a function of a list of bytes -> [(text, score, truncated)], which runs an export as a server does."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (SentencePiece's operations)

    graph = tf.Graph()
    with graph.as_default():
        session = tf.compat.v1.Session(graph=graph)
        signature = tf.compat.v1.saved_model.load(session, ["serve"], path).signature_def["serving_default"]
    fetches = [signature.outputs[name].name for name in ("outputs", "scores", "truncated")]
    feed = signature.inputs["inputs"].name
    assert not [name for name in sys.modules if name.startswith("t2t_lite")]
    return lambda texts: list(zip(*session.run(fetches, {feed: texts}), strict=True))


def run(ask, rows, size, threads):
    """Sends all rows, `size` in a request, from many threads; returns figures."""
    starts = range(0, len(rows), size)
    turns, latencies, counts, failures = itertools.count(), [], {"wrong": 0, "ties": 0}, []

    def work():
        while (turn := next(turns)) < len(starts) and not failures:
            some = rows[starts[turn] : starts[turn] + size]
            start = time.perf_counter()
            try:
                answers = ask([row["bytes"] for row in some])
            except Exception as error:  # an export has an answer to everything
                failures.append(error)
                return
            latencies.append(time.perf_counter() - start)
            for row, answer in zip(some, answers, strict=True):
                if kind := judged(row, answer):
                    counts[kind] += 1
                    print(kind, row, answer, file=sys.stderr)

    start = time.perf_counter()
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    seconds = time.perf_counter() - start
    cuts = statistics.quantiles(latencies, n=100, method="inclusive")
    figures = {"sentences": len(rows), "requests": len(latencies), **counts}
    figures |= {f"p{n}_ms": round(1000 * cuts[n - 1], 1) for n in (50, 95, 99)}
    return {**figures, "sentences_s": round(len(rows) / seconds, 1), "seconds": round(seconds, 1)}


def judged(row, answer):
    """Returns None for a right answer, "wrong", or "ties"."""
    text, score, truncated = answer
    if text.decode() == row["text"] and bool(truncated) == row["truncated"]:
        return None
    return "ties" if abs(float(score) - row["score"]) <= TIE * max(1, abs(row["score"])) else "wrong"


class Memory:
    """Watches the process's resident set from now on."""

    def __init__(self):
        self._first = self._peak = resident_bytes() / 1e6
        self._ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while not self._ended.wait(0.1):
            self._peak = max(self._peak, resident_bytes() / 1e6)

    def now(self):
        """Returns the figure in MB."""
        return {"resident_mb": round(resident_bytes() / 1e6, 1)}

    def stop(self):
        """Returns the figures after the warm-up, at most and in the end, and how much more these are."""
        self._ended.set()
        last = resident_bytes() / 1e6
        figures = {"warm_mb": round(self._first, 1), "peak_mb": round(self._peak, 1), "last_mb": round(last, 1)}
        growth = {"peak_growth": self._peak / self._first - 1, "last_growth": last / self._first - 1}
        return figures | {name: round(value, 4) for name, value in growth.items()}


def table(path):
    """Prints the figures of `load` as a table in Markdown."""
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    print("| sentences a request | requests | p50 ms | p95 ms | p99 ms | sentences a second | wrong | ties |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        if "batch" in row:
            names = ("batch", "requests", "p50_ms", "p95_ms", "p99_ms", "sentences_s", "wrong", "ties")
            print("| " + " | ".join(f"{row[name]:,}" for name in names) + " |")
    first, memory = rows[0], rows[-1]
    print(f"\nLoaded in {first['load_s']} s; {first['threads']} threads. Resident memory:", end="")
    print(f" {memory['warm_mb']:,.0f} MB after the warm-up,", end="")
    print(f" at most {memory['peak_mb']:,.0f} MB ({memory['peak_growth']:+.1%}),", end="")
    print(f" in the end {memory['last_mb']:,.0f} MB ({memory['last_growth']:+.1%}).")


def numbers(text):
    """Returns a list of int."""
    return [int(number) for number in text.split(",")]


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("make")
    one.add_argument("folder")
    one.add_argument("--run", required=True)
    one.add_argument("--text", required=True)
    one.add_argument("--count", type=int, default=10_000)
    one = commands.add_parser("load")
    one.add_argument("folder")
    one.add_argument("--threads", type=int, default=32)
    one.add_argument("--batches", type=numbers, default=[1, 8, 32])
    one.add_argument("--counts", type=numbers)
    one.add_argument("--warm_up", type=int, default=1_000, help="texts of each batch size")
    commands.add_parser("table").add_argument("path")
    arguments = vars(parser.parse_args())
    {"make": make, "load": load, "table": table}[arguments.pop("command")](**arguments)


if __name__ == "__main__":
    main()
