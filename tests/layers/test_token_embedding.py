"""Token embedding and the softmax that shares its matrix: section 3.4 of the paper."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import X, check_layer

IDS = np.array([[3, 4, 0, 1], [5, 0, 0, 0], [8, 6, 7, 2]], "int32")  # 3 rows of 4


@pytest.mark.slow
def test_contract(tmp_path):
    init = {"vocab_size": 9, "hidden_size": 8, "mask_zero": True}
    check_layer(layers.TokenEmbedding, init, IDS, 1, tmp_path)


def test_scaled_by_the_root_of_the_size_and_zero_at_padding():
    layer = layers.TokenEmbedding(9, 8)
    output = array(layer(IDS))
    np.testing.assert_allclose(output[0, 0], array(layer.embeddings)[3] * np.sqrt(8), rtol=1e-6)
    assert (output[IDS == 0] == 0).all()


def test_embeddings_that_are_not_scaled():
    layer = layers.TokenEmbedding(9, 8, scale=False)
    np.testing.assert_array_equal(array(layer(IDS))[0, 0], array(layer.embeddings)[3])
    assert not array(layer(IDS))[IDS == 0].any()


@pytest.mark.slow
def test_smaller_embeddings_are_projected_there_and_back(tmp_path):
    init = {"vocab_size": 9, "hidden_size": 8, "embedding_size": 3, "mask_zero": True}
    layer, output = check_layer(layers.TokenEmbedding, init, IDS, 2, tmp_path)
    matrix = array(layer.embeddings) @ array(layer.projection)  # [V, hidden], of rank 3
    np.testing.assert_allclose(output, np.where(IDS[..., None] == 0, 0, matrix[IDS] * np.sqrt(8)), atol=1e-5)
    np.testing.assert_allclose(array(layer(X, reverse=True)), X @ matrix.T, atol=1e-5)


def test_tied_softmax():
    layer = layers.TokenEmbedding(9, 8)
    layer.build()
    np.testing.assert_allclose(array(layer(X, reverse=True)), X @ array(layer.embeddings).T, atol=1e-5)


def test_biased_softmax():
    layer = layers.TokenEmbedding(9, 8, use_bias=True)
    layer.build()
    layer.bias.assign(np.arange(9))
    np.testing.assert_allclose(array(layer(X, reverse=True)), X @ array(layer.embeddings).T + np.arange(9), atol=1e-5)
    assert layers.TokenEmbedding.from_config(layer.get_config()).use_bias
    assert (array(layer(IDS))[IDS == 0] == 0).all()


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_a_matrix_made_before_gives_the_same_logits(dtype):
    layer = layers.TokenEmbedding(9, 8, use_bias=True, dtype=dtype)
    layer.build()
    matrix = layer.reverse_matrix()
    for x in (X, X[:, 0]):
        np.testing.assert_array_equal(array(layer(x, reverse=True, matrix=matrix)), array(layer(x, reverse=True)))


def test_a_tied_functional_model_is_saved_with_one_matrix(tmp_path):
    layer, ids = layers.TokenEmbedding(9, 8), keras.Input((None,), dtype="int32")
    logits = layer(layer(ids), reverse=True)
    assert logits.shape == (None, None, 9)
    model = keras.Model(ids, logits)
    model.save(tmp_path / "tied.keras")
    loaded = keras.saving.load_model(tmp_path / "tied.keras")
    assert len(loaded.weights) == 1
    np.testing.assert_array_equal(array(loaded(IDS)), array(model(IDS)))


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_logits_carry_the_mask_of_what_they_are_made_of(dtype):
    layer = layers.TokenEmbedding(9, 8, mask_zero=True)
    embedded = layer(IDS.astype(dtype))
    logits = layer(layers.SinusoidalPositionEmbedding()(embedded), reverse=True)
    total = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(np.maximum(IDS, 1), logits)
    log_p = array(logits) - np.log(np.exp(array(logits)).sum(-1, keepdims=True))
    expected = -np.take_along_axis(log_p, IDS[..., None], -1)[..., 0][IDS != 0].mean()
    np.testing.assert_allclose(array(total), expected, rtol=1e-5)


@pytest.mark.few("mixed_bfloat16-float32", instead="test_logits_carry_the_mask_of_what_they_are_made_of")
@pytest.mark.slow
@pytest.mark.parametrize("policy, dtype", [("float32", "int32"), ("mixed_bfloat16", "float32")])
def test_a_tied_functional_encoder_decoder_is_fitted(policy, dtype):
    rng = np.random.default_rng(0)
    source, target = rng.integers(3, 9, (2, 6, 5))
    source[1, 3:] = target[2, 2:] = 0
    embedding = layers.TokenEmbedding(9, 8, mask_zero=True, dtype=policy)
    inputs, targets = keras.Input((None,), dtype=dtype), keras.Input((None,), dtype=dtype)
    memory = layers.TransformerEncoderLayer(2, 16, dtype=policy)(embedding(inputs))
    hidden = layers.TransformerDecoderLayer(2, 16, dtype=policy)(embedding(targets), memory)
    model = keras.Model([inputs, targets], embedding(hidden, reverse=True))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    eager = keras.backend.backend() == "tensorflow"  # a graph takes longer
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"], run_eagerly=eager)
    history = model.fit([source, target], target, epochs=5, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    right = array(model([source, target])).argmax(-1) == target
    _, accuracy = model.evaluate([source, target], target, verbose=0)
    np.testing.assert_allclose(accuracy, right[target != 0].mean(), rtol=1e-5)  # padding does not count


def test_float_ids_are_not_rounded_to_the_precision_of_the_hidden_states():
    layer, ids = layers.TokenEmbedding(300, 8, dtype="mixed_bfloat16"), np.array([[257, 259, 299]])
    found, expected = (array(ops.cast(layer(ids.astype(dtype)), "float32")) for dtype in ("float32", "int32"))
    np.testing.assert_array_equal(found, expected)


def test_initializer():
    layer = layers.TokenEmbedding(9, 8, embeddings_initializer=keras.initializers.Constant(0.5))
    layer.build()
    assert (array(layer.embeddings) == 0.5).all()
    assert layers.TokenEmbedding.from_config(layer.get_config()).get_config() == layer.get_config()


def test_logits_are_float32_in_mixed_precision():
    layer = layers.TokenEmbedding(9, 8, dtype="mixed_bfloat16")
    layer.build()
    assert keras.backend.standardize_dtype(layer(X, reverse=True).dtype) == "float32"
    assert layer(keras.Input((None, 8)), reverse=True).dtype == "float32"


def test_initial_embeddings_have_unit_variance_after_scaling():
    layer = layers.TokenEmbedding(500, 64)
    assert 0.97 < array(layer(np.arange(1, 500)[None])).std() < 1.03
    smaller = layers.TokenEmbedding(500, 64, embedding_size=16)  # projected by N(0, 1 / 16)
    smaller.build()
    assert array(smaller.embeddings).std() == pytest.approx(1 / 8, rel=0.05)
    assert array(smaller.projection).std() == pytest.approx(1 / 4, rel=0.1)


def test_only_with_mask_zero_a_mask_is_carried():
    assert layers.TokenEmbedding(9, 8).compute_mask(IDS) is None
    assert array(layers.TokenEmbedding(9, 8, mask_zero=True).compute_mask(IDS)).tolist() == (IDS != 0).tolist()


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's gradient")
def test_a_gradient_without_a_scatter_is_that_of_the_look_up():
    import tensorflow as tf

    layer, found = layers.TokenEmbedding(9, 8), []
    layer.build()
    for layer.avoids_scatter in (False, True):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(IDS) ** 3)
        found.append(tf.convert_to_tensor(tape.gradient(loss, layer.embeddings.value)))
    np.testing.assert_allclose(*found, atol=1e-5)


@pytest.mark.parametrize("bad", [-1, 9])
def test_an_id_outside_the_vocabulary_is_named(bad):
    with pytest.raises(ValueError, match=rf"id {bad} is outside the vocabulary: ids must be in \[0, 9\)"):
        layers.TokenEmbedding(9, 8)(np.array([[1, bad]]))
