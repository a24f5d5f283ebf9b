"""Compares two kinds of beam search for each type of model: with cached steps and with full passes (ids per second).

python -m benchmarks.full_passes
python -m benchmarks.full_passes --models=transformer,lstm_seq2seq_attention --width=512

Models have random weights and 2,000 ids. A beam of 4 generates an output of 64 ids for an input of 64 ids. `full` runs
the whole model over all previous ids at each step, as decoders without a cache do; both sides return the same ids.
Every side runs in a separate process and is warmed up.
"""

import sys

from benchmarks.harness.command import chosen, compare, main
from benchmarks.harness.turns import answer_turns

TITLE = "Cached steps compared with full passes"
SIDES = {"cached": "cached steps", "full": "full passes"}
NEEDS = {}
VOCAB, LENGTH, BEAM = 2_000, 64, 4
_HEADS = 64  # hidden size per head
SETS = {
    "transformer": "transformer_tiny",
    "universal_transformer": "universal_transformer_small",
    "adaptive": "adaptive_universal_transformer_small",
    "transformer_moe": "transformer_moe_tiny",
    "conv_seq2seq": "conv_seq2seq_tiny",
    "lstm_seq2seq_attention": "lstm_attention_tiny",
    "bytenet": "bytenet_tiny",
    "neural_gpu": "neural_gpu_tiny",
    "extended_neural_gpu": "extended_neural_gpu_tiny",
    "transformer_lm": "transformer_lm_tiny",
    "transformer_memory": "transformer_memory_tiny",
    "lstm_lm": "lstm_lm_tiny",
}


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument(
        "--models",
        default=",".join(SETS),
        help=f"comma-separated models to measure, chosen from {', '.join(SETS)}",
    )
    parser.add_argument("--width", type=int, default=128, help="hidden size; the filter size is four times as large")


def measure(result, flags):
    """Compares the two kinds of search for each model."""
    length, width = (6, 64) if flags.quick else (LENGTH, flags.width)
    for name in chosen("--models", flags.models, SETS):
        case = f"{name}, width {width}, {length} ids"
        compare(sys.modules[__name__], result, flags, case, rounds=5, model=name, width=width, length=length)


class _Endless:
    """Wraps a model so that its outputs never end before the length limit."""

    def __init__(self, model):
        self.model, self.max_length = model, None
        self.encode, self.init_cache = model.encode, model.init_cache

    def decode_step(self, ids, position, cache):
        """Returns the model's logits, with EOS made impossible, and the cache."""
        import tensorflow as tf

        logits, cache = self.model.decode_step(ids, position, cache)
        return logits - 1e9 * tf.one_hot(1, VOCAB), cache


def side(name, model, width, length):
    """Searches once per turn."""
    import keras
    import numpy as np

    from t2t_lite import registry
    from t2t_lite.decoding.search.adapters import FullPass
    from t2t_lite.decoding.search.searcher import Searcher
    from t2t_lite.settings.search_options import SearchOptions

    keras.utils.set_random_seed(1)
    hparams = registry.hparams(SETS[model])
    made = registry.model("universal_transformer" if model == "adaptive" else model)
    sizes = {"hidden_size": width, "filter_size": 4 * width, "num_heads": width // _HEADS}
    own = made.from_hparams(hparams.of_model(made).override_from_dict(sizes), VOCAB)
    searcher = Searcher(_Endless(FullPass(own) if name == "full" else own))
    source = [*map(int, np.random.default_rng(0).integers(3, VOCAB, length - 1)), 1]
    options = SearchOptions(beam_size=BEAM, extra_length=0, compile=False)
    searcher.search([source], options)

    def turn():
        ((best, *_),) = searcher.search([source], options)
        return len(best.ids)

    answer_turns(turn)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
