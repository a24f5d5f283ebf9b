"""What Keras' own layers can do with TensorFlow alone, every public layer can."""

import keras
import numpy as np
import pytest

from tests.layers.backend import BACKEND
from tests.layers.equations import array
from tests.layers.every_layer import ROWS
from tests.layers.harness import CLOSE

pytestmark = [
    pytest.mark.skipif(BACKEND != "tensorflow", reason="SavedModels and strategies are TensorFlow's"),
    pytest.mark.parametrize("row", ROWS.values(), ids=ROWS),
    pytest.mark.few("FeedForward", "MultiHeadAttention", "TokenEmbedding", "UniversalStack"),
]


def test_a_functional_model_is_exported(row, tmp_path):
    import tensorflow as tf

    model = row.model(row.make())
    model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(tmp_path / "exported")
    np.testing.assert_allclose(array(exported.serve(row.feed)), row.results(model), **CLOSE)


def test_saved_models_of_a_layer_and_of_its_model(row, tmp_path):
    import tensorflow as tf

    layer = row.made()
    given = {row.first: row.inputs, **row.call}
    signature = tf.function(lambda **given: layer(**given), autograph=False)
    signature = signature.get_concrete_function(**{n: tf.TensorSpec(x.shape, x.dtype, n) for n, x in given.items()})
    for name, saved in {"layer": layer, "model": row.model(layer)}.items():
        tf.saved_model.save(saved, tmp_path / name, signatures=signature)
        loaded = tf.saved_model.load(tmp_path / name)
        [found] = loaded.signatures["serving_default"](**{n: tf.constant(x) for n, x in given.items()}).values()
        np.testing.assert_allclose(array(found), row.outputs(layer), **CLOSE)


def test_predict_compiled_by_xla(row):
    model = row.model(row.make())
    model.compile(jit_compile=True)
    np.testing.assert_allclose(model.predict(row.feed, verbose=0), row.results(model), atol=1e-4)


def test_keras_floatx_does_not_change_a_layer_with_its_own_policy(row):
    import tensorflow as tf

    layer = row.made(dtype="float32")
    expected = row.outputs(layer)
    traced = tf.function(lambda inputs, call: layer(inputs, **call), autograph=False, reduce_retracing=True)
    keras.config.set_floatx("bfloat16")
    try:
        found = layer(row.inputs, **row.call), traced(row.inputs, dict(row.call))
    finally:
        keras.config.set_floatx("float32")
    for output in found:
        np.testing.assert_allclose(array(output), expected, **CLOSE)


def test_fit_in_a_strategys_scope(row):
    import tensorflow as tf

    if any(x.dtype == bool for x in row.call.values()):
        pytest.skip("Keras can't fit inputs of bool there")

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())
    with strategy.scope():
        model = row.model(row.make())
        model.compile("sgd", lambda _, y: keras.ops.mean(keras.ops.exp(-abs(y))), run_eagerly=False, jit_compile=False)
    targets, before = np.zeros(row.results(model).shape, "float32"), model.get_weights()
    model.fit(row.feed, targets, batch_size=2, verbose=0)
    changes = [np.abs(new - old).max() for new, old in zip(model.get_weights(), before, strict=True)]
    assert np.isfinite(changes).all() and (any(changes) or not model.trainable_weights)


def test_a_layer_built_in_a_function(row):
    import tensorflow as tf

    layer = row.make()
    traced = tf.function(lambda inputs, call: layer(inputs, **call), autograph=False)
    np.testing.assert_allclose(array(traced(row.inputs, dict(row.call))), row.outputs(layer), **CLOSE)


def test_checkpoints(row, tmp_path):
    import tensorflow as tf

    layer, other = row.made(), row.made()
    path = tf.train.Checkpoint(layer=layer).save(tmp_path / "checkpoint")
    tf.train.Checkpoint(layer=other).restore(path).assert_consumed()
    np.testing.assert_array_equal(row.outputs(other), row.outputs(layer))
