"""What every layer must do, on every backend, checked in one call.

`check_layer` is for the contract that all layers share. What a layer computes is checked in its own test.
"""

import functools
import inspect
from types import MappingProxyType
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from tests.layers.backend import BACKEND, check_gradients, compiled
from tests.layers.equations import array

# All sizes differ, from each other and from the heads (2), their size (4), filters (16) and vocabularies (9) of the
# tests, so that none can stand in for another: 3 rows, 5 queries, 7 keys of a memory, hidden size 8.
X = np.random.default_rng(0).normal(size=(3, 5, 8)).astype("float32")
MEMORY = np.random.default_rng(1).normal(size=(3, 7, 8)).astype("float32")
PAIR, PAIR_MEMORY = X[:2], MEMORY[:2]
IDS = np.array([[3, 4, 5, 0, 0], [1, 2, 3, 4, 5], [8, 6, 0, 0, 0]], "int32")
MASK = IDS != 0
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


class Row(NamedTuple):
    """A layer with inputs: a row of the table of layers.

    Attributes:
        layer_class: the class.
        init: dict, the constructor's arguments. A layer among them is the function that makes it; or a layer that is
            copied, with the options of `make`, for each has weights of its own.
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
        return self.layer_class(**self.arguments(**options), **options)

    def arguments(self, **options):
        """Returns the constructor's arguments, layers made."""

        def made(value):
            if isinstance(value, keras.Layer):
                return type(value).from_config({**value.get_config(), **options})
            return [made(each) for each in value] if isinstance(value, list) else value() if callable(value) else value

        return {name: made(value) for name, value in self.init.items()}

    def outputs(self, layer, **options):
        """Returns what a call gives, as an array."""
        return array(ops.cast(layer(self.inputs, **self.call, **options), "float32"))

    def made(self, **options):
        """Returns a layer that was called."""
        layer = self.make(**options)
        layer(self.inputs, **self.call)
        return layer

    def with_weights(self, layer, weights):
        """Builds a layer, gives it weights, and returns it."""
        layer.build(*self.shapes)
        layer.set_weights(weights)
        return layer

    def symbols(self, known=False):
        """Returns {argument: symbolic input}, of unknown lengths unless `known`."""
        given = {self.first: self.inputs, **self.call}
        return {
            name: keras.Input((x.shape[1] if known else None, *x.shape[2:]), dtype=x.dtype) for name, x in given.items()
        }

    def model(self, layer, known=False):
        """Returns a functional model that holds the layer."""
        inputs = self.symbols(known)
        return keras.Model([*inputs.values()] if self.call else inputs[self.first], layer(**inputs))

    def results(self, model):
        """Returns what a model of `model` gives, as an array."""
        return array(model(self.feed))

    @property
    def feed(self):
        """What a model of `model` is called with."""
        return [self.inputs, *self.call.values()] if self.call else self.inputs

    @property
    def shapes(self):
        """The shapes of all inputs."""
        return [x.shape for x in (self.inputs, *self.call.values())]

    @property
    def first(self):
        """The name of the first argument of a call."""
        return [*inspect.signature(self.layer_class.call).parameters][1]


def check_layer(layer_class, init, inputs, trainable_weights, tmp_path, **call):
    """Checks a layer whose output has a row for each position of its first input.

    Args:
        layer_class: the class.
        init: dict of constructor arguments: see `Row`. Ids (integers) come with `mask_zero=True`.
        inputs: NumPy array [B, T, …], the first input.
        trainable_weights: int, how many weights it must have.
        tmp_path: a folder.
        **call: further inputs, NumPy arrays.

    Returns:
        The layer and its output as an array.
    """
    row = Row(layer_class, init, inputs, call)
    layer = row.make()
    output = row.outputs(layer)
    assert len(layer.trainable_weights) == trainable_weights
    assert layer.supports_masking
    for check in (_check_config, _check_shapes, _check_subclass, _check_dtypes, _check_masks, _check_compiled):
        check(row, layer, output)
    _check_saving(row, layer, output, tmp_path)
    _check_training(row)
    one = row._replace(inputs=inputs[:1], call={name: x[:1] for name, x in call.items()})
    np.testing.assert_allclose(one.outputs(layer), output[:1], **CLOSE)
    training = {"training": True} if layer._call_has_training_arg else {}
    check_gradients(lambda: layer(inputs, **call, **training), layer.trainable_weights)
    return layer, output


def _check_config(row, layer, output):
    clone = type(layer).from_config(layer.get_config())
    assert clone.get_config() == layer.get_config()
    np.testing.assert_array_equal(row.outputs(row.with_weights(clone, layer.get_weights())), output)


def _check_shapes(row, layer, output):
    assert tuple(layer.compute_output_shape(*row.shapes)) == output.shape
    unknown = layer.compute_output_shape(*((None, None, *s[2:]) for s in row.shapes))
    assert tuple(unknown) == (None, None, *output.shape[2:])
    for known in (True, False):
        symbol = layer(**row.symbols(known))
        assert symbol.shape == (None, output.shape[1] if known else None, *output.shape[2:])
        assert symbol.dtype == output.dtype
    if not row.call:  # a Sequential takes one input
        assert keras.Sequential([layer])(row.inputs).shape == output.shape


def _check_saving(row, layer, output, folder):
    model = row.model(layer)
    np.testing.assert_allclose(row.results(model), output, **CLOSE)
    model.save(folder / "layer.keras")
    loaded = keras.saving.load_model(folder / "layer.keras")  # without custom_objects
    np.testing.assert_array_equal(row.results(loaded), row.results(model))


def _check_subclass(row, layer, output):
    """What a file holds of a layer of users is the user's class."""

    @keras.saving.register_keras_serializable("tests")
    class Doubled(row.layer_class):
        @functools.wraps(row.layer_class.call)  # Keras reads the names of its arguments
        def call(self, *args, **kwargs):
            return ops.multiply(row.layer_class.call(self, *args, **kwargs), 2)

    made = row._replace(layer_class=Doubled).make()
    loaded = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(made))
    assert type(loaded) is Doubled and loaded.get_config() == made.get_config()
    np.testing.assert_allclose(row.outputs(row.with_weights(loaded, layer.get_weights())), 2 * output, **CLOSE)


def _check_dtypes(row, layer, output):
    """Mixed precision keeps float32 weights; all precisions compute the same."""
    policies = [("mixed_bfloat16", "bfloat16", "float32", 0.1), ("mixed_float16", "float16", "float32", 0.01)]
    if BACKEND == "tensorflow":  # on the others Keras' own Dense gives float32, whatever its policy
        policies.append(("float64", "float64", "float64", 1e-5))
    for policy, compute_dtype, weight_dtype, tolerance in policies:
        other = row.with_weights(row.make(dtype=policy), layer.get_weights())
        assert {w.dtype for w in other.trainable_weights} <= {weight_dtype}
        assert keras.backend.standardize_dtype(other(row.inputs, **row.call).dtype) == compute_dtype
        if policy == policies[0][0]:
            assert other(**row.symbols()).dtype == compute_dtype
        np.testing.assert_allclose(row.outputs(other), output, atol=tolerance, rtol=tolerance)


class _Mask(keras.layers.Layer):
    """Gives the mask that Keras carries with its input."""

    supports_masking = True

    def call(self, inputs, mask=None):
        assert mask is not None, "the layer before did not carry its mask"
        return ops.cast(mask, "int32")


def _check_masks(row, layer, output):
    """The mask of the first input comes out again, and what it hides changes nothing elsewhere."""
    symbols, inputs = row.symbols(), row.inputs
    first = symbols[row.first]
    result = layer(**symbols | {row.first: keras.layers.Masking()(first) if first.dtype == "float32" else first})
    model = keras.Model([*symbols.values()], [result, _Mask()(result)])
    padded = np.pad(inputs, ((0, 0), (0, 3), *[(0, 0)] * (inputs.ndim - 2)))
    longer, mask = (array(x) for x in model([padded, *row.call.values()]))
    np.testing.assert_array_equal(mask, padded != 0 if inputs.ndim == 2 else (padded != 0).any(-1))
    alone = array(model([inputs, *row.call.values()])[0])
    np.testing.assert_allclose(longer[:, : inputs.shape[1]], alone, **CLOSE)


def _check_compiled(row, layer, output):
    """Compiled, the result is the same."""

    def function(first, *others):
        return layer(first, **dict(zip(row.call, others, strict=True)))

    np.testing.assert_allclose(array(compiled(function, row.inputs, *row.call.values())), output, **CLOSE)


def _check_training(row):
    """compile and fit in a functional model make the loss smaller and move every weight of the layer."""
    keras.utils.set_random_seed(0)
    layer = row.make()
    inner = row.model(layer, known=True)
    model = keras.Model(inner.input, keras.layers.Dense(1)(inner.output))
    # Graphs and XLA are `_check_compiled`'s: here they would only take their time.
    eager = {"run_eagerly": True, "jit_compile": False} if BACKEND == "tensorflow" else {}
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mean_squared_error", **eager)
    before = [array(w) for w in layer.trainable_weights]
    target = np.random.default_rng(2).normal(size=(*inner.output.shape[1:2], 1))
    target = np.broadcast_to(target, (len(row.inputs), *target.shape)).astype("float32")

    def loss():
        return np.square(row.results(model) - target).mean()

    untrained = loss()
    model.fit(row.feed, target, epochs=3, verbose=0)
    assert loss() < untrained
    for weight, old in zip(layer.trainable_weights, before, strict=True):
        assert np.abs(array(weight) - old).max() > 0, weight.path
