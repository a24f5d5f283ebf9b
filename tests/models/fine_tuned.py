"""Small models with parts that are frozen or have LoRA, and what is trained of them."""

import numpy as np

from t2t_lite import registry
from t2t_lite.models.fine_tuning import parts_of
from tests.layers.equations import array

SIZES = "num_hidden_layers=2,hidden_size=8,filter_size=16,num_heads=2,layer_prepostprocess_dropout=0,relu_dropout=0"


def made(name="transformer", more="", sizes=(20,), hparams_set=None):
    model_class = registry.model(name)
    sets = {"transformer_encoder": "bert_tiny", "transformer_lm": "transformer_lm_tiny"}
    hparams = registry.hparams(hparams_set or sets.get(name, "transformer_tiny")).of_model(model_class)
    return model_class.from_hparams(hparams.parse(SIZES + more), *sizes)


def randomized(model):
    """Gives weights that begin with zeros other values."""
    rng = np.random.default_rng(0)
    for weight in model.trainable_weights:
        weight.assign(array(weight) + rng.normal(size=weight.shape, scale=0.1))
    return model


def trained(model):
    """The names of what is trained, without the model's own."""
    return {weight.path.partition("/")[2] for weight in model.trainable_weights}


def check_parts(name, sizes, more, expected):
    """Checks that each weight of a model is of one part, and what is in some parts."""
    model = made(name, more, sizes)
    parts = parts_of(model)
    found = [id(weight) for layers in parts.values() for weights in layers.values() for weight in weights]
    assert sorted(found) == sorted(map(id, model.weights))
    assert {part: set(parts[part]) for part in expected} == expected
