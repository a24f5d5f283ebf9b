"""Every public layer in one table, small, with inputs: a new layer is one row."""

import inspect
from types import MappingProxyType
from typing import Any, NamedTuple

import keras
import numpy as np

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import MEMORY, X

IDS = np.array([[3, 4, 5, 0, 0], [1, 2, 3, 4, 5]], "int32")
MASK = IDS != 0


class Row(NamedTuple):
    """A layer.

    Attributes:
        layer_class: the class.
        init: dict, the constructor's arguments; a layer is the function that makes it.
        inputs: NumPy array, the first argument of a call.
        call: mapping of the other tensors.
        matrices: bool, whether there are any that are quantized.
    """

    layer_class: type
    init: dict
    inputs: Any = X
    call: MappingProxyType = MappingProxyType({})
    matrices: bool = True

    def make(self, **options):
        """Returns a layer that is not built."""
        return self.layer_class(**self.arguments(), **options)

    def arguments(self):
        """Returns the constructor's arguments, layers made."""

        def made(value):
            return [made(each) for each in value] if isinstance(value, list) else value() if callable(value) else value

        return {name: made(value) for name, value in self.init.items()}

    def outputs(self, layer, **options):
        """Returns what a call gives, as an array."""
        return array(keras.ops.cast(layer(self.inputs, **self.call, **options), "float32"))

    def made(self, **options):
        """Returns a layer that was called."""
        layer = self.make(**options)
        layer(self.inputs, **self.call)
        return layer

    def symbols(self, known=False):
        """Returns {argument: symbolic input}, of unknown lengths unless `known`."""
        given = {self.first: self.inputs, **self.call}
        return {
            name: keras.Input((x.shape[1] if known else None, *x.shape[2:]), dtype=x.dtype) for name, x in given.items()
        }

    def model(self, layer):
        """Returns a functional model that holds the layer."""
        inputs = self.symbols()
        first, *others = inputs.values()
        return keras.Model([*inputs.values()] if others else first, layer(**inputs))

    def results(self, model):
        """Returns what a model of `model` gives, as an array."""
        return array(model(self.feed))

    @property
    def feed(self):
        """What a model of `model` is called with."""
        return [self.inputs, *self.call.values()] if self.call else self.inputs

    @property
    def first(self):
        """The name of the first argument of a call."""
        return [*inspect.signature(self.layer_class.call).parameters][1]


def _encoder():
    return layers.TransformerEncoderLayer(2, 16, name="encoder")


def _decoder():
    return layers.TransformerDecoderLayer(2, 16, name="decoder")


def _universal():
    parts = {"signals": lambda: layers.StepSignals(2), "halting": layers.AdaptiveComputation}
    return Row(layers.UniversalStack, {"layers": [_encoder], "num_steps": 2, **parts})


_SIZES = {"num_heads": 2, "filter_size": 16}
ROWS = {
    "AdaptiveComputation": Row(layers.AdaptiveComputation, {}, matrices=False),
    "ClassHead": Row(layers.ClassHead, {"num_classes": 3, "pooler": True}),
    "Convolution": Row(layers.Convolution, {"filters": 6, "kernel_size": 3}),
    "Dropout": Row(layers.Dropout, {"rate": 0.5}, matrices=False),
    "FeedForward": Row(layers.FeedForward, {"filter_size": 16}),
    "LayerNormalization": Row(layers.LayerNormalization, {}, matrices=False),
    "LearnedPositionEmbedding": Row(layers.LearnedPositionEmbedding, {"max_length": 9}, matrices=False),
    "LeftRelativeAttention": Row(layers.LeftRelativeAttention, {"num_heads": 2, "max_relative_position": 3}),
    "MaskedIdsHead": Row(layers.MaskedIdsHead, {"size": 6}),
    "MixtureOfExperts": Row(layers.MixtureOfExperts, {"filter_size": 16, "num_experts": 4}, matrices=False),
    "MultiHeadAttention": Row(layers.MultiHeadAttention, {"num_heads": 2, "dropout": 0.1}, X, {"value": MEMORY}),
    "RelativeAttention": Row(layers.RelativeAttention, {"num_heads": 2, "max_relative_position": 3}),
    "Residual": Row(layers.Residual, {"layer": lambda: layers.FeedForward(16)}),
    "RestrictedAttention": Row(layers.RestrictedAttention, {"num_heads": 2, "neighborhood": 3}),
    "SegmentAttention": Row(layers.SegmentAttention, {"num_heads": 2}),
    "SinusoidalPositionEmbedding": Row(layers.SinusoidalPositionEmbedding, {}, matrices=False),
    "SpanHead": Row(layers.SpanHead, {}, X, {"allowed": MASK}),
    "StepSignals": Row(layers.StepSignals, {"num_steps": 3}, matrices=False),
    "TokenEmbedding": Row(layers.TokenEmbedding, {"vocab_size": 9, "hidden_size": 8, "mask_zero": True}, IDS),
    "TransformerDecoderLayer": Row(layers.TransformerDecoderLayer, _SIZES, X, {"memory": MEMORY}),
    "TransformerEncoderLayer": Row(layers.TransformerEncoderLayer, _SIZES),
    "TransformerStack": Row(layers.TransformerStack, {"layers": [_decoder]}, X, {"memory": MEMORY}),
    "UniversalStack": _universal(),
}
