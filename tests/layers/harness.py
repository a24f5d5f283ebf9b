"""What every layer must do, on every backend, checked in one call.

`check_layer` is for the contract that all layers share. What a layer computes is checked in its own test.
"""

import functools

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
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def check_layer(layer_class, init, inputs, trainable_weights, tmp_path, **call):
    """Checks a layer whose output has a row for each position of its first input.

    Args:
        layer_class: the class.
        init: dict of constructor arguments. Ids (integers) come with `mask_zero=True`.
        inputs: NumPy array [B, T, …], the first input.
        trainable_weights: int, how many weights it must have.
        tmp_path: a folder.
        **call: further arguments of its calls; NumPy arrays are inputs, too.

    Returns:
        The layer and its output as an array.
    """
    layer = _make(layer_class, init)
    output = array(layer(inputs, **call))
    assert len(layer.trainable_weights) == trainable_weights
    assert layer.supports_masking
    _check_config(layer, output, inputs, call)
    _check_shapes(layer, output, inputs, call)
    _check_saving(layer, output, inputs, call, tmp_path)
    _check_subclass(layer_class, init, layer, output, inputs, call)
    _check_dtypes(layer_class, init, layer, output, inputs, call)
    _check_masks(layer, inputs, call)
    _check_compiled(layer, output, inputs, call)
    _check_training(layer_class, init, inputs, call)
    one = {name: value[:1] if isinstance(value, np.ndarray) else value for name, value in call.items()}
    np.testing.assert_allclose(array(layer(inputs[:1], **one)), output[:1], **CLOSE)
    training = {"training": True} if layer._call_has_training_arg else {}
    check_gradients(lambda: layer(inputs, **call, **training), layer.trainable_weights)
    return layer, output


def _make(layer_class, init, **options):
    """Makes a layer; a layer among its arguments is copied, for each has weights of its own."""

    def copy(value):
        if isinstance(value, keras.Layer):
            return type(value).from_config({**value.get_config(), **options})
        return [copy(part) for part in value] if isinstance(value, list) else value

    return layer_class(**{name: copy(value) for name, value in init.items()}, **options)


def functional(layer, inputs, call, lengths=True):
    """Returns (symbolic inputs, outputs) of a call in a functional model; unknown lengths unless `lengths`."""

    def symbol(x):
        return keras.Input((x.shape[1] if lengths else None, *x.shape[2:]), dtype=x.dtype)

    first = symbol(inputs)
    others = {name: symbol(x) for name, x in call.items() if isinstance(x, np.ndarray)}
    return [first, *others.values()], layer(first, **{**call, **others})


def feed(inputs, call):
    """Returns what a model of `functional` is called with."""
    return [inputs, *(x for x in call.values() if isinstance(x, np.ndarray))]


def _check_config(layer, output, inputs, call):
    clone = type(layer).from_config(layer.get_config())
    assert clone.get_config() == layer.get_config()
    clone.build(*(x.shape for x in feed(inputs, call)))
    clone.set_weights(layer.get_weights())
    np.testing.assert_array_equal(array(clone(inputs, **call)), output)


def _check_shapes(layer, output, inputs, call):
    shapes = [x.shape for x in feed(inputs, call)]
    assert tuple(layer.compute_output_shape(*shapes)) == output.shape
    unknown = layer.compute_output_shape(*((None, None, *s[2:]) for s in shapes))
    assert tuple(unknown) == (None, None, *output.shape[2:])
    for lengths in (True, False):
        symbol = functional(layer, inputs, call, lengths)[1]
        assert symbol.shape == (None, output.shape[1] if lengths else None, *output.shape[2:])
        assert symbol.dtype == output.dtype
    if not feed(inputs, call)[1:]:  # a Sequential takes one input
        assert keras.Sequential([layer])(inputs).shape == output.shape


def _check_saving(layer, output, inputs, call, folder):
    model = keras.Model(*functional(layer, inputs, call, lengths=False))
    np.testing.assert_allclose(array(model(feed(inputs, call))), output, **CLOSE)
    model.save(folder / "layer.keras")
    loaded = keras.saving.load_model(folder / "layer.keras")  # without custom_objects
    np.testing.assert_array_equal(array(loaded(feed(inputs, call))), array(model(feed(inputs, call))))


def _check_subclass(layer_class, init, layer, output, inputs, call):
    """What a file holds of a layer of users is the user's class."""

    @keras.saving.register_keras_serializable("tests")
    class Doubled(layer_class):
        @functools.wraps(layer_class.call)  # Keras reads the names of its arguments
        def call(self, *args, **kwargs):
            return ops.multiply(layer_class.call(self, *args, **kwargs), 2)

    made = _make(Doubled, init)
    loaded = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(made))
    assert type(loaded) is Doubled and loaded.get_config() == made.get_config()
    loaded.build(*(x.shape for x in feed(inputs, call)))
    loaded.set_weights(layer.get_weights())
    np.testing.assert_allclose(array(loaded(inputs, **call)), 2 * output, **CLOSE)


def _check_dtypes(layer_class, init, layer, output, inputs, call):
    """Mixed precision keeps float32 weights; all precisions compute the same."""
    policies = [("mixed_bfloat16", "bfloat16", "float32", 0.1), ("mixed_float16", "float16", "float32", 0.01)]
    if BACKEND == "tensorflow":  # on the others Keras' own Dense gives float32, whatever its policy
        policies.append(("float64", "float64", "float64", 1e-5))
    for policy, compute_dtype, weight_dtype, tolerance in policies:
        other = _make(layer_class, init, dtype=policy)
        other.build(*(x.shape for x in feed(inputs, call)))
        assert {w.dtype for w in other.trainable_weights} <= {weight_dtype}
        other.set_weights(layer.get_weights())
        result = other(inputs, **call)
        assert keras.backend.standardize_dtype(result.dtype) == compute_dtype
        if policy == policies[0][0]:
            assert functional(other, inputs, call)[1].dtype == compute_dtype
        np.testing.assert_allclose(array(ops.cast(result, "float32")), output, atol=tolerance, rtol=tolerance)


class _Mask(keras.layers.Layer):
    """Gives the mask that Keras carries with its input."""

    supports_masking = True

    def call(self, inputs, mask=None):
        assert mask is not None, "the layer before did not carry its mask"
        return ops.cast(mask, "int32")


def _check_masks(layer, inputs, call):
    """The mask of the first input comes out again, and what it hides changes nothing elsewhere."""
    [symbol, *others], _ = functional(layer, inputs, call, lengths=False)
    masked = keras.layers.Masking()(symbol) if symbol.dtype == "float32" else symbol
    named = dict(zip((name for name, x in call.items() if isinstance(x, np.ndarray)), others, strict=True))
    result = layer(masked, **{**call, **named})
    model = keras.Model([symbol, *others], [result, _Mask()(result)])
    padded = np.pad(inputs, ((0, 0), (0, 3), *[(0, 0)] * (inputs.ndim - 2)))
    longer, mask = (array(x) for x in model(feed(padded, call)))
    np.testing.assert_array_equal(mask, padded != 0 if inputs.ndim == 2 else (padded != 0).any(-1))
    length = inputs.shape[1]
    np.testing.assert_allclose(longer[:, :length], array(model(feed(inputs, call))[0]), **CLOSE)


def _check_compiled(layer, output, inputs, call):
    """Compiled, the result is the same."""
    arrays = {name: x for name, x in call.items() if isinstance(x, np.ndarray)}
    options = {name: x for name, x in call.items() if name not in arrays}

    def function(first, *others):
        return layer(first, **dict(zip(arrays, others, strict=True)), **options)

    np.testing.assert_allclose(array(compiled(function, inputs, *arrays.values())), output, **CLOSE)


def _check_training(layer_class, init, inputs, call):
    """compile and fit in a functional model make the loss smaller and move every weight of the layer."""
    keras.utils.set_random_seed(0)
    layer = _make(layer_class, init)
    symbols, output = functional(layer, inputs, call)
    model = keras.Model(symbols, keras.layers.Dense(1)(output))
    # Graphs and XLA are `_check_compiled`'s: here they would only take their time.
    eager = {"run_eagerly": True, "jit_compile": False} if BACKEND == "tensorflow" else {}
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mean_squared_error", **eager)
    before = [array(w) for w in layer.trainable_weights]
    target = np.random.default_rng(2).normal(size=(*output.shape[1:2], 1))
    target = np.broadcast_to(target, (len(inputs), *target.shape)).astype("float32")

    def loss():
        return np.square(array(model(feed(inputs, call))) - target).mean()

    untrained = loss()
    model.fit(feed(inputs, call), target, epochs=3, verbose=0)
    assert loss() < untrained
    for weight, old in zip(layer.trainable_weights, before, strict=True):
        assert np.abs(array(weight) - old).max() > 0, weight.path
