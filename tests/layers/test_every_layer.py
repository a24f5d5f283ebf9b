"""What Keras' own layers can do, every public layer can: a method of Keras' per test, a layer per case.

`check_layer`, which each layer's own test calls, tries calls, files, masks, subclasses, compiled calls and training.

Left out, since Keras' own layers (as of 3.15) can't do it either: Python lists as inputs; an activation that is a
lambda, and rates that are NumPy's, in a file; parts that stay frozen in `clone_model`; a dtype policy "int8_from_…" of
a layer with others inside. Arguments of constructors are each layer's own: none but `activity_regularizer` takes a
regularizer or a constraint; those of a weight are set on it.
"""

# Nearest tests of: t2t_lite/layers/base.py

import copy
import inspect
import json
import pickle
import warnings

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.backend import BACKEND
from tests.layers.equations import array
from tests.layers.every_layer import IDS, MASK, ROWS
from tests.layers.harness import CLOSE

every_layer = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
few_layers = pytest.mark.few(
    "AdaptiveComputation", "FeedForward", "MultiHeadAttention", "SpanHead", "StepSignals", "TokenEmbedding",
    "TransformerEncoderLayer", "UniversalStack",
)  # fmt: skip


def same(row, found, expected):
    np.testing.assert_allclose(row.outputs(found), row.outputs(expected), **CLOSE)


def test_every_public_layer_has_a_row():
    public = {name for name in layers.__all__ if inspect.isclass(kind := getattr(layers, name))
              and issubclass(kind, keras.Layer)}  # fmt: skip
    of_extras = {name for name in ROWS if ".extras." in ROWS[name].layer_class.__module__}
    assert {row.layer_class.__name__ for row in ROWS.values()} == public | of_extras == set(ROWS)


@every_layer
def test_shapes_and_dtypes_are_foretold(row):
    for policy in ("float32", "mixed_bfloat16", "float16"):
        layer = row.make(dtype=policy)
        output = layer(row.inputs, **row.call)
        known = layer.compute_output_spec(**row.symbols(known=True))
        unknown = layer.compute_output_spec(**row.symbols())
        assert tuple(known.shape)[1:] == tuple(output.shape)[1:] and unknown.shape[0] is None
        assert known.dtype == unknown.dtype == keras.backend.standardize_dtype(output.dtype)
    shapes = [x.shape for x in (row.inputs, *row.call.values())]
    assert tuple(layer.compute_output_shape(*shapes)) == tuple(output.shape)
    if build := layer.get_build_config():  # by the names that Keras has for them, as in a summary
        names = build.get("shapes_dict") or {
            [*inspect.signature(row.layer_class.build).parameters][1]: row.inputs.shape
        }
        assert tuple(layer.compute_output_shape(**names)) == tuple(output.shape)


@every_layer
def test_configurations_make_and_build_it_again(row):
    layer = row.made(name="mine")
    config, build = (json.loads(json.dumps(found)) for found in (layer.get_config(), layer.get_build_config()))
    again = row.layer_class.from_config(config)
    again.build_from_config(build)
    assert again.built and again.count_params() == sum(w.size for w in layer.get_weights())
    again.set_weights(layer.get_weights())
    same(row, again, layer)
    assert json.loads(json.dumps(again.get_config())) == config
    other = keras.layers.deserialize(json.loads(json.dumps(keras.layers.serialize(layer))))
    assert type(other) is row.layer_class and other.name == "mine" in repr(other)
    store = {}
    layer.save_own_variables(store)
    again.load_own_variables(store)
    assert len({w.path for w in layer.weights}) == len(layer.weights)


@few_layers
@every_layer
def test_copies(row):
    layer = row.made()
    for made in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        same(row, made, layer)
        assert not {id(w) for w in made.weights} & {id(w) for w in layer.weights}
    assert not copy.deepcopy(row.make()).weights


@every_layer
def test_a_model_that_holds_it(row, tmp_path):
    model = row.model(row.make(name="mine"))
    clone = keras.models.clone_model(model)
    model.save_weights(tmp_path / "model.weights.h5")
    clone.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(row.results(clone), row.results(model), **CLOSE)
    lines = []
    model.summary(print_fn=lambda line, **_: lines.append(line), expand_nested=True, show_trainable=True)
    assert "mine" in "".join(lines) and model.get_layer("mine").output is not None
    if not row.call:
        inputs = keras.Input((None, *row.inputs.shape[2:]), dtype=row.inputs.dtype)
        alone = keras.Sequential([inputs, row.make()])
        assert tuple(alone(row.inputs).shape) == row.results(model).shape


@every_layer
def test_frozen_it_has_nothing_to_train_in_any_model(row):
    frozen = row.make(trainable=False)
    before = row.make()
    before.trainable = False
    for layer in (frozen, before):
        model = row.model(layer)
        assert not layer.trainable_weights and not model.trainable_weights and len(model.weights) == len(layer.weights)
        assert not row.layer_class.from_config(layer.get_config()).trainable
        layer.trainable = True
        assert len(model.trainable_weights) == len(row.made().trainable_weights)


@few_layers
@every_layer
def test_a_frozen_part_stays_frozen_in_a_file(row, tmp_path):
    layer = row.made()
    parts = [part for part in layer._flatten_layers() if part.weights and not part._layers]
    if not parts:
        return
    parts[-1].trainable = False
    model = row.model(layer)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    trained = [[w.trainable for w in each.weights] for each in (loaded, model)]
    assert trained[0] == trained[1] and False in trained[0]


@few_layers
@every_layer
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "float64"])
def test_global_policies_and_own_ones(row, policy):
    if BACKEND != "tensorflow" and policy == "float64":
        pytest.skip("Keras' own Dense gives float32 there")
    weights = "float32" if policy.startswith("mixed") else policy
    keras.config.set_dtype_policy(policy)
    try:
        by_global = row.made()
        assert np.isfinite(row.outputs(by_global)).all()
    finally:
        keras.config.set_dtype_policy("float32")
    own = row.made(dtype=policy)  # with parts of float32, where it is given some
    assert np.isfinite(row.outputs(own)).all()
    assert by_global.dtype_policy.name == own.dtype_policy.name == policy
    assert {w.dtype for w in by_global.weights} <= {weights}
    assert row.layer_class.from_config(own.get_config()).dtype_policy.name == policy


@few_layers
@every_layer
def test_int8(row, tmp_path):
    layer = row.made()
    if not row.matrices:
        with pytest.raises(NotImplementedError, match="`quantize`") if not layer._layers else warnings.catch_warnings():
            layer.quantize("int8")
        return
    layer.quantize("int8")
    assert "int8" in {w.dtype for w in layer.weights}
    again = row.layer_class.from_config(json.loads(json.dumps(layer.get_config())))
    again.build_from_config(layer.get_build_config())
    again.set_weights(layer.get_weights())
    same(row, again, layer)
    row.model(layer).save(tmp_path / "model.keras")
    np.testing.assert_allclose(
        row.results(keras.saving.load_model(tmp_path / "model.keras")), row.outputs(layer), **CLOSE
    )


@every_layer
def test_stateless_calls(row):
    layer = row.made()
    variables = layer.trainable_variables, layer.non_trainable_variables
    inputs = ops.convert_to_tensor(row.inputs)  # which `stateless_call` with losses leaves to its caller
    output, state = layer.stateless_call(*variables, inputs, **row.call)
    np.testing.assert_allclose(array(output), row.outputs(layer), **CLOSE)
    assert len(state) == len(variables[1])
    training = {"training": True} if layer._call_has_training_arg else {}
    *_, losses = layer.stateless_call(*variables, inputs, **row.call, **training, return_losses=True)
    assert len(losses) <= getattr(layer, "has_costs", False)


@every_layer
def test_masks_are_carried_without_a_warning(row):
    layer, inputs = row.make(), keras.layers.Masking()(row.inputs) if row.inputs.dtype == "float32" else row.inputs
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Layer")
        layer(inputs, **row.call)
    parameters = inspect.signature(row.layer_class.call).parameters
    if mask := {"query_mask", "mask"} & {*parameters} and ("mask" if not row.call else "query_mask"):
        explicit = {mask: MASK} if mask in parameters else {}
        assert layer(inputs, **row.call, **explicit).shape == layer(inputs, **row.call).shape
    mask = layer.compute_mask(ops.convert_to_tensor(row.inputs), MASK)
    assert mask is None or array(mask).tolist() == MASK.tolist()


@every_layer
def test_regularizers(row):
    layer = row.made(activity_regularizer="l2")
    assert len(layer.losses) == 1
    assert len(row.layer_class.from_config(layer.get_config()).activity_regularizer.get_config()) > 0
    plain = row.made()
    for weight in plain.trainable_weights:
        weight.regularizer = keras.regularizers.L2()
    assert len(plain.losses) == len(plain.trainable_weights)


@every_layer
def test_inputs_that_are_unusual(row):
    layer, expected = row.made(), row.outputs(row.made())
    call = {name: x[:0] for name, x in row.call.items()}
    assert tuple(layer(row.inputs[:0], **call).shape) == (0, *expected.shape[1:])
    none = layer(row.inputs[:, :0], **({"allowed": MASK[:, :0]} if "allowed" in row.call else row.call))
    assert none.shape[0] == 3
    expected = row.outputs(layer)
    np.testing.assert_allclose(array(layer(**{row.first: row.inputs}, **row.call)), expected, **CLOSE)
    np.testing.assert_allclose(array(layer(keras.Variable(row.inputs, trainable=False), **row.call)), expected, **CLOSE)
    for dtype in ("float16", "float64") if row.inputs.dtype == "float32" else ("int64", "uint8", "float32"):
        np.testing.assert_allclose(array(layer(row.inputs.astype(dtype), **row.call)), expected, atol=0.02)
    if row.inputs.dtype == "float32":
        ones = [array(layer(np.ones(row.inputs.shape, dtype), **row.call)) for dtype in ("int32", "float32")]
        np.testing.assert_allclose(*ones, **CLOSE)


@every_layer
def test_inputs_of_another_size_are_refused_symbolic_ones_too(row):
    if row.layer_class in (layers.TokenEmbedding, layers.Dropout):
        return  # take any
    layer = row.made()
    others = {name: x for name, x in row.symbols().items() if name != row.first}
    with pytest.raises(ValueError, match=r"axis -1 .* value 8"):
        layer(np.ones((3, 5, 1), "float32"), **row.call)
    with pytest.raises(ValueError, match=r"axis -1 .* value 8"):
        layer(keras.Input((5, 6)), **others)


def test_hidden_states_of_another_size_have_no_logits():
    layer = layers.TokenEmbedding(9, 8)
    for inputs in (np.ones((2, 5, 16), "float32"), keras.Input((5, 16))):
        with pytest.raises(ValueError, match="hidden states of size 8"):
            layer(inputs, reverse=True)
    assert layer(layer(IDS), reverse=True).shape == (3, 5, 9)


@pytest.mark.parametrize("name", ["Dropout", "ClassHead", "TransformerEncoderLayer", "TransformerStack"])
def test_training_is_that_of_the_layer_around(name):
    row = ROWS[name]
    if name == "ClassHead":
        row = row._replace(init={**row.init, "dropout": 0.5})

    class Around(keras.layers.Layer):
        def __init__(self, part):
            super().__init__()
            self.part = part

        def call(self, inputs, training=None):
            return self.part(inputs, **row.call)

    around = Around(row.make())
    plain = array(around(row.inputs))
    np.testing.assert_array_equal(array(around(row.inputs, training=False)), plain)
    np.testing.assert_array_equal(row.outputs(around.part, training=None), plain)
    assert np.abs(array(around(row.inputs, training=True)) - plain).max() > 0


@pytest.mark.few("FeedForward", "MultiHeadAttention", "SpanHead", "TransformerStack")
@every_layer
def test_lora_in_its_parts_survives_files_and_copies(row, tmp_path):
    layer = row.made()
    parts = [part for part in layer._flatten_layers() if hasattr(part, "enable_lora")]
    for part in parts:
        part.enable_lora(2)
        part.lora_kernel_b.assign(np.ones(part.lora_kernel_b.shape))
    if not parts:
        return
    model = row.model(layer)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(row.results(loaded), row.outputs(layer), **CLOSE)
    assert len(loaded.trainable_weights) == len(model.trainable_weights) >= 2 * len(parts)
    same(row, copy.deepcopy(layer), layer)
