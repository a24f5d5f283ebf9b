"""`encode` of a model as a layer of functional models."""

import functools
import inspect
import weakref

import keras

from t2t_lite.layers.base import Layer


@keras.saving.register_keras_serializable("t2t_lite")
class Encoding(Layer):
    """The layer that `encode` of a model adds to a functional model if it is called with a `keras.Input`.

    Args:
        model: the `SequenceModel`, whose weights the layer has.
    """

    def __init__(self, model: keras.Model, **kwargs):
        super().__init__(**{"dtype": model.dtype_policy, **kwargs})
        self.model = model

    def build(self, input_shape):
        """Creates the weights of the model unless they exist."""
        self.model.build_if_needed()

    def call(self, inputs, training=None, **options):
        """Encodes ids, int [B, S]: see `encode` of the model, which also has the options."""
        if "training" in inspect.signature(self.model.encode).parameters:
            options["training"] = training
        return self.model.encode(inputs, **options)

    def compute_mask(self, inputs, previous_mask=None):
        """Returns None, because the outputs include their mask."""

    def compute_output_spec(self, inputs, **options):
        """Returns the symbolic outputs of `encode`."""

        def traced(unknown):
            shape = [unknown if size is None else size for size in inputs.shape]
            return keras.Operation.compute_output_spec(self, keras.KerasTensor(shape, inputs.dtype), **options)

        def combined(one, other):
            shape = [size if size == another else None for size, another in zip(one.shape, other.shape, strict=True)]
            return keras.KerasTensor(shape, one.dtype)

        if keras.backend.backend() == "tensorflow":
            return traced(None)
        # JAX cannot compare an unknown length with `max_position`, and Keras tries long rows with PyTorch.
        return keras.tree.map_structure(combined, traced(2), traced(4))


def accepts_symbols(encode):
    """Wraps a model's `encode` so that it may be called with a `keras.Input`."""

    @functools.wraps(encode)
    def method(self, inputs, *args, **kwargs):
        if isinstance(inputs, keras.KerasTensor):
            return _layer_of(self)(inputs, *args, **kwargs)
        return encode(self, inputs, *args, **kwargs)

    return method


def _layer_of(model):
    """Returns one layer for all calls, so that a file has the weights of the model once."""
    layer = model._encoding() if hasattr(model, "_encoding") else None
    if layer is None:
        layer = Encoding(model)
        # The reference is weak because the model is a part of the layer, and Keras would walk in a circle.
        model._encoding = weakref.ref(layer)
    return layer
