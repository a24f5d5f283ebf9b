"""Measures the paper's Table 1: sequential operations, path lengths, and how time grows with length and size.

python -m benchmarks.table1

One layer of each kind runs a forward pass with batch size 1 on one core, without attention's projections, which the
table does not count. Exponents are slopes of lines through logarithms: of the time against the length n at a fixed size
d, and against d at a fixed n. Sequential operations are the matrix products in the longest chain of the layer's graph.
The longest path is counted in the smallest stack in which the last output depends on the first input (its gradient is
not 0), as the number of products between them. For attention, which looks in both directions, the path from the last
input to the first output is used if it is longer. Recurrent layers are unrolled for these counts.

Paper: self-attention O(n²·d), O(1), O(1); recurrent O(n·d²), O(n), O(n); convolutional O(k·n·d²), O(1), O(log_k n) with
dilations; restricted self-attention O(r·n·d), O(1), O(n/r).
"""

import json
import sys
import time

from benchmarks.harness.command import alone, main, rounds_of
from benchmarks.harness.record import exponent

TITLE = "Table 1 of the paper: complexity, sequential operations, longest paths"
SIDES = {
    "attention": "self-attention",
    "recurrent": "recurrent (Elman)",
    "convolution": "convolutional, k = 3, dilated",
    "restricted": "self-attention restricted to r = 64",
}
NEEDS = {}
KERNEL, NEIGHBORHOOD = 3, 64
SIZE = 128
LENGTHS = {"attention": (1024, 2048, 4096, 8192)}  # other kinds use LONGER, so that fixed costs do not bend their lines
LONGER = (8192, 16384, 32768, 65536)
SIZES, LENGTH = (256, 512, 1024, 2048), 512
COUNTED = (8, 16, 32, 64)  # lengths for which operations are counted; the neighbourhood is then 4


def make_layer(kind, size, index=0, neighborhood=NEIGHBORHOOD):
    """Returns a function of [1, n, size] that runs a layer; `index` is the number of layers before it."""
    import keras

    from t2t_lite.layers import MultiHeadAttention
    from t2t_lite.layers.masks import Visible

    if kind == "recurrent":
        return keras.layers.SimpleRNN(size, return_sequences=True)
    if kind == "convolution":
        return keras.layers.Conv1D(size, KERNEL, padding="causal", dilation_rate=KERNEL**index)
    pattern = {"type": "window", "neighborhood": neighborhood} if kind == "restricted" else "full"
    layer = MultiHeadAttention(1, pattern=pattern)
    layer.build((None, None, size))
    seen = Visible(causal=False)
    return lambda x: layer.attend_sequence(x[:, None], x[:, None], x[:, None], seen, False, False)[0][:, 0]


def seconds_of(kind, shapes, rounds):
    """Returns {(length, size): smallest CPU seconds of a forward pass}; shapes take turns, because machines drift."""
    import tensorflow as tf

    steps, seconds = {}, {}
    for length, size in shapes:
        layer, inputs = make_layer(kind, size), tf.random.normal((1, length, size))
        step = tf.function(lambda x, layer=layer: tf.reduce_sum(layer(x)), autograph=False)
        float(step(inputs))  # traces
        steps[length, size] = step, inputs
    for _ in range(rounds):
        for shape, (step, inputs) in steps.items():
            begun = time.process_time()
            float(step(inputs))
            seconds[shape] = min(seconds.get(shape, float("inf")), time.process_time() - begun)
    return seconds


def stacked(kind, num_layers, length):
    """Returns a function of `length` inputs [1, 4], one per position, that returns the outputs of a stack."""
    import keras
    from keras import ops

    size = 4
    layers = [make_layer(kind, size, i, neighborhood=4) for i in range(num_layers)]
    if kind != "recurrent":

        def run(*inputs):
            x = ops.stack(inputs, axis=1)
            for layer in layers:
                x = layer(x)
            return ops.unstack(x, axis=1)

        return run
    cells = [keras.layers.SimpleRNNCell(size) for _ in layers]

    def run_steps(*inputs):
        for cell in cells:
            state, outputs = [ops.zeros((1, size))], []
            for x in inputs:
                output, state = cell(x, state)
                outputs.append(output)
            inputs = outputs
        return inputs

    return run_steps


def chains(kind, num_layers, length, source=0, target=-1):
    """Counts the products in a stack's longest chain, and in the shortest chain from an input to an output."""
    import tensorflow as tf

    run = stacked(kind, num_layers, length)
    specs = [tf.TensorSpec((1, 4))] * length
    run(*[tf.zeros((1, 4))] * length)  # creates the weights
    graph = tf.function(run, autograph=False).get_concrete_function(*specs).graph
    longest, shortest = {}, {graph.inputs[source].op.name: 0}
    for op in graph.get_operations():
        cost = op.type in ("MatMul", "BatchMatMulV2", "Conv2D", "Einsum")
        before = [x.op.name for x in op.inputs]
        longest[op.name] = cost + max((longest[name] for name in before), default=0)
        reached = [shortest[name] for name in before if name in shortest]
        if reached:
            shortest[op.name] = cost + min(reached)
    return max(longest.values()), shortest[graph.outputs[target].op.name]


def longest_path(kind, length):
    """Returns the number of products between the first and the last position, in the direction with more products."""
    ends = [(0, -1)] + [(-1, 0)] * (kind in ("attention", "restricted"))  # only attention also looks ahead
    return max(chains(kind, layers_between(kind, length, *pair), length, *pair)[1] for pair in ends)


def layers_between(kind, length, source=0, target=-1):
    """Returns the smallest number of layers with which one output (by default the last) depends on one input."""
    import tensorflow as tf

    for num_layers in range(1, length + 1):
        run = stacked(kind, num_layers, length)
        inputs = [tf.random.normal((1, 4), seed=i) for i in range(length)]
        with tf.GradientTape() as tape:
            tape.watch(inputs[source])
            output = tf.reduce_sum(run(*inputs)[target])
        gradient = tape.gradient(output, inputs[source])
        if gradient is not None and float(tf.reduce_max(tf.abs(gradient))) > 0:
            return num_layers
    raise RuntimeError(f"{kind}: {length} layers do not connect {length} positions")


def measure(result, flags):
    """Measures each kind of layer in a separate process."""
    this, rounds = sys.modules[__name__], rounds_of(flags, 5)
    quick = {"lengths": (16, 32, 64, 128), "sizes": (8, 16, 32, 64), "counted": COUNTED[:2]}
    settings = quick if flags.quick else {}
    sides = {kind: alone(this, kind, rounds=rounds, **settings) for kind in flags.sides}
    for figure, label in (("exponent", f"d = {SIZE}"), ("size_exponent", f"n = {LENGTH}")):
        result.add(label, figure, {kind: [figures[figure]] for kind, figures in sides.items()})
    for figure in ("sequential_operations", "path_length"):
        for length in settings.get("counted", COUNTED):
            counts = {kind: [figures[figure][str(length)]] for kind, figures in sides.items()}
            result.add(f"n = {length}", figure, counts)
    for figure, axis in (("seconds", f"n, at d = {SIZE}"), ("seconds_by_size", f"d, at n = {LENGTH}")):
        points = {kind: [(int(x), y) for x, y in figures[figure].items()] for kind, figures in sides.items()}
        result.add_growth("forward pass of a layer", "seconds", axis, points)


def side(name, lengths=None, sizes=SIZES, counted=COUNTED, rounds=5):
    """Prints the seconds by length and by size, their exponents, and the counts by length."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    lengths = lengths or LENGTHS.get(name, LONGER)
    by_shape = seconds_of(name, [*((n, SIZE) for n in lengths), *((LENGTH, d) for d in sizes)], rounds)
    seconds = {n: by_shape[n, SIZE] for n in lengths}
    by_size = {d: by_shape[LENGTH, d] for d in sizes}
    found = {"seconds": seconds, "seconds_by_size": by_size}
    found |= {"exponent": exponent(seconds), "size_exponent": exponent(by_size)}
    found |= {"sequential_operations": {}, "path_length": {}}
    for length in counted:
        found["sequential_operations"][length], _ = chains(name, 1, length)
        found["path_length"][length] = longest_path(name, length)
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
