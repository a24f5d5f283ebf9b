"""What a model writes, and what is read from it again."""

import keras
import numpy as np

from tests.layers.equations import array
from tests.models.keras_methods.table import SMALLEST, method, same


@method("save", "compile_from_config", "get_compile_config", "get_build_config", "build_from_config", of_kinds=True)
def save(case):
    model = case.compiled(keras.optimizers.Adam(0.01), case.fresh(), weighted_metrics=case.metrics())
    model.fit(case.x, case.y, epochs=2, verbose=0)
    model.save(case.folder / "model.keras")
    loaded = keras.saving.load_model(case.folder / "model.keras")
    assert type(loaded) is type(model) and loaded.get_config() == model.get_config()
    same(case.logits(loaded), case.logits(model), 0)
    assert int(loaded.optimizer.iterations) == 2
    losses = [each.evaluate(case.x, case.y, verbose=0, return_dict=True) for each in (loaded, model)]
    assert losses[0] == losses[1]
    for each in (loaded, model):  # they train on as one
        each.train_on_batch(case.x, case.y)
    same(loaded.get_weights(), model.get_weights())


@method("save_weights", "load_weights")
def save_weights(case):
    case.model.save_weights(case.folder / "model.weights.h5")
    other = case.fresh()
    other.set_weights([weight * 0 for weight in other.get_weights()])
    other.load_weights(case.folder / "model.weights.h5")
    same(case.logits(other), case.logits(case.model), 0)
    case.model.save_weights(case.folder / "parts.weights.json", max_shard_size=1)
    other.set_weights([weight * 0 for weight in other.get_weights()])
    other.load_weights(case.folder / "parts.weights.json")
    same(case.logits(other), case.logits(case.model), 0)


@method("get_weights", "set_weights")
def get_weights(case):
    weights = case.model.get_weights()
    other = case.fresh()
    other.set_weights([weight + 1 for weight in weights])
    for weight, value in zip(other.weights, weights, strict=True):
        np.testing.assert_array_equal(array(weight), value + 1)
    other.set_weights(weights)
    same(case.logits(other), case.logits(case.model), 0)


@method("get_state_tree", "set_state_tree")
def get_state_tree(case):
    model = case.compiled(keras.optimizers.Adam(0.01))
    model.train_on_batch(case.x, case.y)
    state, expected = model.get_state_tree(value_format="numpy_array"), case.logits(model)
    model.train_on_batch(case.x, case.y)
    model.set_state_tree(state)
    same(case.logits(model), expected, 0)
    assert int(model.optimizer.iterations) == 1


def check_served(case, model, serve):
    """Asserts that a function of tensors gives the model's logits, of other numbers of rows and lengths, too."""
    import tensorflow as tf

    shorter = {f: ids[:2, : ids.shape[1] - 1] if ids.ndim == 2 else ids[:2] for f, ids in case.needed.items()}
    for x in (case.needed, shorter):
        outputs = serve({f: tf.constant(ids) for f, ids in x.items()})
        found = [outputs[name] for name in sorted(outputs)] if isinstance(outputs, dict) else [outputs]
        same([array(each) for each in found], case.logits(model, x), 3e-6)


OF_INTS = "Keras takes its inputs for floats, of the lengths of a call"


@method("export", models=SMALLEST, of_kinds=True, beyond=OF_INTS)
def saved_model_after_a_call(case):
    model = case.fresh()
    model(case.needed)
    check_saved_model(case, model)


@method(models=SMALLEST, beyond=OF_INTS)
def saved_model_after_fit(case):
    model = case.compiled(keras.optimizers.Adam(0.01), case.fresh(), run_eagerly=False)
    model.fit(case.needed, case.y, verbose=0)
    check_saved_model(case, model)


@method(models=SMALLEST, beyond=OF_INTS)
def saved_model_of_a_loaded_model(case):
    case.model.save(case.folder / "model.keras")
    check_saved_model(case, keras.saving.load_model(case.folder / "model.keras"))


@method(models=SMALLEST, beyond=OF_INTS)
def saved_model_without_a_call(case):
    model = case.row.unbuilt()
    check_saved_model(case, model)


def check_saved_model(case, model):
    import tensorflow as tf

    tf.saved_model.save(model, case.folder / "saved_model")
    loaded = tf.saved_model.load(case.folder / "saved_model")
    serve = loaded.signatures["serving_default"]
    check_served(case, model, lambda x: serve(**x))
    model.export(case.folder / "export", verbose=False)
    exported = tf.saved_model.load(case.folder / "export")
    check_served(case, model, exported.serve)


@method("call", "symbolic_call", "compute_mask", of_kinds=True)
def functional(case):
    symbols = {f: keras.Input((None,) * (ids.ndim - 1), dtype="int32", name=f) for f, ids in case.x.items()}
    outer = keras.Model(symbols, case.model(symbols))
    same(case.logits(outer), case.logits(case.model), 0)
    assert all(any(weight is other for other in outer.weights) for weight in case.model.weights)
    outer.save(case.folder / "outer.keras")
    loaded = keras.saving.load_model(case.folder / "outer.keras")
    same(case.logits(loaded), case.logits(case.model), 0)
    assert type(loaded.get_layer(case.model.name)) is type(case.model)
    outer.compile(run_eagerly=True)
    same(case.predictions(outer.predict(case.x, verbose=0)), case.logits(case.model))


@method(
    "compute_output_shape", "compute_output_spec", of_kinds=True, is_quick=True,
    beyond="it has no `compute_output_shape`",
)  # fmt: skip
def compute_output_shape(case):
    outputs = case.model(case.x, training=False)
    symbols = {f: keras.KerasTensor(ids.shape, dtype="int32") for f, ids in case.x.items()}
    for specs in (case.model.compute_output_spec(symbols), case.model.symbolic_call(symbols)):
        keras.tree.assert_same_structure(specs, outputs)
        for spec, output in zip(keras.tree.flatten(specs), keras.tree.flatten(outputs), strict=True):
            assert tuple(spec.shape) == tuple(output.shape)
            assert spec.dtype == keras.backend.standardize_dtype(output.dtype)
    shapes = case.model.compute_output_shape({f: ids.shape for f, ids in case.x.items()})
    assert shapes == keras.tree.map_structure(lambda output: tuple(output.shape), outputs)


@method("stateless_call", "stateless_compute_loss")
def stateless_call(case):
    model = case.model
    trainable = [keras.ops.convert_to_tensor(value) for value in model.trainable_variables]
    others = [keras.ops.convert_to_tensor(value) for value in model.non_trainable_variables]
    outputs, _ = model.stateless_call(trainable, others, case.x)
    same(case.predictions(outputs), case.logits(model), 0)
    outputs, _ = model.stateless_call([value * 0 for value in trainable], others, case.x)
    assert any(np.abs(one - other).max() > 1e-3 for one, other in zip(
        case.predictions(outputs), case.logits(model), strict=True
    ))  # fmt: skip


@method("quantize", "quantization_mode", of_kinds=True, beyond="its configuration does not say what is quantized")
def quantize(case):
    model, exact = case.fresh(), case.logits(case.model)
    model.quantize("int8")
    found = case.logits(model)
    for one, other in zip(found, exact, strict=True):
        real = np.abs(other) < 1e6  # a class head's first logit is no class
        assert 0 < np.abs(one - other)[real].max() < 2 * max(other[real].std(), 0.1)
    model.save(case.folder / "int8.keras")
    same(case.logits(keras.saving.load_model(case.folder / "int8.keras")), found, 0)
