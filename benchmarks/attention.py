"""Measures how much time and memory each type of self-attention needs, forward and backward through one layer.

python -m benchmarks.attention

In each comparison, two layers take turns in one process. `keras` is keras.layers.MultiHeadAttention; layers whose names
end in `_bare` have no projections. Memory is measured as the growth of the peak resident set in a separate process that
runs one layer. The exponent is the slope of the logarithm of time against the logarithm of length.
"""

import json
import statistics
import sys
import time

from benchmarks.harness.command import alone, main, rounds_of
from benchmarks.harness.record import exponent
from benchmarks.harness.turns import peak_mb

TITLE = "Kinds of self-attention, one layer"
SIDES = {
    "restricted": "restricted, 64 neighbours",
    "full": "full",
    "keras": "keras MultiHeadAttention",
    "restricted_bare": "restricted, no projections",
    "full_bare": "full, no projections",
    "relative": "relative, 20 positions",
    "relative_values": "relative, values too",
}
NEEDS = {}
# Comparisons: two layers, batch size, length.
PAIRS = (
    ("restricted", "full", 1, 4096),
    ("restricted", "full", 1, 8192),
    ("restricted", "keras", 1, 4096),
    ("restricted_bare", "full_bare", 1, 4096),
    ("restricted", "full", 8, 512),
    ("relative", "full", 16, 256),
    ("relative_values", "full", 16, 256),
)
HIDDEN_SIZE, NUM_HEADS, NEIGHBORHOOD, MAX_RELATIVE_POSITION = 512, 8, 64, 20


def make_step(kind, batch, length):
    """Returns a function without arguments that runs a layer forward and backward once."""
    import t2t_lite  # noqa: F401, I001  (first: it sets TensorFlow up)
    import keras
    import tensorflow as tf

    from t2t_lite import layers

    class Bare:
        """Attention without projections, which only splits and merges the heads."""

        def _add_projection(self, role, input_size, output_size):
            pass

        def project(self, x, role):
            batch, length = tf.shape(x)[0], tf.shape(x)[2 if role == "output" else 1]
            if role == "output":
                return tf.reshape(tf.transpose(x, (0, 2, 1, 3)), (batch, length, HIDDEN_SIZE))
            return tf.transpose(tf.reshape(x, (batch, length, NUM_HEADS, HIDDEN_SIZE // NUM_HEADS)), (0, 2, 1, 3))

    class BareFull(Bare, layers.MultiHeadAttention):
        """Full attention without projections."""

    class BareRestricted(Bare, layers.RestrictedAttention):
        """Restricted attention without projections."""

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

    # The sizes are unknown when the function is traced, as in training.
    @tf.function(autograph=False, input_signature=[tf.TensorSpec((None, None, HIDDEN_SIZE))])
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = layer(x, x) if kind == "keras" else layer(x)
            loss = tf.reduce_sum(output * output)
        return [tf.reduce_sum(tf.convert_to_tensor(g)) for g in tape.gradient(loss, [x, *weights])]

    return lambda: [float(g) for g in step(x)]


def seconds(step):
    """Returns the duration of a call in seconds."""
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def growth(kind, lengths, rounds):
    """Returns how time grows with length: the exponent of a power law that is fitted to the logarithms."""
    steps = {n: make_step(kind, 1, n) for n in lengths}
    for step in steps.values():
        step()
    times = {n: statistics.median(seconds(step) for _ in range(rounds)) for n, step in steps.items()}
    return {"exponent": exponent(times)}


def measure(result, flags):
    """Compares pairs of layers, then measures memory and how time grows with length."""
    this, rounds = sys.modules[__name__], rounds_of(flags, 3)
    for first, second, batch, length in PAIRS[4:] if flags.quick else PAIRS:
        if {first, second} <= set(flags.sides):
            print(f"attention: {first} and {second}, length {length}", file=sys.stderr)
            figures = alone(this, first, other=second, batch=batch, length=length, rounds=rounds)
            result.add(f"{batch} x {length} ids", "seconds", figures)
    length = 256 if flags.quick else 4096
    memory = [name for name in ("restricted", "full", "keras") if name in flags.sides]
    if memory:
        peaks = {name: [alone(this, name, batch=1, length=length)["peak_mb"]] for name in memory}
        result.add(f"one step, 1 x {length} ids, above the process itself", "peak_mb", peaks)
    if "restricted" in flags.sides:
        lengths = [128, 256] if flags.quick else [1024, 2048, 4096, 8192, 16384]
        figures = alone(this, "restricted", lengths=lengths, rounds=rounds)
        result.add(f"{lengths[0]} to {lengths[-1]} ids", "exponent", {"restricted": [figures["exponent"]]})


def side(name, batch=1, length=None, other=None, rounds=None, lengths=None):
    """Prints the seconds per turn of two layers, or the memory or the exponent of one layer."""
    if lengths:
        print(json.dumps(growth(name, lengths, rounds)))
    elif other:
        steps = {kind: make_step(kind, batch, length) for kind in (name, other)}
        for step in [*steps.values()] * 2:
            step()
        turns = [{kind: seconds(step) for kind, step in steps.items()} for _ in range(rounds)]
        print(json.dumps({kind: [turn[kind] for turn in turns] for kind in steps}))
    else:
        make_step(name, 1, 64)()  # allocates TensorFlow's and oneDNN's buffers before the measurement
        step = make_step(name, batch, length)
        resident = peak_mb()
        step(), step()
        print(json.dumps({"peak_mb": peak_mb() - resident}))


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
