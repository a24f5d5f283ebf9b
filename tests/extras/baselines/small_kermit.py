"""A small KERMIT, and its logits: what its tests share."""

import keras
import numpy as np

from t2t_lite import registry
from t2t_lite.extras.baselines.kermit import Kermit
from tests.layers.equations import array

VOCAB = 20
SIZES = {"hidden_size": 16, "filter_size": 24, "num_heads": 2, "num_layers": 2}


def make(seed=2, scale=0.3, hparams="", **options):
    """Returns a small model with weights drawn from a wide distribution."""
    keras.utils.set_random_seed(3)
    if hparams:
        small = "hidden_size=16,filter_size=24,num_heads=2,num_hidden_layers=2"
        values = registry.hparams("kermit_tiny").of_model(Kermit).parse(f"{small},{hparams}")
        model = Kermit.from_hparams(values, VOCAB, **options)
    else:
        model = Kermit(VOCAB, **{**SIZES, **options})
        model.build()
    draw = np.random.default_rng(seed)
    for weight in model.trainable_weights:
        weight.assign(array(weight) + draw.normal(0, scale, weight.shape))
    return model


def logits_of(model, inputs, canvas):
    return array(model({"inputs": inputs, "canvas": canvas}, training=False))
