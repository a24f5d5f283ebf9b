"""Time and memory of the kinds of self-attention: one layer, forward and backward.

Usage: python benchmarks/attention.py [--rounds N] > result.json

For each comparison the two layers take turns in one process, and the median of the ratios of neighbouring turns is
given. `keras` is keras.layers.MultiHeadAttention; `_bare` layers are without their projections. Memory is the growth of
the peak resident set in a process of its own that runs one layer.
"""

import argparse
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import time

HIDDEN_SIZE, NUM_HEADS, NEIGHBORHOOD, MAX_RELATIVE_POSITION = 512, 8, 64, 20


def make_step(kind, batch, length):
    """Returns a function without arguments that runs forward and backward of a layer once."""
    import t2t_lite  # noqa: F401, I001  (first: it sets TensorFlow up)
    import keras
    import tensorflow as tf

    from t2t_lite import layers

    class Bare:
        """Attention without its projections: splits into heads and merges them."""

        def _add_projection(self, role, input_size, output_size):
            pass

        def project(self, x, role):
            batch, length = tf.shape(x)[0], tf.shape(x)[2 if role == "output" else 1]
            if role == "output":
                return tf.reshape(tf.transpose(x, (0, 2, 1, 3)), (batch, length, HIDDEN_SIZE))
            return tf.transpose(tf.reshape(x, (batch, length, NUM_HEADS, HIDDEN_SIZE // NUM_HEADS)), (0, 2, 1, 3))

    class BareFull(Bare, layers.MultiHeadAttention):
        """Full attention alone."""

    class BareRestricted(Bare, layers.RestrictedAttention):
        """Restricted attention alone."""

    layer = {
        "full_bare": lambda: BareFull(NUM_HEADS),
        "restricted_bare": lambda: BareRestricted(NUM_HEADS, neighborhood=NEIGHBORHOOD),
        "keras": lambda: keras.layers.MultiHeadAttention(NUM_HEADS, HIDDEN_SIZE // NUM_HEADS, use_bias=False),
        "full": lambda: layers.MultiHeadAttention(NUM_HEADS),
        "restricted": lambda: layers.RestrictedAttention(NUM_HEADS, neighborhood=NEIGHBORHOOD),
        "relative": lambda: layers.RelativeAttention(NUM_HEADS, MAX_RELATIVE_POSITION),
        "relative_values": lambda: layers.RelativeAttention(
            NUM_HEADS, MAX_RELATIVE_POSITION, add_relative_to_values=True
        ),
    }[kind]()
    shape = (batch, length, HIDDEN_SIZE)
    layer.build(*([shape, shape] if kind == "keras" else [shape]))
    x = tf.random.normal(shape)
    weights = [w.value for w in layer.trainable_weights]

    # Unknown sizes, as in training.
    @tf.function(autograph=False, input_signature=[tf.TensorSpec((None, None, HIDDEN_SIZE))])
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = layer(x, x) if kind == "keras" else layer(x)
            loss = tf.reduce_sum(output * output)
        return [tf.reduce_sum(tf.convert_to_tensor(g)) for g in tape.gradient(loss, [x, *weights])]

    return lambda: [float(g) for g in step(x)]


def seconds(step):
    """Returns the duration of a call."""
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def compare(first, second, batch, length, rounds):
    """Returns the medians of both layers' seconds and of the ratio first / second, turn by turn."""
    steps = [make_step(kind, batch, length) for kind in (first, second)]
    for step in steps:
        step(), step()
    turns = [(seconds(steps[0]), seconds(steps[1])) for _ in range(rounds)]
    return {
        "layers": [first, second],
        "batch": batch,
        "length": length,
        "seconds": [round(statistics.median(t), 4) for t in zip(*turns, strict=True)],
        "ratio": round(statistics.median(a / b for a, b in turns), 3),
    }


def peak_megabytes(kind, batch, length):
    """Returns how much a step adds to the peak resident set of a fresh process."""
    command = [sys.executable, __file__, "--peak", f"{kind},{batch},{length}"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_peak(kind, batch, length):
    """Prints what `peak_megabytes` returns."""
    make_step(kind, 1, 64)()  # TensorFlow itself, its thread pools and oneDNN's buffers
    step = make_step(kind, batch, length)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step(), step()
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def growth(kind, lengths, rounds):
    """Returns the exponent of time against length: the slope of a line through the logarithms."""
    steps = {n: make_step(kind, 1, n) for n in lengths}
    for step in steps.values():
        step()
    times = {n: statistics.median(seconds(step) for _ in range(rounds)) for n, step in steps.items()}
    x, y = [math.log(n) for n in lengths], [math.log(times[n]) for n in lengths]
    slope = statistics.linear_regression(x, y).slope
    return {"layer": kind, "seconds": {n: round(t, 4) for n, t in times.items()}, "exponent": round(slope, 3)}


def main():
    """Runs all comparisons and prints them as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peak", help="used by the script itself")
    options = parser.parse_args()
    if options.peak:
        kind, batch, length = options.peak.split(",")
        measure_peak(kind, int(batch), int(length))
        return
    print(json.dumps({"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}))
    for length in (4096, 8192):
        print(json.dumps(compare("full", "restricted", 1, length, options.rounds)), flush=True)
    print(json.dumps(compare("keras", "restricted", 1, 4096, options.rounds)), flush=True)
    print(json.dumps(compare("full_bare", "restricted_bare", 1, 4096, options.rounds)), flush=True)
    print(json.dumps(compare("restricted", "full", 8, 512, options.rounds)), flush=True)
    for kind in ("relative", "relative_values"):
        print(json.dumps(compare(kind, "full", 16, 256, options.rounds)), flush=True)
    print(json.dumps(growth("restricted", [1024, 2048, 4096, 8192, 16384], options.rounds)), flush=True)
    peaks = {kind: peak_megabytes(kind, 1, 4096) for kind in ("full", "restricted")}
    print(json.dumps({"length": 4096, "peak_megabytes": peaks, "ratio": round(peaks["full"] / peaks["restricted"], 2)}))


if __name__ == "__main__":
    main()
