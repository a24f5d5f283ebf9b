"""The arguments of a constructor are the configuration of a layer, those of users' subclasses included."""

import inspect

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.backend import array
from tests.layers.harness import X


@keras.saving.register_keras_serializable("tests")
class Scaled(layers.FeedForward):
    """Has an argument more, and no `get_config`."""

    def __init__(self, filter_size, factor, inner=None, **kwargs):
        super().__init__(filter_size, **kwargs)
        self.factor, self.after = factor, inner

    def build(self, input_shape):
        super().build(input_shape)
        if self.after is not None and not self.after.built:  # one that comes from a file is
            self.after.build(input_shape)

    def call(self, inputs, training=None):
        outputs = self.factor * super().call(inputs, training=training)
        return outputs if self.after is None else self.after(outputs)


@keras.saving.register_keras_serializable("tests")
class Square(layers.FeedForward):
    """Chooses an argument itself, and has a `get_config` that leaves it out."""

    def __init__(self, size, hook=print, **kwargs):
        super().__init__(filter_size=size, **kwargs)
        self.size = size

    def get_config(self):
        config = super().get_config()
        del config["filter_size"]
        return {**config, "size": self.size}


@keras.saving.register_keras_serializable("tests")
class Halved(layers.Dropout):
    """Hands on another value of an argument than it was given, and takes arguments without names."""

    def __init__(self, *rates, rate=0.5, **kwargs):
        super().__init__(rate / 2, *rates, **kwargs)


@keras.saving.register_keras_serializable("tests")
class Wide(layers.FeedForward):
    """Sets an argument of its base class itself, in a base class of its own, and leaves others to the caller."""

    def __init__(self, **kwargs):
        super().__init__(16, **kwargs)


@keras.saving.register_keras_serializable("tests")
class WideGelu(Wide):
    """Sets another argument."""

    def __init__(self, rate, **kwargs):
        super().__init__(dropout=rate, activation="gelu", **kwargs)


@keras.saving.register_keras_serializable("tests")
class Deep(layers.TransformerStack):
    """Makes its layers itself, of which one occurs twice."""

    def __init__(self, filter_size, **kwargs):
        one, two = (layers.TransformerEncoderLayer(2, filter_size) for _ in range(2))
        super().__init__([one, two, one], **kwargs)


@pytest.mark.parametrize(
    "make, arguments",
    [
        (lambda: Scaled(16, 3.0), {"filter_size": 16, "factor": 3.0, "inner": None, "dropout": 0.0}),
        (lambda: Scaled(16, factor=3.0, inner=keras.layers.Dense(8), name="mine"), {"name": "mine", "factor": 3.0}),
        (lambda: Scaled(16, 1.0, kernel_initializer=keras.initializers.Constant(0.5)), {"bias_initializer": "zeros"}),
        (lambda: Square(16, activation="gelu", dtype="bfloat16"), {"size": 16, "activation": "gelu", "dropout": 0.0}),
        (lambda: Halved(7, rate=0.25), {"rate": 0.25, "seed": 7}),
        (lambda: WideGelu(0.25, bias_initializer="ones", name="mine"), {"rate": 0.25, "bias_initializer": "ones"}),
        (lambda: Deep(16, recompute=True), {"filter_size": 16, "recompute": True}),
    ],
    ids=["more", "a layer", "an initializer", "its own configuration", "another value", "set itself", "its own layers"],
)
def test_a_subclass_comes_back(make, arguments, tmp_path):
    layer = make()
    config = layer.get_config()
    assert {name: config[name] for name in arguments} == arguments
    again = type(layer).from_config(config)
    assert again.get_config() == config

    inputs = keras.Input((5, 8))
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "layer.keras")
    loaded = keras.saving.load_model(tmp_path / "layer.keras")
    np.testing.assert_array_equal(*(array(ops.cast(made(X), "float32")) for made in (loaded, model)))


@pytest.mark.parametrize("name", ["same", None])
def test_what_is_frozen_or_has_lora_in_a_file_is_so_again_whatever_the_names(name, tmp_path):
    stack = layers.TransformerStack([layers.TransformerEncoderLayer(2, 16, name=name) for _ in range(3)])
    stack.build(X.shape)
    stack.layers[1].trainable = False
    stack.layers[2].feed_forward.layer.inner.bias.trainable = False
    stack.layers[2].feed_forward.layer.outer.enable_lora(2)
    keras.Sequential([keras.Input((5, 8)), stack]).save(tmp_path / "stack.keras")
    (loaded,) = keras.saving.load_model(tmp_path / "stack.keras").layers
    for made, again in zip(stack.layers, loaded.layers, strict=True):
        assert [w.trainable for w in again.weights] == [w.trainable for w in made.weights]


def test_a_missing_argument_is_called_by_its_name():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'filter_size'"):
        layers.FeedForward()


def test_help_shows_the_arguments():
    assert [*inspect.signature(layers.Dropout).parameters] == ["rate", "seed", "kwargs"]
