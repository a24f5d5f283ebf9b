"""What a row of the table of layers is: a small layer, with inputs."""

import inspect
from types import MappingProxyType
from typing import Any, NamedTuple

import keras
import numpy as np

from tests.layers.equations import array
from tests.layers.harness import X

IDS = np.array([[3, 4, 5, 0, 0], [1, 2, 3, 4, 5], [8, 6, 0, 0, 0]], "int32")
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
