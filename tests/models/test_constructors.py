"""The constructors of models: their help, defaults and refusals."""

# Nearest tests of: t2t_lite/models/arguments.py

import inspect
import json
import re

import numpy as np
import pytest

from t2t_lite.models import Transformer, TransformerEncoder, TransformerLM

MODELS = [Transformer, TransformerLM, TransformerEncoder]


@pytest.mark.parametrize("model_class", MODELS)
def test_help_shows_each_argument(model_class):
    """By the signature its default, by the docstring its meaning."""
    parameters = [p for p in inspect.signature(model_class).parameters.values() if p.kind is not p.VAR_KEYWORD]
    assert [p.name for p in parameters[:5]] == [
        "vocab_size", "target_vocab_size", "hidden_size", "filter_size", "num_heads"
    ]  # fmt: skip
    doc = inspect.getdoc(model_class)
    explained = re.findall(r"^    (\w+): ", doc.partition("Raises:")[0], re.MULTILINE)
    assert explained == [p.name for p in parameters]
    assert max(map(len, model_class.__doc__.splitlines())) <= 120


def test_defaults_are_those_of_the_papers():
    by_name = {m: inspect.signature(m).parameters for m in MODELS}
    expected = {"num_encoder_layers": 6, "key_dim": None, "norm": "post", "position": "sinusoidal", "dropout": 0.1}
    assert {name: by_name[Transformer][name].default for name in expected} == expected
    expected = {"num_layers": 12, "hidden_size": 768, "activation": "gelu", "position": "learned", "head": "masked_lm"}
    assert {name: by_name[TransformerEncoder][name].default for name in expected} == expected
    assert "num_layers" not in by_name[Transformer] and "tie_embeddings" not in by_name[TransformerEncoder]


def test_arguments_may_come_without_names():
    model = Transformer(20, None, 8, 16, 2, 1, num_decoder_layers=1, name="mine")
    assert (model.config["hidden_size"], model.config["num_encoder_layers"], model.name) == (8, 1, "mine")


@pytest.mark.parametrize("model_class", [Transformer, TransformerEncoder, TransformerLM])
def test_integers_of_numpy_are_sizes(model_class):
    sizes = {"vocab_size": 20, "hidden_size": 8, "num_heads": 2, "filter_size": 16, "max_position": 9}
    model = model_class(**{name: np.int64(size) for name, size in sizes.items()})
    model.build()
    assert json.loads(json.dumps(model.get_config())).items() >= sizes.items()


def test_a_subclass_may_set_arguments_itself():
    class Small(Transformer):
        def __init__(self, vocab_size, depth=1, **kwargs):
            sizes = {"hidden_size": 8, "filter_size": 16, "num_heads": 2, "num_encoder_layers": depth}
            super().__init__(vocab_size, num_decoder_layers=1, **sizes, **kwargs)

    again = Small.from_config(Small(20, depth=2, dropout=0.3).get_config())
    found = [again.config[name] for name in ("hidden_size", "num_encoder_layers", "dropout")]
    assert found == [8, 2, 0.3]


def test_layers_get_their_arguments_with_python_3_11_2(monkeypatch):
    """There, a class without an `__init__` of its own has the signature of Keras' `__new__`, without names."""
    signature = inspect.signature

    def of_python_3_11_2(called, **options):
        inherits = isinstance(called, type) and "__init__" not in vars(called)
        return signature(called.__new__ if inherits else called, **options)

    monkeypatch.setattr(inspect, "signature", of_python_3_11_2)
    model = Transformer(9, hidden_size=8, filter_size=12, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    for stack in (model.encoder, model.decoder):
        assert stack.layers[0].feed_forward.layer.filter_size == 12
