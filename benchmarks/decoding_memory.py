"""Compares the memory of a beam search with the minimum: the weights plus the final keys and values.

python -m benchmarks.decoding_memory
python -m benchmarks.decoding_memory --rows=16 --length=128 --sides=ours,xla

The model is the paper's base with 32,000 ids, in float32. One batch of equally long sources is searched with beam 4; no
hypothesis ends before the limit, which is the length of the sources. The memory of the process is read twice: after the
same search with a tiny model, which includes libraries, threads and TensorFlow's reserves, and at the peak of the
actual search.
"""

import json
import sys
import time

from benchmarks.harness.command import alone, main, rounds_of
from benchmarks.harness.turns import peak_mb, resident_mb

TITLE = "Memory of a beam search over the arithmetic minimum"
SIDES = {"ours": "t2t_lite", "xla": "t2t_lite, compiled"}
DEFAULT_SIDES = ("ours",)
NEEDS = {}
BEAM, VOCAB_SIZE = 4, 32_000
BASE = {"hidden_size": 512, "filter_size": 2048, "num_heads": 8, "num_encoder_layers": 6, "num_decoder_layers": 6}
TINY = {"hidden_size": 8, "filter_size": 8, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}


def search(sizes, rows, length, compiled):
    """Searches once; returns the model and the seconds that the search took."""
    import numpy as np
    import tensorflow as tf

    from t2t_lite.decoding.search.beam_search import beam_search
    from t2t_lite.models import Transformer
    from t2t_lite.settings.search_options import SearchOptions
    from t2t_lite.text.vocabulary import EOS_ID

    model = Transformer(vocab_size=VOCAB_SIZE, softmax_bias=True, **sizes)
    model.build()
    bias = model.softmax.bias
    bias.assign(tf.where(tf.range(VOCAB_SIZE) == EOS_ID, -1e9, bias))
    ids = np.random.default_rng(1).integers(3, VOCAB_SIZE, (rows, length)).astype("int32")
    ids[:, -1] = EOS_ID
    specs = [tf.TensorSpec([rows, length] if compiled else [None, None], tf.int32), tf.TensorSpec([rows], tf.int32)]

    def run(inputs, limit):
        return beam_search(model, inputs, limit, SearchOptions(beam_size=BEAM), max_length=length if compiled else None)

    run = tf.function(run, input_signature=specs, jit_compile=compiled, autograph=False)
    started = time.perf_counter()
    output_ids = run(tf.constant(ids), tf.fill([rows], length)).ids.numpy()
    assert (output_ids != 0).sum() == rows * BEAM * length
    return model, time.perf_counter() - started


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--length", type=int, default=256)


def measure(result, flags):
    """Starts a new process for each turn of each side."""
    rows, length = (2, 16) if flags.quick else (flags.rows, flags.length)
    turns = {
        name: [alone(sys.modules[__name__], name, rows=rows, length=length) for _ in range(rounds_of(flags, 1))]
        for name in flags.sides
    }
    result.add_turns(f"{rows} sources of {length} ids", turns)


def side(name, rows, length):
    """Searches once and prints the figures; a MB is 10^6 bytes."""
    compiled = name == "xla"
    search(TINY, 2, 8, compiled)
    libraries = resident_mb()
    model, seconds = search(BASE, rows, length, compiled)
    peak = peak_mb()
    weights = sum(w.numpy().nbytes for w in model.weights) / 1e6
    layers, positions = BASE["num_decoder_layers"], (BEAM + 1) * length  # outputs and memory
    cache = rows * layers * 2 * positions * BASE["hidden_size"] * 4 / 1e6
    figures = {"over_minimum": (peak - libraries) / (weights + cache), "peak_mb": peak, "seconds": seconds}
    print(json.dumps(figures))


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
