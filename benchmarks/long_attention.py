"""Measures how the time and memory that causal attention patterns need grow with the length, forward and backward.

python -m benchmarks.long_attention

One layer without projections is run with batch size 1 and 4 heads of size 64. Blocks and strides have a length of 128
or of √n; only with √n is the number of products of order n^1.5. Time is the CPU time of the process on all cores;
memory is the growth of the peak resident set. Each kind of attention runs in a separate process for all lengths, and
its exponents are the slopes of lines through the logarithms.
"""

import json
import math
import sys
import time

from benchmarks.harness.command import alone, main, rounds_of
from benchmarks.harness.record import exponent
from benchmarks.harness.turns import peak_mb

TITLE = "Patterns of attention over long sequences"
SIDES = {
    "full": "full",
    "window": "window of √n",
    "local_1d": "local_1d, blocks of √n",
    "local_128": "local_1d, blocks of 128",
    "strided": "strided by √n",
    "fixed": "fixed, blocks of √n, c = 1",
    "relative": "strided by √n, relative_v2 of 128",
}
NEEDS = {}
NUM_HEADS, HEAD_SIZE = 4, 64
LENGTHS = (1024, 2048, 4096, 8192)


def pattern_of(kind, length):
    """Returns the layer's arguments `score` and `pattern`."""
    near = 128 if kind == "local_128" else math.isqrt(length)
    score = {"type": "relative_v2", "max_relative_position": 128} if kind == "relative" else "dot_product"
    kind = {"relative": "strided", "local_128": "local_1d"}.get(kind, kind)
    options = {"window": {"neighborhood": near}, "local_1d": {"block_length": near}, "full": {}}
    return {"score": score, "pattern": {"type": kind, **options.get(kind, {"stride": near})}}


def make_step(kind, length):
    """Returns a function without arguments that runs the layer forward and backward once."""
    import t2t_lite  # noqa: F401, I001  (first: it sets TensorFlow up)
    import tensorflow as tf

    from t2t_lite import layers
    from t2t_lite.layers.masks import Visible

    layer = layers.MultiHeadAttention(NUM_HEADS, **pattern_of(kind, length))
    layer.build((None, None, NUM_HEADS * HEAD_SIZE))
    parts = [tf.random.normal((1, NUM_HEADS, length, HEAD_SIZE)) for _ in range(3)]

    @tf.function(autograph=False, input_signature=[tf.TensorSpec((None, NUM_HEADS, None, HEAD_SIZE))] * 3)
    def step(*parts):
        with tf.GradientTape() as tape:
            tape.watch(parts)
            output, _ = layer.attend_sequence(*parts, Visible(causal=True), True, False)
            loss = tf.reduce_sum(output * output)
        return [tf.reduce_sum(gradient) for gradient in tape.gradient(loss, parts)]

    return lambda: [float(gradient) for gradient in step(*parts)]


def measured(step, rounds):
    """Returns the smallest CPU time and wall-clock time of a call, in seconds."""
    times = []
    for _ in range(rounds):
        cpu, wall = time.process_time(), time.perf_counter()
        step()
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    return [min(each) for each in zip(*times, strict=True)]


def measure(result, flags):
    """Measures each kind of attention in a separate process."""
    this, rounds = sys.modules[__name__], rounds_of(flags, 3)
    lengths = [256, 512] if flags.quick else [*LENGTHS]
    found = {name: alone(this, name, lengths=lengths, rounds=rounds) for name in flags.sides}
    for length in lengths:
        for unit in ("seconds", "peak_mb"):
            rows = {name: [numbers[unit][str(length)]] for name, numbers in found.items()}
            result.add(f"{length} ids", unit, rows)
    for unit in ("exponent", "memory_exponent"):
        result.add(f"{lengths[0]} to {lengths[-1]} ids", unit, {name: [own[unit]] for name, own in found.items()})


def side(name, lengths=LENGTHS, rounds=3):
    """Prints CPU seconds and memory by length, with their exponents."""
    make_step(name, 64)()  # allocates TensorFlow's and oneDNN's buffers before the measurement
    seconds, peaks, begin = {}, {}, peak_mb()
    for length in sorted(lengths):  # in ascending order, because the peak of memory never falls
        step = make_step(name, length)
        step()
        peaks[length] = peak_mb() - begin
        seconds[length] = measured(step, rounds)[0]
    exponents = {"exponent": exponent(seconds), "memory_exponent": exponent(peaks)}
    print(json.dumps({"seconds": seconds, "peak_mb": peaks, **exponents}))


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
