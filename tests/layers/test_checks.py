"""Wrong arguments of a constructor are named there, not in a later call; sizes that are known are ints."""

# Nearest tests of: t2t_lite/layers/attention.py, t2t_lite/layers/attention_scores.py, t2t_lite/layers/dropout.py
# Nearest tests of: t2t_lite/layers/encoder_heads.py, t2t_lite/layers/feed_forward.py, t2t_lite/layers/key_patterns.py
# Nearest tests of: t2t_lite/layers/positions.py, t2t_lite/layers/residual.py, t2t_lite/layers/stack.py
# Nearest tests of: t2t_lite/layers/token_embedding.py, t2t_lite/layers/transformer_layers.py

import inspect
import math
import re

import keras
import numpy as np
import pytest

from t2t_lite import layers
from t2t_lite.layers.checks import FileCheck, check_sequences, shape_of
from tests.layers.backend import BACKEND
from tests.layers.every_layer import ROWS

WRONG = [None, "nonsense", -1, 1.5, (), ("nonsense",), {"type": 5}]


def parameters(row):
    """Returns {name: default} of the constructor's own arguments."""
    if not row.layer_class.__init__.__module__.startswith("t2t_lite"):
        return {}  # Keras'
    found = inspect.signature(row.layer_class).parameters.values()
    return {p.name: p.default for p in found if p.kind is p.POSITIONAL_OR_KEYWORD}


REFUSED = {  # by every layer that has an argument of one of the names
    ("num_heads", "key_dim", "value_dim", "filter_size", "vocab_size", "hidden_size", "embedding_size", "size",
     "num_classes", "max_length", "neighborhood", "max_relative_position"): [0, -3, 2.5, 16.0, True, "4"],
    ("rate", "dropout", "attention_dropout", "relu_dropout"): [-0.1, 1.0, 1.5, float("nan"), "0.1"],
    ("norm_epsilon",): [0, -1e-5, math.inf, True],
    ("epsilon",): [-1e-5, math.inf],
    ("activation", "pooler_activation"): ["tangent", 3],
    ("kernel_initializer", "bias_initializer", "output_initializer"): ["glorot", 3],
    ("embeddings_initializer",): ["other"],
    ("norm",): ["none", "both"],
    ("layout",): ["sines"],
    ("positions",): ["nonsense"],
    ("score", "pattern"): [5, "nonsense"],
    ("layer",): ["nonsense", None],
    ("layers",): ["nonsense", ["nonsense"], [keras.layers.Dense]],
    ("self_attention", "feed_forward", "cross_attention"): ["restricted", {}],
}  # fmt: skip
REFUSED = {name: values for names, values in REFUSED.items() for name in names}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_values_outside_of_their_range_are_refused_by_name_and_value(row):
    for name in parameters(row).keys() & REFUSED.keys():
        for value in REFUSED[name]:
            with pytest.raises(ValueError) as error:
                row.layer_class(**{**row.arguments(), name: value})
            text = str(error.value).strip()
            assert "\n" not in text, (name, value)
            # Keras names neither where its own dense layer knows no such initializer.
            assert (f"`{name}`" in text and repr(value) in text) or name == "kernel_initializer", (name, value, text)


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


@pytest.mark.parametrize("name, missing", [("num_heads", "self_attention"), ("filter_size", "feed_forward")])
def test_what_neither_form_of_a_layer_gives_is_named(name, missing):
    sizes = {"num_heads": 2, "filter_size": 16} | {name: None}
    with pytest.raises(ValueError, match=rf"`{name}`.*`{missing}`"):
        layers.TransformerEncoderLayer(**sizes)
    if name == "num_heads":
        decoder = layers.TransformerDecoderLayer(**sizes, self_attention=layers.MultiHeadAttention(2))
        with pytest.raises(ValueError, match=r"`num_heads` is missing.*`cross_attention`"):
            decoder.build((None, None, 8), (None, None, 8))


def test_integers_of_numpy_are_sizes():
    """Those that come of a computation: Keras' own Dense refuses them."""
    size = np.int64(16)
    for layer in (layers.FeedForward(size), layers.MultiHeadAttention(np.int64(2), key_dim=size)):
        assert layer(np.ones((1, 3, 8), "float32")).shape == (1, 3, 8)
        assert {type(value) for value in layer.get_config().values()}.isdisjoint({np.int64})


def test_what_is_known_is_of_ints():
    x = keras.ops.ones((2, 0, 3))
    for shape in (shape_of(x), shape_of(np.ones((2, 0, 3)))):
        assert shape == (2, 0, 3) and all(type(size) is int for size in shape)
    assert shape_of(keras.Input((None, 3))) == (None, None, 3)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="other backends know all sizes")
def test_two_operations_of_a_graph_are_enough_for_all_that_is_not_known():
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec([None, 0, None, 3])], autograph=False)
    def function(x):
        first, *known, last, size = shape_of(x)
        assert (known, size) == ([0], 3)
        return first, last

    assert [int(size) for size in function(tf.zeros((4, 0, 5, 3)))] == [4, 5]
    operations = [operation.type for operation in function.get_concrete_function().graph.get_operations()]
    assert operations[:3] == ["Placeholder", "Shape", "Unpack"] and {*operations[3:]} == {"Identity"}


@pytest.mark.skipif(BACKEND != "tensorflow", reason="ragged tensors are TensorFlow's")
@pytest.mark.parametrize("make", [lambda: layers.TransformerEncoderLayer(2, 16), layers.SinusoidalPositionEmbedding])
def test_ragged_sequences_are_to_be_padded(make):
    import tensorflow as tf

    with pytest.raises(ValueError, match=r"ragged.*x\.to_tensor\(\)"):
        make()(tf.RaggedTensor.from_row_lengths(np.ones((4, 8), "float32"), [3, 1]))


def test_a_refused_file_is_refused_by_each_attribute_that_holds_the_layer():
    """Keras asks a second time with nothing, and takes the last answer."""

    class Checked(FileCheck):
        def refusal_of(self, store):
            return ValueError("no") if "bad" in store else None

    checked = Checked()
    checked.check_file({"good": 1}), checked.check_file({})
    for store in ({"bad": 1}, {}):
        with pytest.raises(ValueError, match="no"):
            checked.check_file(store)
    checked.check_file({"good": 1})


@pytest.mark.parametrize(
    "make",
    [
        lambda: layers.MultiHeadAttention(2),
        lambda: layers.FeedForward(16),
        lambda: layers.TransformerDecoderLayer(2, 16),
        lambda: layers.SinusoidalPositionEmbedding(),
        lambda: layers.LearnedPositionEmbedding(9),
    ],
)
def test_an_unknown_hidden_size_is_refused_by_name(make):
    with pytest.raises(ValueError, match=r"^\S+: the last axis of the inputs needs a known size: .*None, None\)"):
        make()(keras.Input((None, None)))


@pytest.mark.parametrize("shape", [(), (8,), (7, 8), (1, 2, 7, 8)], ids=str)
def test_a_sequence_has_three_axes(shape):
    check_sequences(value=np.ones((3, 7, 8)), key=(3, 7, 8), memory=None)
    for given in (shape, np.ones(shape)):
        with pytest.raises(ValueError, match=rf"`value` .*\[batch, length, hidden\].*{re.escape(str(shape))}"):
            check_sequences(key=(3, 7, 8), value=given)
