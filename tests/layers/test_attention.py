"""Multi-head attention against section 3.2 of the paper, its caches and what can be overridden."""

# Nearest tests of: t2t_lite/layers/dense.py, t2t_lite/layers/masks.py

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.layers.context import Context
from tests.layers.equations import array, attention_in_numpy
from tests.layers.harness import MEMORY, X, check_layer


@pytest.mark.slow
def test_contract(tmp_path):
    check_layer(layers.MultiHeadAttention, {"num_heads": 2, "dropout": 0.1}, X, 4, tmp_path, value=MEMORY)


@pytest.mark.parametrize("sizes", [(None, None), (3, None), (None, 5), (3, 5)], ids=str)
def test_paper_equation(sizes):
    layer = layers.MultiHeadAttention(2, *sizes)
    output = array(layer(X, MEMORY))
    assert (layer.query_size, layer.value_size) == tuple(size or 4 for size in sizes)  # hidden size 8 / 2 heads
    np.testing.assert_allclose(output, attention_in_numpy(layer, X, MEMORY, True), atol=1e-5)


def test_keys_may_be_of_another_sequence_and_size_than_values():
    layer, keys = layers.MultiHeadAttention(2), np.concatenate([MEMORY, MEMORY[..., :3]], axis=-1)
    layer.build(X.shape, MEMORY.shape, keys.shape)
    expected = attention_in_numpy(layer, X, MEMORY, True, keys)
    np.testing.assert_allclose(array(layer(X, MEMORY, keys)), expected, atol=1e-5)
    same, x = layers.MultiHeadAttention(2), ops.convert_to_tensor(X)  # a query that is its value has other keys
    np.testing.assert_allclose(
        array(same(x, x, X[:, ::-1])), attention_in_numpy(same, X, X, True, X[:, ::-1]), atol=1e-5
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: layers.MultiHeadAttention(2),
        lambda: layers.RestrictedAttention(2, 3),
        lambda: layers.TransformerEncoderLayer(2, 8),
        lambda: layers.TransformerDecoderLayer(2, 8),
        lambda: layers.TransformerStack([layers.TransformerEncoderLayer(2, 8)]),
        lambda: layers.SinusoidalPositionEmbedding(),
        lambda: layers.LearnedPositionEmbedding(9),
    ],
)
def test_a_sequence_without_a_batch_is_refused_before_anything_is_made(make):
    for inputs in (X[0], X[None], keras.Input((8,))):
        layer = make()
        with pytest.raises(ValueError, match="expected ndim=3, found ndim="):
            layer(inputs)
        assert not layer.built


@pytest.mark.parametrize("calls_before", [False, True])
def test_a_memory_without_a_batch_is_refused_by_name(calls_before):
    attention, decoder = layers.MultiHeadAttention(2), layers.TransformerDecoderLayer(2, 8)
    if calls_before:
        attention(X, MEMORY), decoder(X, MEMORY)
    for name, call in (
        ("value", lambda: attention(X, MEMORY[0])),
        ("key", lambda: attention(X, MEMORY, MEMORY[0])),
        ("memory", lambda: decoder(X, MEMORY[0])),
    ):
        with pytest.raises(
            ValueError, match=rf"`{name}` must be of shape \[batch, length, hidden\]: received \(7, 8\)"
        ):
            call()


def test_initializers():
    own = {"kernel_initializer": keras.initializers.RandomNormal(stddev=2.0, seed=None), "bias_initializer": "ones"}
    layer = layers.MultiHeadAttention(2, use_bias=True, **own)
    layer.build((None, None, 200))
    kernels = [array(getattr(layer, f"{role}_projection").kernel) for role in ("query", "key", "value", "output")]
    assert all(1.9 < kernel.std() < 2.1 for kernel in kernels)
    assert min(np.abs(kernels[0] - other).max() for other in kernels[1:]) > 1  # each drawn by itself
    assert (array(layer.key_projection.bias) == 1).all()
    assert layers.MultiHeadAttention.from_config(layer.get_config()).get_config() == layer.get_config()


def test_weights_in_a_functional_model():
    layer = layers.MultiHeadAttention(2)
    query, value = keras.Input((None, 8)), keras.Input((None, 8))
    model = keras.Model([query, value], layer(query, value, return_attention_scores=True))
    for found, expected in zip(model([X, MEMORY]), layer(X, MEMORY, return_attention_scores=True), strict=True):
        np.testing.assert_allclose(array(found), array(expected), atol=1e-6)


def test_a_projected_memory_equals_attending_to_the_memory():
    layer = layers.MultiHeadAttention(2)
    mask = np.arange(7) < np.array([[[4]], [[7]], [[2]]])
    for options in ({}, {"attention_mask": mask}):
        full = array(layer(X, MEMORY, **options))
        output = layer.attend_to(X, layer.memory(ops.convert_to_tensor(MEMORY)), **options)
        np.testing.assert_allclose(array(output), full, atol=1e-6)
    other = layer.memory(ops.convert_to_tensor(MEMORY), ops.convert_to_tensor(MEMORY[:, ::-1]))
    np.testing.assert_allclose(array(layer.attend_to(X, other)), array(layer(X, MEMORY, MEMORY[:, ::-1])), atol=1e-6)


def test_a_prompt_is_read_in_one_causal_pass():
    layer = layers.MultiHeadAttention(2, positions="rotary")
    expected = array(layer(X, use_causal_mask=True))
    output, memory = layer.prefill(X)
    np.testing.assert_allclose(array(output), expected, atol=1e-6)
    assert memory.key.shape == memory.value.shape == (3, 2, 5, 4)


def test_attend_can_be_overridden():
    class Uniform(layers.MultiHeadAttention):
        def attend(self, query, key, value, mask, training):
            weights = ops.ones_like(ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))) / ops.shape(key)[2]
            return ops.matmul(weights, value), weights

    output = array(Uniform(2)(X, MEMORY))
    np.testing.assert_allclose(output, np.tile(output[:, :1], (1, 5, 1)), atol=1e-6)


def test_an_attend_of_ones_own_decodes():
    """A score that no distance changes needs no `attend_cached` of the subclass."""

    class Doubled(layers.MultiHeadAttention):
        def attend(self, query, key, value, mask, training):
            output, weights = super().attend(query, key, value, mask, training)
            return 2 * output, weights

    layer = Doubled(2)
    full, past = array(layer(X, use_causal_mask=True)), layer.empty_past(3, 0)
    for i in range(5):
        output, past = layer.step(X[:, i : i + 1], past)
        np.testing.assert_allclose(array(output)[:, 0], full[:, i], atol=1e-5)


@pytest.mark.parametrize("score", ["dot_product", {"type": "relative", "max_relative_position": 3}], ids=str)
def test_a_file_of_weights_for_other_heads_is_refused(score, tmp_path):
    """Their kernels have the same shapes."""
    made, same, other = (
        keras.Sequential([keras.Input((5, 8)), layers.MultiHeadAttention(heads, score=score)]) for heads in (2, 2, 4)
    )
    made.save_weights(tmp_path / "a.weights.h5")
    same.load_weights(tmp_path / "a.weights.h5")
    np.testing.assert_array_equal(array(same(X)), array(made(X)))
    with pytest.raises(ValueError, match=r"num_heads=2 \(here 4\)"):
        other.load_weights(tmp_path / "a.weights.h5")


def test_project_can_be_overridden():
    """Keys that are the queries' projection: one matrix less, and scores that are symmetric."""

    class SharedKeys(layers.MultiHeadAttention):
        def project(self, x, role):
            return super().project(x, "query" if role == "key" else role)

    layer = SharedKeys(2)
    _, weights = layer(X, return_attention_scores=True)
    plain = layers.MultiHeadAttention(2)
    plain.build(X.shape)
    plain.set_weights(layer.get_weights())
    plain.key_projection.kernel.assign(plain.query_projection.kernel)
    np.testing.assert_allclose(array(weights), array(plain(X, return_attention_scores=True)[1]), atol=1e-6)


def test_heads_that_do_not_divide():
    with pytest.raises(ValueError, match=r"received .*num_heads=3.*num_heads=(2|4)"):
        layers.MultiHeadAttention(3)(X)


def test_operations_and_bytes_of_a_query():
    """Counted by hand: 2 heads, d_k 3, d_v 5; 7 keys, and 6 of states before them; float16 has 2 bytes."""
    layer, plain = (layers.MultiHeadAttention(2, 3, 5, dropout=rate) for rate in (0.1, 0.0))
    for each in (layer, plain):
        each.build(X.shape)
    assert layer.flops(7) == 2 * 2 * (3 + 5) * 7
    assert layer.flops(7, context=6) == 2 * 2 * (3 + 5) * 13
    # Queries and output, keys and values; of each score 4 bytes, a copy that is dropped, and the mask's byte.
    assert plain.activations(7, 4) == 2 * 2 * (3 + 5) * 4 + 2 * 7 * 4
    assert plain.activations(7, 2) == 2 * 2 * (3 + 5) * 2 + 2 * 7 * (4 + 2)
    assert layer.activations(7, 4) == 2 * 2 * (3 + 5) * 4 + 2 * 7 * (4 + 4 + 1)
    assert layer.activations(6, 2, context=3) == (2 + 3 / 6) * 2 * (3 + 5) * 2 + 2 * 9 * (4 + 2 + 1)


def test_a_subclass_may_do_without_the_three_projections():
    class Unprojected(layers.MultiHeadAttention):
        def build(self, query_shape, value_shape=None, key_shape=None):
            self.query_size = self.value_size = query_shape[-1] // self.num_heads
            self.dropout = keras.layers.Dropout(0.0)

        def project(self, x, role):
            if role == "output":
                return ops.reshape(ops.swapaxes(x, 1, 2), (ops.shape(x)[0], ops.shape(x)[2], -1))
            return ops.swapaxes(ops.reshape(x, (*ops.shape(x)[:2], self.num_heads, self.query_size)), 1, 2)

    x = keras.random.normal((2, 3, 4), seed=1)
    assert Unprojected(num_heads=2)(x).shape == (2, 3, 4)


def test_states_of_a_context_are_seen_before_the_inputs():
    """Attention from the last positions of a row to all of it, by a causal mask that counts from the right."""
    layer = layers.MultiHeadAttention(2, positions="rotary")
    full = array(layer(X, use_causal_mask=True))
    for size in (0, 1, 3):
        output = layer(X[:, size:], use_causal_mask=True, context=Context(ops.convert_to_tensor(X[:, :size])))
        np.testing.assert_allclose(array(output), full[:, size:], atol=1e-6)
    seen = np.array([[False, False, True], [False, False, False], [True, True, True]])
    part = array(layer(X[:, 3:], use_causal_mask=True, context=Context(ops.convert_to_tensor(X[:, :3]), seen)))
    np.testing.assert_allclose(part[0], array(layer(X[:1, 2:], use_causal_mask=True))[0, 1:], atol=1e-6)
    np.testing.assert_allclose(part[1], array(layer(X[1:2, 3:], use_causal_mask=True))[0], atol=1e-6)
    np.testing.assert_allclose(part[2], full[2, 3:], atol=1e-6)
    mask = np.array([[True, False], [True, True]])  # of the last two positions; it hides none of the states
    masked = array(layer(X[:, 3:], attention_mask=mask, context=Context(ops.convert_to_tensor(X[:, :3]))))
    np.testing.assert_allclose(masked, full[:, 3:], atol=1e-6)
    alike = np.array([[[True, False]]])  # one row for the whole batch
    first, each = (
        array(layer(X[:, 3:], attention_mask=mask, context=Context(ops.convert_to_tensor(X[:, :3]))))
        for mask in (alike, np.repeat(alike, 3, 0))
    )
    np.testing.assert_array_equal(first, each)
    hidden = np.array([[True], [False]])  # one column for all keys among the inputs; False leaves only the states
    first, each = (
        array(layer(X[:, 3:], attention_mask=mask, context=Context(ops.convert_to_tensor(X[:, :3]))))
        for mask in (hidden, np.repeat(hidden, 2, 1))
    )
    np.testing.assert_array_equal(first, each)
