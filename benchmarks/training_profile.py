"""Measures how much of a training step's time goes into matrix products and other kinds of operations.

python -m benchmarks.training_profile
python -m benchmarks.training_profile --threads=0 --rounds=6

The model is the paper's base, with the batch of `training.py`, in float32 and mixed_bfloat16. All matrix products in
the step's graph, forward and backward, are also computed in isolation, one at a time, with the same shapes, transposes
and dtypes. This gives the rate that the machine can reach. `share` is the time of the isolated products divided by the
time of the step; it says which share of this rate the step reaches. Each of the two times is the shortest CPU time over
the turns, which are taken in one process. Other processes affect CPU time less than wall time, but it is best if no
other process runs.

The step's other operations are summed by kind, in milliseconds of TensorFlow's profiler. For each operation, the
shortest time over the turns is used, without the operations inside it. With one thread, the default, these times are
also CPU times.
"""

import collections
import glob
import json
import os
import sys
import tempfile
import time

from benchmarks import training
from benchmarks.harness import work
from benchmarks.harness.command import alone, main, rounds_of

TITLE = "Where the time of a training step goes"
SIDES = {"ours": "float32", "mixed": "mixed_bfloat16"}
NEEDS = {}
# An operation belongs to the first kind that has a word that occurs in the operation's type. The word MatMul also
# matches oneDNN's fused operations.
KINDS = {
    "matrix products": ("MatMul",),
    "dropout's random numbers": ("Random",),
    "optimizer": ("Apply", "L2Loss"),
    "look-ups": ("Gather", "Segment"),
    "softmax, loss, sums and means": ("Softmax", "Sum", "Max", "Mean", "OneHot", "BiasAddGrad"),
    "casts": ("Cast",),
    "transposes and copies": ("Transpose", "Einsum", "Concat", "Pad", "Slice", "Pack", "Bitcast", "Reshape"),
    "elementwise": ("Mul", "Add", "Sub", "Select", "Square", "Rsqrt", "Relu", "Equal", "Neg", "Div", "Log", "Assign"),
    "other": ("",),
}


def kind_of(operation):
    """Returns the kind, a key of `KINDS`, of an operation's type."""
    return next(kind for kind, words in KINDS.items() if any(word in operation for word in words))


def products(model, hparams, batch):
    """Counts the matrix products of a training step on a batch.

    Returns:
        {(type, shape of a, shape of b, whether a is transposed, whether b is transposed, dtype): count}.
    """
    import tensorflow as tf

    from t2t_lite.training.losses import cross_entropy

    def gradients(batch):
        with tf.GradientTape() as tape:
            loss, _ = cross_entropy(model(batch, training=True), batch["targets"], hparams.label_smoothing)
        return tape.gradient(loss, [v.value for v in model.trainable_variables], unconnected_gradients="zero")

    signature = [{name: tf.TensorSpec(ids.shape, ids.dtype) for name, ids in batch.items()}]
    traced = tf.function(gradients, input_signature=signature, autograph=False).get_concrete_function()
    counts = collections.Counter()
    for op in traced.graph.get_operations():
        if "MatMul" in op.type:
            flags = ("transpose_a", "transpose_b") if op.type == "MatMul" else ("adj_x", "adj_y")
            shapes = [tuple(x.shape) for x in op.inputs]
            counts[op.type, *shapes, *map(op.get_attr, flags), op.inputs[0].dtype.name] += 1
    return counts


def operation(kind, a, b, turn_a, turn_b, dtype):
    """Returns (function that computes one of `products`, number of its floating-point operations)."""
    import tensorflow as tf

    x, y = (tf.cast(tf.random.normal(shape), dtype) for shape in (a, b))
    turned = {"transpose_a": turn_a, "transpose_b": turn_b} if kind == "MatMul" else {"adj_x": turn_a, "adj_y": turn_b}
    names = {"a": x, "b": y} if kind == "MatMul" else {"x": x, "y": y}
    run = lambda: getattr(tf.raw_ops, kind)(**names, **turned)  # noqa: E731
    return run, 2 * int(tf.size(run())) * a[-2 if turn_a else -1]


def cpu_seconds(function, *args):
    """Calls a function; returns the CPU time of all threads in seconds."""
    started = time.process_time()
    function(*args)
    return time.process_time() - started


def self_times(folder):
    """Returns {"name:type" of an operation: milliseconds} from a trace, not counting the operations nested in it."""
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    (path,) = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
    with open(path, "rb") as file:
        (plane,) = [plane for plane in XSpace.FromString(file.read()).planes if plane.name == "/host:CPU"]
    milliseconds = collections.Counter()
    for line in plane.lines:
        if not line.name.startswith("tf_"):  # other threads belong to Python, which only waits
            continue
        outer = []
        for event in sorted(line.events, key=lambda e: (e.offset_ps, -e.duration_ps)):
            name = plane.event_metadata[event.metadata_id].name
            while outer and outer[-1][1] <= event.offset_ps:
                outer.pop()
            if outer:
                milliseconds[outer[-1][0]] -= event.duration_ps / 1e9
            milliseconds[name] += event.duration_ps / 1e9
            outer.append((name, event.offset_ps + event.duration_ps))
    return milliseconds


def profile(name, size, batches, rounds):
    """Profiles a step of one side; returns the figures to print."""
    from t2t_lite import registry

    hparams = (
        registry.hparams("transformer_base_v1")
        .override_from_dict(training.SIZES[size])
        .parse(training.HPARAMS.get(name, ""))
    )
    step = training.new_step(hparams)
    import tensorflow as tf  # after t2t_lite, which enables oneDNN

    from t2t_lite.training.training_data import StepBatches

    batch = {name: tf.constant(ids) for name, ids in zip(("inputs", "targets"), batches[0], strict=True)}
    placed = step.place(StepBatches([batch], 0))
    counts = products(step.model, hparams, batch)
    alone, flops = {}, 0
    operations = {product: operation(*product) for product in counts}
    for product, (_, product_flops) in operations.items():
        flops, alone[product] = flops + counts[product] * product_flops, float("inf")
    step_seconds, times = float("inf"), {}
    for turn in range(rounds + 2):  # the first two warm up
        seconds = cpu_seconds(lambda: float(step(placed)["objective"]["targets"]))
        if turn >= 2:
            step_seconds = min(step_seconds, seconds)
        for product, (run, _) in operations.items():
            alone[product] = min(alone[product], cpu_seconds(run))
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            with tf.profiler.experimental.Profile(folder):
                float(step(placed)["objective"]["targets"])
            for name, milliseconds in self_times(folder).items():
                times[name] = min(times.get(name, float("inf")), milliseconds)
    kinds = collections.Counter()
    for name, milliseconds in times.items():
        kinds[kind_of(name.rpartition(":")[2])] += milliseconds
    products_seconds = sum(counts[product] * alone[product] for product in counts)
    return {
        "cpu_seconds": step_seconds,
        "products": products_seconds,
        "share": products_seconds / step_seconds,
        "gflops_per_cpu_second": flops / products_seconds / 1e9,
        "kinds": kinds,
    }


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument("--threads", type=int, default=1, help="TensorFlow's threads; 0: its default")


def measure(result, flags):
    """Profiles a step in both dtypes."""
    size, batch_size = ("small", 240) if flags.quick else ("base", 2400)
    path = os.path.join(flags.bench_dir, f"batches_{batch_size}.npz")
    training.make(path, os.path.join(work.data_dir(flags.bench_dir), "*-train-*"), batch_size, 1)
    settings = {"path": path, "size": size, "threads": flags.threads, "rounds": rounds_of(flags, 2)}
    profiles = {name: alone(sys.modules[__name__], name, **settings) for name in flags.sides}
    for case, name, figure in (
        ("one step", "cpu_seconds", "cpu_seconds"),
        ("its matrix products alone", "products", "cpu_seconds"),
        ("its matrix products alone", "share", "share"),
        ("its matrix products alone", "gflops_per_cpu_second", "gflops_per_cpu_second"),
    ):
        result.add(case, figure, {side: [figures[name]] for side, figures in profiles.items()})
    for kind in KINDS:
        result.add(kind, "milliseconds", {side: [figures["kinds"].get(kind, 0)] for side, figures in profiles.items()})


def side(name, path, size, threads, rounds):
    """Profiles a step in one dtype, and prints the figures."""
    if threads:
        os.environ |= {"TF_NUM_INTRAOP_THREADS": str(threads), "TF_NUM_INTEROP_THREADS": str(threads)}
    print(json.dumps(profile(name, size, training.load(path), rounds)))


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
