"""Measures whether memory or time grows over a long run of training steps or translation requests.

python -m benchmarks.growth
python -m benchmarks.growth --train_steps=10000 --requests=2000

The trained model is tiny, so that its steps are short and any overhead would show. Batches have many different shapes;
PyTorch's nn.Transformer gets the same batches. A request translates the next four sentences with beam 4. It is answered
by a Translator or by Hugging Face's generate with the same weights. The resident memory and the median time are
recorded for each window of steps or requests. The slope is computed on the second half, because caches fill up in the
first half.
"""

import json
import os
import statistics
import sys
import time

from benchmarks import formats, training
from benchmarks.harness import work
from benchmarks.harness.command import alone, main
from benchmarks.harness.turns import resident_mb
from t2t_lite.corpora.plain_text import read_lines

TITLE = "Memory and time over many steps and requests"
SIDES = {"ours": "t2t_lite", "peer": "PyTorch nn.Transformer, Hugging Face generate"}
NEEDS = {"peer": ["torch", "transformers"]}
POINTS, SENTENCES = 12, 4
BATCH_SIZE, MAX_LENGTH = 256, 64
TINY = {"hidden_size": 32, "filter_size": 64, "num_heads": 4, "num_hidden_layers": 1}


def add_flags(parser):
    """Adds this benchmark's flags."""
    work.add_flags(parser)
    parser.add_argument("--train_steps", type=int, default=960)
    parser.add_argument("--requests", type=int, default=96)


def measure(result, flags):
    """Measures the sides one after another; if they took turns, each would run only for short periods."""
    this = sys.modules[__name__]
    train_steps, requests = (24, 12) if flags.quick else (flags.train_steps, flags.requests)
    pattern = os.path.join(work.data_dir(flags.bench_dir), "*-train-*")
    path = os.path.join(flags.bench_dir, f"batches_growth_{train_steps}.npz")
    training.make(path, pattern, BATCH_SIZE, train_steps, MAX_LENGTH)
    windows_by_side = {
        name: alone(this, name, batches=pattern if name == "ours" else path, steps=train_steps) for name in flags.sides
    }
    follow(result, "training of a tiny model", "steps", windows_by_side, "cpu_ms_per_token")
    folder = os.path.join(flags.bench_dir, "growth")
    exports = formats.make_exports(flags, folder, ["hugging_face"] if "peer" in flags.sides else [], 1000)
    if "hugging_face" in exports["refused"]:
        result.notes.append(f"Hugging Face cannot represent this model: {exports['refused']['hugging_face']}")
        flags.sides.remove("peer")
    windows_by_side = {name: alone(this, name, folder=folder, requests=requests) for name in flags.sides}
    follow(result, f"translation, {SENTENCES} sentences a request", "requests", windows_by_side, "milliseconds")


def follow(result, case, x, windows_by_side, time_figure):
    """Adds the memory and time curves of all sides to the result."""
    for figure in ("resident_mb", time_figure):
        result.add_growth(case, figure, x, {name: figures[figure] for name, figures in windows_by_side.items()})


def side(name, batches=None, steps=None, folder=None, requests=None):
    """Prints {figure: [[x, y] of each window]}."""
    if batches:
        print(json.dumps(windows(training_calls(name, batches, steps), steps, "cpu_ms_per_token", time.process_time)))
    else:
        print(json.dumps(windows(request_calls(name, folder, requests), requests, "milliseconds", time.perf_counter)))


def training_calls(name, batches, steps):
    """Yields (function without arguments that trains on the next batch, number of its target tokens).

    Our side reads the trainer's stream over the records `batches`; PyTorch reads the same batches from a file.
    """
    if name == "ours":
        from t2t_lite import registry
        from t2t_lite.training.training_data import StepBatches

        step = training.new_step(registry.hparams("transformer_tiny").override_from_dict(TINY))
        stream = training.stream(batches, BATCH_SIZE, MAX_LENGTH).take(steps)
        for number, batch in enumerate(stream, start=1):
            step_batch = StepBatches([batch], number)
            yield (
                (lambda step_batch=step_batch: float(step(step.place(step_batch))["objective"]["targets"])),
                step_batch.counts["targets"],
            )
    else:
        step = training.peer_step("torch", TINY)
        for pair in training.load(batches):
            yield (lambda pair=pair: step(*pair)), int((pair[1] != 0).sum())


def request_calls(name, folder, requests):
    """Yields (function without arguments that translates the next sentences, 1)."""
    load = formats.load_translator if name == "ours" else formats.load_hugging_face
    translate = load(os.path.join(folder, "translator" if name == "ours" else "hugging_face"), SENTENCES)
    texts = [*read_lines(os.path.join(folder, "inputs"))]
    for number in range(requests):
        some = [texts[(number * SENTENCES + at) % len(texts)] for at in range(SENTENCES)]
        yield (lambda some=some: translate(some)), 1


def windows(calls, count, figure, clock):
    """Makes all calls; returns {figure: [[calls so far, median milliseconds per unit]], "resident_mb": …}."""
    size, times, points = max(1, count // POINTS), [], {figure: [], "resident_mb": []}
    for number, (call, units) in enumerate(calls, start=1):
        started = clock()
        call()
        times.append(1000 * (clock() - started) / units)
        if number % size == 0:
            points[figure].append([number, round(statistics.median(times), 4)])
            points["resident_mb"].append([number, round(resident_mb(), 1)])
            times = []
    return points


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
