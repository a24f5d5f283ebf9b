"""Prints what a training step and a search step would copy between a GPU and the host, from their graphs.

python -m benchmarks.placement
python -m benchmarks.placement --graphs=training,beam --operations

A small Transformer is traced on the CPU, and its graph is placed as if there were one GPU: see
`benchmarks.harness.placer`. Copies to the host are expensive, because the host waits for them; a loop waits at each
step. The column "in" names the enclosing functions, branches and loops. Every call of a function is counted separately,
but the body of a loop is counted only once.
"""

import argparse
import collections
import functools
import os
import sys

from benchmarks.harness.command import chosen
from t2t_lite.cli.console import table
from t2t_lite.errors import UserError

GRAPHS = {
    "training": "a training step, float32",
    "mixed": "a training step, mixed_bfloat16",
    "compiled": "a training step, xla_compile: operations outside XLA",
    "beam": "beam search, 4 beams",
    "greedy": "greedy search",
    "sampling": "sampling, top_k=10",
}
SIZES = "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,attention_dropout=0.1,relu_dropout=0.1"
VOCAB_SIZE = 1000


def training_step(settings="", **arguments):
    """Returns the graph of a training step.

    Args:
        settings: str, hyperparameters to set in addition to `SIZES`, such as ",dtype_policy=mixed_bfloat16".
        **arguments: arguments of `TrainStep`.
    """
    from benchmarks.harness.placer import on_card
    from benchmarks.harness.steps import new_step
    from t2t_lite import registry

    hparams = registry.hparams("transformer_tiny").parse(f"{SIZES},layer_prepostprocess_dropout=0.1{settings}")
    make = functools.partial(registry.model("transformer").from_hparams, hparams, VOCAB_SIZE)
    with on_card():
        step = new_step(make, hparams, **arguments)
    return step.graph()


def search(method, model="transformer", seeds=False, penalizes_prompts=False, **options):
    """Returns the graph of a search, traced without static shapes.

    Args:
        method: `beam_search` or `sample`.
        model: str, name of the model.
        seeds: bool, whether the method takes seeds.
        penalizes_prompts: bool, whether ids that already occur in outputs or inputs are penalized.
        **options: arguments of `SearchOptions`.
    """
    import tensorflow as tf

    from benchmarks.harness.placer import on_card
    from t2t_lite import registry
    from t2t_lite.decoding.search.rules import rules_of
    from t2t_lite.settings.search_options import SearchOptions

    with on_card():
        model = registry.model(model).from_hparams(registry.hparams("transformer_tiny").parse(SIZES), VOCAB_SIZE)
    options = SearchOptions(sampling=seeds, **options)
    shapes = {"inputs": [None, None], "limit": [None]} | ({"seeds": [None, 2]} if seeds else {})
    arguments = {name: tf.TensorSpec(shape, tf.int32) for name, shape in shapes.items()}

    def run(features):
        rules = {"repetition_penalty": 1.2, "prompts": features["inputs"]} if penalizes_prompts else {}
        return method(model, **features, options=options, rules=rules_of(options, **rules))

    traced = tf.function(run, autograph=False)
    return traced.get_concrete_function(arguments).graph


def graph_of(name):
    """Returns the graph of one of `GRAPHS`."""
    from t2t_lite.decoding.search.beam_search import beam_search
    from t2t_lite.decoding.search.sampling import sample

    make = {
        "training": training_step,
        "mixed": lambda: training_step(",dtype_policy=mixed_bfloat16"),
        "compiled": lambda: training_step(xla_compile=True),
        "beam": lambda: search(beam_search, beam_size=4),
        "greedy": lambda: search(beam_search, beam_size=1),
        "sampling": lambda: search(sample, seeds=True, top_k=10),
    }
    return make[name]()


def print_counts(rows, *titles):
    """Prints rows of texts as a table: each distinct row once, with its count, most frequent first."""
    counts = collections.Counter(rows).most_common()
    lines = [("count", *titles), *((str(count), *row) for row, count in counts)]
    print(*table(lines, left=range(len(titles) + 1)), sep="\n")


def main(argv=None):
    """Prints the tables of all requested graphs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default=",".join(GRAPHS), help="default: %(default)s")
    parser.add_argument("--operations", action="store_true", help="also print which operations run on which device")
    flags = parser.parse_args(argv)
    try:
        names = chosen("--graphs", flags.graphs, GRAPHS)
    except UserError as error:
        parser.error(str(error))
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    import tensorflow as tf

    from benchmarks.harness.placer import placed

    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    for name in names:
        operations, crossings = placed(graph_of(name))
        wheres = collections.Counter(op.where for op in operations)
        print(f"\n{GRAPHS[name]}: {', '.join(f'{count} operations on {where}' for where, count in wheres.items())}")
        if flags.operations:
            print_counts(((op.type, op.where) for op in operations), "operation", "where")
        rows = ((c.to, c.type, c.dtype, ", ".join(c.takers), " > ".join(c.path)) for c in crossings)
        print_counts(sorted(rows, reverse=True), "to", "made by", "dtype", "for", "in")


if __name__ == "__main__":
    sys.exit(main())
