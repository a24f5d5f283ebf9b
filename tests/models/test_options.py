"""What a setting declares, the constructors of the models take, check and explain."""

import inspect
import re
from typing import ClassVar

import pytest

from t2t_lite.errors import UserError
from t2t_lite.models import Transformer, TransformerEncoder, TransformerLM
from t2t_lite.models.arguments import shared_options
from t2t_lite.models.transformer_parts import TransformerModel
from t2t_lite.settings.ranges import setting
from tests.models.test_arguments import SMALL

MODELS = [Transformer, TransformerLM, TransformerEncoder]


@pytest.mark.parametrize("model_class", MODELS)
def test_help_shows_each_argument(model_class):
    """By the signature its default, by the docstring its meaning."""
    parameters = [p for p in inspect.signature(model_class).parameters.values() if p.kind is not p.VAR_KEYWORD]
    assert [p.name for p in parameters[:5]] == [
        "vocab_size", "target_vocab_size", "hidden_size", "filter_size", "num_heads"
    ]  # fmt: skip
    explained = re.findall(r"^        (\w+): ", model_class.__doc__.partition("Raises:")[0], re.MULTILINE)
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


@pytest.mark.parametrize(
    "argument, words",
    [
        ({"hidden_size": 0}, "`hidden_size` must be a whole number of at least 1: received hidden_size=0"),
        ({"num_layers": 0}, "`num_layers` must be a whole number"),
        ({"dropout": 1}, r"`dropout` must be a rate in \[0, 1\): received dropout=1"),
        ({"position": "sines"}, "`position` must be one of sinusoidal, learned, rotary, none: received position='sin"),
        ({"no_such": 1}, "no_such"),
    ],
)
def test_an_argument_out_of_its_range(argument, words):
    with pytest.raises(ValueError, match=words):
        TransformerLM(20, **argument)


def test_a_model_with_an_option_of_its_own():
    class Windowed(TransformerModel):
        """Reads a window.

        Args:
            {options}
        """

        HPARAMS: ClassVar = {
            "window": setting("near", choices=("near", "far"), argument="window", meaning="Which window.")
        }
        OPTIONS: ClassVar = shared_options(hidden_size=8)

        def __init__(self, vocab_size, target_vocab_size=None, **options):
            super().__init__(vocab_size, target_vocab_size, **options)

        def build(self, input_shape=None):
            self.built = True

    model = Windowed.from_hparams(SMALL.of_model(Windowed).parse("window=far"), 20)
    assert (model.config["window"], model.config["hidden_size"]) == ("far", 8)
    assert "window: str. Which window. One of near, far." in Windowed.__doc__
    assert Windowed.from_config(model.get_config()).get_config() == model.get_config()
    with pytest.raises(UserError, match="near, far"):
        SMALL.of_model(Windowed).parse("window=wide")
    with pytest.raises(ValueError, match="`window` must be one of near, far: received window='wide'"):
        Windowed(20, window="wide")
