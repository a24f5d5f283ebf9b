"""A generator of letters, with random weights, and full passes of its model to compare with."""

import keras
import numpy as np

from t2t_lite.decoding.generator import Generator
from t2t_lite.models.transformer_lm import TransformerLM
from tests.decoding.overlapping_pieces import Letters
from tests.decoding.scripted import log_softmax


def model_of(begin="zero", encoder=None, **options):
    keras.utils.set_random_seed(3)
    sizes = {"hidden_size": 16, "filter_size": 32, "num_heads": 2, "num_layers": 1}
    model = TransformerLM(len((encoder or Letters()).piece_bytes), **sizes, begin=begin, **options)
    model.build()
    for weight in model.trainable_weights:
        weight.assign(weight * 2)  # far from uniform: every step is a choice
    return model


def generator_of(begin="zero", encoder=None, **options):
    encoder = encoder or Letters()
    return Generator(model_of(begin, encoder, **options), {"targets": encoder}, None)


class FullPasses:
    """The oracle: one pass over a prompt and all outputs so far for each next output."""

    def __init__(self, model):
        self.model, self.vocab_size = model, model.vocab_size

    def all_logits(self, prompt, outputs):
        """Of each output, and of the next one."""
        batch = {"targets": np.array([[*outputs, 3]])} | ({"inputs": np.array([prompt])} if prompt else {})
        return keras.ops.convert_to_numpy(self.model(batch))[0, -1 - len(outputs) :]

    def logits(self, prompt, outputs):
        return self.all_logits(prompt, outputs)[-1]


def log_probs(model, prompt, ids):
    logits = FullPasses(model).all_logits(prompt, ids[:-1])[: len(ids)]
    return [log_softmax(row)[i] for row, i in zip(logits, ids, strict=True)]
