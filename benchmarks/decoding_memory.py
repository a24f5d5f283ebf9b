"""The memory of a beam search over the arithmetic minimum: weights, and keys and values at the end.

python benchmarks/decoding_memory.py > memory.jsonl
python benchmarks/decoding_memory.py --rows 16 --length 128 --compile

The paper's base with 32,000 ids, float32, beam 4, one batch of equally long sources; no hypothesis ends before the
limit, which is the sources' length. The process' memory is read when a tiny model has been searched in the same way
(libraries, threads and what TensorFlow sets aside), and at its highest since.
"""

import argparse
import json
import os
import resource
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.turns import machine, resident_bytes

BEAM, VOCAB_SIZE = 4, 32_000
BASE = {"hidden_size": 512, "filter_size": 2048, "num_heads": 8, "num_encoder_layers": 6, "num_decoder_layers": 6}
TINY = {"hidden_size": 8, "filter_size": 8, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}


def search(sizes, rows, length, compiled):
    """Searches once, and returns the model and the seconds it took."""
    import numpy as np
    import tensorflow as tf

    from t2t_lite.decoding.search.beam_search import EOS_ID, beam_search
    from t2t_lite.models import Transformer

    model = Transformer(vocab_size=VOCAB_SIZE, softmax_bias=True, **sizes)
    model.build()
    bias = model.softmax.bias
    bias.assign(tf.where(tf.range(VOCAB_SIZE) == EOS_ID, -1e9, bias))
    ids = np.random.default_rng(1).integers(3, VOCAB_SIZE, (rows, length)).astype("int32")
    ids[:, -1] = EOS_ID
    specs = [tf.TensorSpec([rows, length] if compiled else [None, None], tf.int32), tf.TensorSpec([rows], tf.int32)]

    def run(inputs, limit):
        return beam_search(model, inputs, limit, beam_size=BEAM, max_length=length if compiled else None)

    run = tf.function(run, input_signature=specs, jit_compile=compiled, autograph=False)
    started = time.perf_counter()
    found = run(tf.constant(ids), tf.fill([rows], length)).ids.numpy()
    assert (found != 0).sum() == rows * BEAM * length
    return model, time.perf_counter() - started


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--compile", action="store_true")
    flags = parser.parse_args()
    search(TINY, 2, 8, flags.compile)
    libraries = resident_bytes() / 2**20
    model, seconds = search(BASE, flags.rows, flags.length, flags.compile)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    weights = sum(w.numpy().nbytes for w in model.weights) / 2**20
    layers, positions = BASE["num_decoder_layers"], (BEAM + 1) * flags.length  # of the outputs and of the memory
    cache = flags.rows * layers * 2 * positions * BASE["hidden_size"] * 4 / 2**20
    result = {
        "rows": flags.rows,
        "length": flags.length,
        "compiled": flags.compile,
        "seconds": round(seconds, 1),
        "libraries_mb": round(libraries),
        "peak_mb": round(peak),
        "weights_mb": round(weights),
        "keys_and_values_mb": round(cache),
        "over_minimum": round((peak - libraries) / (weights + cache), 2),
    }
    print(json.dumps(machine()))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
