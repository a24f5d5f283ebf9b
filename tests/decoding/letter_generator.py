"""A generator of letters, with random weights."""

import keras

from t2t_lite.decoding.generator import Generator
from t2t_lite.models.transformer_lm import TransformerLM
from tests.decoding.overlapping_pieces import Letters


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
