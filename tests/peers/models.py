"""Random models and batches, the same for every peer."""

import keras
import numpy as np

from t2t_lite.models import Transformer

SMALL = {
    "vocab_size": 40, "hidden_size": 32, "filter_size": 48, "num_heads": 4, "num_encoder_layers": 3,
    "num_decoder_layers": 2,
}  # fmt: skip
BASE = {"vocab_size": 37_000}  # all else: the paper's base model, the constructor's defaults
SIZES = {"small": SMALL, "base": BASE}


def random_model(size, **options):
    """Returns a Transformer none of whose weights is at a value that hides a mistake, such as a bias of 0.

    Args:
        size: "small" or "base".
        **options: further constructor arguments.
    """
    keras.utils.set_random_seed(7)
    model = Transformer(**{**SIZES[size], "attention_bias": True, **options})
    model.build()
    rng = np.random.default_rng(7)
    for weight in model.trainable_weights:
        if len(weight.shape) == 1:  # biases, and the normalizations' gains and offsets
            weight.assign_add(rng.normal(scale=0.1, size=weight.shape).astype("float32"))
    embeddings = keras.ops.convert_to_numpy(model.input_embedding.embeddings).copy()
    embeddings[0] = 0  # the padding's row, which peers with a padding id hold at zero
    model.input_embedding.embeddings.assign(embeddings)
    return model


def random_batch(vocab_size, seed=1):
    """Returns int ids (inputs [4, 19], targets [4, 13]), rows of different lengths, padded with 0."""
    rng = np.random.default_rng(seed)
    inputs, targets = rng.integers(2, vocab_size, (4, 19)), rng.integers(2, vocab_size, (4, 13))
    for row, (source, target) in enumerate([(19, 13), (7, 10), (1, 2), (12, 1)]):
        inputs[row, source:], targets[row, target:] = 0, 0
    return inputs.astype("int32"), targets.astype("int32")


def shifted(targets):
    """The decoder's inputs: a padding id first, which embeds to zero, then all targets but the last."""
    return np.pad(targets, ((0, 0), (1, 0)))[:, :-1]
