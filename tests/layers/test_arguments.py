"""A wrong argument of a constructor is named there, in one line, not in a later call or an error of the backend's."""

import inspect

import numpy as np
import pytest

from t2t_lite import layers
from tests.layers.every_layer import ROWS

WRONG = [None, "nonsense", -1, 1.5, (), ("nonsense",), {"type": 5}]


def parameters(row):
    """Returns {name: default} of the constructor's own arguments."""
    if not row.layer_class.__init__.__module__.startswith("t2t_lite"):
        return {}  # Keras'
    found = inspect.signature(row.layer_class).parameters.values()
    return {p.name: p.default for p in found if p.kind is p.POSITIONAL_OR_KEYWORD}


@pytest.mark.few(*(name for name in ROWS if name not in ("LeftRelativeAttention", "TransformerEncoderLayer")))
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_wrong_values_are_refused_at_once_or_work(row):
    for name, default in parameters(row).items():
        for value in WRONG if name != "seed" else ():  # Keras' generator checks it
            try:
                layer = row.layer_class(**{**row.arguments(), name: value})
            except (TypeError, ValueError) as error:
                # Keras does not name the argument where it knows no such initializer.
                assert f"`{name}`" in str(error) or "nitializer" in name or "Argument" in str(error), (name, value)
                assert "\n" not in str(error).strip()
                continue
            assert value is not None or default is not inspect.Parameter.empty, f"{name}=None"
            try:
                row.outputs(layer)
            except Exception as error:
                raise AssertionError(f"{name}={value!r} is accepted, and then not called") from error


@pytest.mark.parametrize(
    "make, words",
    [
        (
            lambda: layers.MultiHeadAttention(2, positions="nonsense"),
            r"`positions` must be one of .*rotary.*'nonsense'",
        ),
        (lambda: layers.MultiHeadAttention(2, score=5), "`score` must be a name, or a dict .*: received 5"),
        (lambda: layers.MultiHeadAttention(2, pattern=["full", 5]), "`pattern` must be a name.*: received 5"),
        (lambda: layers.FeedForward(None), "`filter_size` must be a whole number .*filter_size=None"),
        (lambda: layers.RelativeAttention(2, None), "max_relative_position=None"),
        (lambda: layers.Residual("nonsense"), "`layer` must be a Keras layer: received 'nonsense'"),
        (lambda: layers.TransformerStack(layers.FeedForward(8)), "`layers` must be a list of Keras layers"),
        (lambda: layers.TransformerStack([layers.FeedForward]), "`layers` must be a list of Keras layers"),
        (
            lambda: layers.TransformerEncoderLayer(2, 16, self_attention="restricted"),
            "`self_attention` must be a Keras",
        ),
        (lambda: layers.TransformerDecoderLayer(2, 16, cross_attention={}), "`cross_attention` must be a Keras la"),
        (lambda: layers.ClassHead(3, dropout=2), "`dropout` must be a rate .*dropout=2"),
    ],
)
def test_an_error_says_what_was_expected(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_integers_of_numpy_are_sizes():
    """Those that come of a computation: Keras' own Dense refuses them."""
    size = np.int64(16)
    for layer in (layers.FeedForward(size), layers.MultiHeadAttention(np.int64(2), key_dim=size)):
        assert layer(np.ones((1, 3, 8), "float32")).shape == (1, 3, 8)
        assert {type(value) for value in layer.get_config().values()}.isdisjoint({np.int64})
