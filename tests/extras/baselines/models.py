"""The encoder-decoders among the baselines, small, and what their tests share."""

import numpy as np

from t2t_lite import registry
from t2t_lite.models.encoder_decoder import EncoderDecoder
from tests.layers.equations import array
from tests.models.every_model import ROWS, VOCAB

MODELS = [name for name, row in ROWS.items() if issubclass(registry.model(row.name), EncoderDecoder)]


def make(name, **options):
    """Returns a small model with weights drawn from a wide distribution, biases and gains included."""
    return ROWS[name].make(**options)


def example(seed=1, target_vocab=VOCAB):
    """Three sentences of 7, 4 and 1 ids, and as many targets of 6, 2 and 6."""
    draw = np.random.default_rng(seed)
    inputs, targets = draw.integers(3, VOCAB, (3, 7)), draw.integers(3, target_vocab, (3, 6))
    inputs[1, 4:], inputs[2, 1:], targets[1, 2:] = 0, 0, 0
    return inputs.astype("int32"), targets.astype("int32")


def logits_of(model, inputs, targets):
    return array(model({"inputs": inputs, "targets": targets}, training=False))
