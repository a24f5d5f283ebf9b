"""Tests an export under load from many threads, with hostile texts: wrong answers, memory, latency, throughput.

python -m benchmarks.serving_load
python -m benchmarks.serving_load --run=RUN --text=test.en --threads=32 --batches=1,8,32 --counts=1000,2000,10000

The run is exported. The texts are randomly sampled sentences, parts of sentences and joined sentences; one in twenty is
hostile (random bytes, control characters, other scripts, 100,000 characters …). The texts are translated offline by
Translator, with invalid UTF-8 replaced by U+FFFD as in TensorFlow. A separate process, without the package's layers,
loads the export with the session loader, like TensorFlow Serving, and runs its tensors by name from `--threads`
threads. Each thread sends its next request as soon as it has the answer to the previous one. The test is repeated for
each number of texts per request in `--batches`, with the number of texts in `--counts`.

Every answer is compared with the offline translation. An answer is wrong if its text or its `truncated` differs, unless
the answers are tied, that is, unless their scores differ by at most 1e-5. Memory is the resident set of the process,
recorded at each request after one warm-up request per batch size and thread.
"""

import base64
import itertools
import json
import os
import random
import shutil
import statistics
import sys
import threading
import time

from benchmarks.harness import work
from benchmarks.harness.command import alone, main
from benchmarks.harness.turns import resident_mb
from t2t_lite.corpora.plain_text import read_lines

TITLE = "An export under load from many threads"
SIDES = {"session": "SavedModel in a session"}
NEEDS = {}
HOSTILE = [
    lambda draw: b"",
    lambda draw: b" \t\r\n" + "\u2003\u3000".encode(),
    lambda draw: draw.randbytes(draw.randint(1, 60)),  # hardly ever valid UTF-8
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
    """Returns `count` texts, bytes; of ten thousand texts, about 500 are hostile and 12 are long."""
    draw = random.Random(seed)
    texts = []
    for i in range(count):
        sentence, kind = draw.choice(sentences), draw.random()
        if i % 1000 == 500 or i in (200, 800):  # so that the warm-up includes texts of every kind
            texts.append(LONG[i // 300 % len(LONG)](draw))
        elif kind < 0.05:
            texts.append(draw.choice(HOSTILE)(draw))
        elif kind < 0.2:
            words = sentence.split()
            texts.append(" ".join(words[: draw.randint(1, len(words))]).encode())
        elif kind < 0.3:
            texts.append(" ".join([sentence, *draw.choices(sentences, k=draw.randint(1, 4))]).encode())
        else:
            texts.append(sentence.encode())
    return texts


def add_flags(parser):
    """Adds this benchmark's flags."""
    work.add_flags(parser)
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--batches", default="1,32", help="numbers of texts per request, separated by commas")
    parser.add_argument("--counts", default="100,400", help="number of texts, for each of --batches")


def measure(result, flags):
    """Exports the model, then sends requests with each batch size."""
    counts, threads = ("4,8", 2) if flags.quick else (flags.counts, flags.threads)
    batches, counts = [int(n) for n in flags.batches.split(",")], [int(n) for n in counts.split(",")]
    folder = prepare(flags, max(counts))
    this = sys.modules[__name__]
    session = alone(this, "session", folder=folder, batches=batches, counts=counts, threads=threads)
    result.add("loading", "seconds", {"session": [session["load_seconds"]]})
    for size, figures in zip(batches, session["figures"], strict=True):
        points = figures.pop("memory")
        case = f"{size} {'text' if size == 1 else 'texts'} a request, {threads} threads"
        result.add_turns(case, {"session": [figures]})
        if len(points) >= 4:
            result.add_growth(case, "resident_mb", "requests", {"session": points})


def prepare(flags, count):
    """Makes the export and the texts in a separate process; returns the folder that contains them."""
    run, text, _ = work.model_and_texts(flags)
    folder = os.path.join(flags.bench_dir, "serving_load")
    alone(sys.modules[__name__], "make", folder=folder, run=run, text=text, count=count)
    return folder


def side(name, folder, batches=(), counts=(), threads=None, **making):
    """Makes the export; or loads it and prints the figures for each batch size."""
    if name == "make":
        make(folder, **making)
        print(json.dumps({}))
        return
    rows = load_rows(folder)
    start = time.perf_counter()
    ask = loaded(os.path.realpath(os.path.join(folder, "version")))
    load_seconds, figures = round(time.perf_counter() - start, 2), []
    for size in batches:
        run(ask, rows[: size * threads], size, threads)
    for size, count in zip(batches, counts, strict=True):
        points = []
        figures.append(run(ask, rows[:count], size, threads, points))
        figures[-1]["memory"] = points[:: max(1, len(points) // 50)]
    print(json.dumps({"load_seconds": load_seconds, "figures": figures}))


def load_rows(folder):
    """Returns the texts with their offline translations: [{"bytes", "text", "score", "truncated"}]."""
    with open(os.path.join(folder, "texts.jsonl")) as file:
        rows = [json.loads(line) for line in file]
    return [row | {"bytes": base64.b64decode(row["b64"])} for row in rows]


def make(folder, run, text, count):
    """Writes the export, the texts and their offline translations."""
    import tensorflow as tf

    from t2t_lite.decoding.translator import Translator
    from t2t_lite.export.saved_model import export_saved_model

    texts = texts_of([*read_lines(text)], count)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    translator = Translator.load(run)
    path = export_saved_model(translator, os.path.join(folder, "export"))
    readable = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace").numpy()
    options = {"max_input_length": 512, "split_sentences": "never"}  # as in the export
    answers = translator.translate([text_bytes.decode() for text_bytes in readable], **options)
    with open(os.path.join(folder, "texts.jsonl"), "w") as file:
        for text_bytes, answer in zip(texts, answers, strict=True):
            expected = {"text": answer.text, "score": answer.score, "truncated": bool(answer.truncated)}
            file.write(json.dumps({"b64": base64.b64encode(text_bytes).decode(), **expected}) + "\n")
    os.symlink(os.path.relpath(path, folder), os.path.join(folder, "version"))


def loaded(path):
    """Loads an export as a server does; returns a function that maps a list of bytes to [(text, score, truncated)]."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (SentencePiece's operations)

    graph = tf.Graph()
    with graph.as_default():
        session = tf.compat.v1.Session(graph=graph)
        signature = tf.compat.v1.saved_model.load(session, ["serve"], path).signature_def["serving_default"]
    fetches = [signature.outputs[name].name for name in ("outputs", "scores", "truncated")]
    feed = signature.inputs["inputs"].name
    assert "t2t_lite.layers" not in sys.modules  # an export does not need the package's code
    return lambda texts: list(zip(*session.run(fetches, {feed: texts}), strict=True))


def run(ask, rows, size, threads, points=None):
    """Sends all rows from many threads, with `size` rows per request; returns figures.

    Args:
        ask: function that maps a list of bytes to [(text, score, truncated)].
        rows: list of dict, from `load_rows`.
        size: int, texts per request.
        threads: int.
        points: list or None, to which (requests so far, memory in MB) is appended after each request.
    """
    starts = range(0, len(rows), size)
    turns, latencies, counts, failures = itertools.count(), [], {"wrong": 0, "ties": 0}, []

    def work():
        while (turn := next(turns)) < len(starts) and not failures:
            some = rows[starts[turn] : starts[turn] + size]
            start = time.perf_counter()
            try:
                answers = ask([row["bytes"] for row in some])
            except Exception as error:  # every error counts, since an export must answer every request
                failures.append(error)
                return
            latencies.append(time.perf_counter() - start)
            if points is not None:
                points.append((len(latencies), resident_mb()))
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
    several = latencies if len(latencies) > 1 else 2 * latencies  # `quantiles` needs at least two values
    cuts = statistics.quantiles(several, n=100, method="inclusive")
    figures = {"sentences_per_second": round(len(rows) / seconds, 1), "wrong": counts["wrong"]}
    percentiles = {"median_ms": 50, "p95_ms": 95, "p99_ms": 99}
    return figures | {name: round(1000 * cuts[n - 1], 1) for name, n in percentiles.items()}


def judged(row, answer):
    """Judges an answer: returns None if it is right, otherwise "wrong" or "ties"."""
    text, score, truncated = answer
    if text.decode() == row["text"] and bool(truncated) == row["truncated"]:
        return None
    return "ties" if abs(float(score) - row["score"]) <= TIE * max(1, abs(row["score"])) else "wrong"


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
