"""Multi-head attention against section 3.2 of the paper, its masks, its caches and what can be overridden."""

import warnings

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.layers.cache import Past, write_in_place
from t2t_lite.layers.context import Context
from tests.layers.backend import compiled
from tests.layers.equations import array, attention_in_numpy
from tests.layers.harness import MEMORY, X, check_layer

RNG = np.random.default_rng(0)


@pytest.mark.few("cross")
@pytest.mark.slow
@pytest.mark.parametrize("call", [{}, {"value": MEMORY}], ids=["self", "cross"])
def test_contract(call, tmp_path):
    check_layer(layers.MultiHeadAttention, {"num_heads": 2, "dropout": 0.1}, X, 4, tmp_path, **call)


@pytest.mark.parametrize("sizes", [{}, {"key_dim": 3, "value_dim": 5}])
def test_paper_equation(sizes):
    layer = layers.MultiHeadAttention(2, **sizes)
    output = array(layer(X, MEMORY))
    np.testing.assert_allclose(output, attention_in_numpy(layer, X, MEMORY, True), atol=1e-5)


def test_causal_mask():
    layer = layers.MultiHeadAttention(2)
    output = array(layer(X, use_causal_mask=True))
    visible = np.tril(np.ones((5, 5), bool))
    np.testing.assert_allclose(output, attention_in_numpy(layer, X, X, visible), atol=1e-5)


def test_mask_in_two_three_and_four_dimensions():
    mask = RNG.random((5, 7)) > 0.4
    mask[:, 0] = True
    layer = layers.MultiHeadAttention(2)
    layer.build(X.shape, MEMORY.shape)
    expected = attention_in_numpy(layer, X, MEMORY, mask)
    for m in (mask, np.tile(mask, (2, 1, 1)), np.tile(mask, (2, 2, 1, 1))):
        np.testing.assert_allclose(array(layer(X, MEMORY, attention_mask=m)), expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(7,), (2, 7), (7, 5), (3, 5, 7), (2, 4, 7), (2, 3, 5, 7), (1, 2, 2, 5, 7)], ids=str)
def test_a_mask_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"`attention_mask` must be .*\(2, 2, 5, 7\): received \("):
        layers.MultiHeadAttention(2)(X, MEMORY, attention_mask=np.ones(shape, bool))


@pytest.mark.parametrize("shape", [(1, 7), (5, 1), (2, 1, 7), (1, 5, 7), (1, 2, 1, 7), (2, 1, 5, 1)], ids=str)
def test_sizes_of_1_in_a_mask_broadcast(shape):
    layer, mask = layers.MultiHeadAttention(2), RNG.random(shape) > 0.4
    full = np.broadcast_to(mask[:, None] if len(shape) == 3 else mask, (2, 2, 5, 7))
    output = array(layer(X, MEMORY, attention_mask=mask))
    np.testing.assert_allclose(output, array(layer(X, MEMORY, attention_mask=full)), atol=1e-5)


ADDITIVE = np.where(np.tril(np.ones((5, 5))), 0, -1e9).astype("float32")  # what other libraries add to scores
DOORS = {
    "attention_mask": lambda mask: layers.MultiHeadAttention(2)(X, attention_mask=mask),
    "value_mask": lambda mask: layers.MultiHeadAttention(2)(X, X, value_mask=mask[:2]),
    "key_mask": lambda mask: layers.MultiHeadAttention(2)(X, X, X, key_mask=mask[:2]),
    "query_mask": lambda mask: layers.MultiHeadAttention(2)(X, X, query_mask=mask[:2]),
    "attention_mask of RestrictedAttention": lambda mask: layers.RestrictedAttention(2, 3)(X, attention_mask=mask),
    "mask of RestrictedAttention": lambda mask: layers.RestrictedAttention(2, 3)(X, mask=mask[:2]),
    "attention_mask of Residual": lambda mask: layers.Residual(keras.layers.MultiHeadAttention(2, 4))(
        X, attention_mask=mask
    ),
    "attention_mask of an encoder": lambda mask: layers.TransformerStack([layers.TransformerEncoderLayer(2, 8)])(
        X, attention_mask=mask
    ),
    "mask of an encoder": lambda mask: layers.TransformerEncoderLayer(2, 8)(X, mask=mask[:2]),
    "attention_mask of a decoder": lambda mask: layers.TransformerDecoderLayer(2, 8)(X, attention_mask=mask),
    "memory_mask of a decoder": lambda mask: layers.TransformerDecoderLayer(2, 8)(X, X, memory_mask=mask[:2]),
    "mask of masked_softmax": lambda mask: layers.masked_softmax(X[..., :5], mask),
    "allowed of SpanHead": lambda mask: layers.SpanHead()(X, mask[:2]),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_mask_that_is_added_elsewhere_is_refused_by_name(door):
    for mask, words in ((ADDITIVE, "is of dtype float32"), (ADDITIVE.astype("int32"), "numbers from -1000000000 to 0")):
        with pytest.raises(ValueError, match=f"`{door.partition(' ')[0]}` .*{words}: expected bool"):
            DOORS[door](mask)
    visible = ADDITIVE == 0
    assert tuple(DOORS[door](visible.astype("int32")).shape) == tuple(DOORS[door](visible).shape)


def test_a_mask_of_floats_is_refused_in_a_graph():
    layer = layers.MultiHeadAttention(2)
    layer.build(X.shape)
    with pytest.raises(ValueError, match="`attention_mask` is of dtype float32"):
        compiled(lambda x, mask: layer(x, attention_mask=mask), X, ADDITIVE[None])


@pytest.mark.parametrize("layer", ["attention", "layer"])
def test_one_key_alone_is_seen_without_a_warning(layer):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*softmax over axis")
        if layer == "attention":
            attention = layers.MultiHeadAttention(2)
            _, weights = attention(X, MEMORY[:, :1], return_attention_scores=True)
            np.testing.assert_array_equal(array(weights), 1)
            mask = np.zeros((1, 1, 1), bool)
            _, weights = attention(X[:, :1], attention_mask=mask, return_attention_scores=True)
            np.testing.assert_array_equal(array(weights), 1)
        else:
            layers.TransformerDecoderLayer(2, 8)(X[:, :1], MEMORY[:, :1])


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


def test_keras_masks_are_used():
    layer = layers.MultiHeadAttention(2)
    value_mask = np.array([[True] * 4 + [False] * 3, [True] * 7])
    output = array(layer(X, MEMORY, value_mask=value_mask))
    np.testing.assert_allclose(output, attention_in_numpy(layer, X, MEMORY, value_mask[:, None]), atol=1e-5)


def test_one_mask_hides_the_keys_of_self_attention():
    layer = layers.MultiHeadAttention(2)
    mask = np.arange(5) < np.array([[3], [5]])
    output = array(layer(X, mask=mask))
    np.testing.assert_allclose(output, attention_in_numpy(layer, X, X, mask[:, None]), atol=1e-5)


def test_a_mask_of_the_query_hides_nothing_in_a_memory():
    layer = layers.MultiHeadAttention(2)
    layer.build(X.shape)
    output = layer(X, MEMORY, query_mask=np.zeros((2, 5), bool))
    np.testing.assert_allclose(array(output), array(layer(X, MEMORY)), atol=1e-6)


def test_a_row_without_visible_keys_is_finite():
    layer = layers.MultiHeadAttention(2)
    assert np.isfinite(array(layer(X, MEMORY, attention_mask=np.zeros((2, 5, 7), bool)))).all()


def test_weights_sum_to_one_and_output_is_the_same_with_them():
    layer = layers.MultiHeadAttention(2)
    output, weights = layer(X, MEMORY, return_attention_scores=True)
    assert weights.shape == (2, 2, 5, 7)
    np.testing.assert_allclose(array(weights).sum(-1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(array(output), array(layer(X, MEMORY)))


def test_weights_in_a_functional_model():
    layer = layers.MultiHeadAttention(2)
    query, value = keras.Input((None, 8)), keras.Input((None, 8))
    model = keras.Model([query, value], layer(query, value, return_attention_scores=True))
    for found, expected in zip(model([X, MEMORY]), layer(X, MEMORY, return_attention_scores=True), strict=True):
        np.testing.assert_allclose(array(found), array(expected), atol=1e-6)


@pytest.mark.parametrize("in_place", [True, False])
def test_cached_steps_equal_one_causal_call(in_place):
    layer = layers.MultiHeadAttention(2)
    full = array(layer(X, use_causal_mask=True))
    slots = 5 if in_place else 0
    past = Past(*np.zeros((2, 2, 2, slots, 4), "float32"))
    for i in range(5):
        mask = np.arange(max(slots, i + 1))[None, None] <= i
        position = ops.convert_to_tensor(i, "int32") if in_place else None
        output, past = layer.step(X[:, i : i + 1], past, position, mask)
        np.testing.assert_allclose(array(output)[:, 0], full[:, i], atol=1e-5)


def test_a_cached_step_compiled_equals_the_eager_one():
    layer = layers.MultiHeadAttention(2)
    layer.build(X.shape)
    past = RNG.normal(size=(2, 2, 5, 4)).astype("float32")

    def step(x, key, value, mask, position):
        return layer.step(x, Past(key, value), position, mask)[0]

    arguments = (X[:, :1], past, past, np.ones((2, 1, 5), bool), np.array(3, "int32"))
    eager = step(*map(ops.convert_to_tensor, arguments))
    np.testing.assert_allclose(array(compiled(step, *arguments)), array(eager), atol=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's alone")
def test_writing_in_place_equals_slice_update_and_leaves_the_past_as_it_was():
    import tensorflow as tf

    past, new = (RNG.normal(size=(2, 3, slots, 4)).astype("float32") for slots in (10, 2))
    signature = [tf.TensorSpec([None, 3, None, 4]), tf.TensorSpec([None, 3, 2, 4]), tf.TensorSpec([], tf.int32)]
    write = tf.function(write_in_place, input_signature=signature, autograph=False)
    held = ops.convert_to_tensor(past)
    for position in range(5):
        expected = ops.slice_update(past, (0, 0, 2 * position, 0), new)
        np.testing.assert_array_equal(write(held, new, tf.constant(position)), expected)
        np.testing.assert_array_equal(held, past)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's graphs alone")
def test_the_mask_is_not_added_to_the_product_itself():
    """oneDNN would fuse the two into one operation, which is up to a hundred times as slow."""
    import tensorflow as tf

    layer = layers.MultiHeadAttention(2)
    call = tf.function(lambda x: layer(x, use_causal_mask=True), autograph=False)
    operations = call.get_concrete_function(tf.TensorSpec([None, None, 8])).graph.get_operations()
    assert any(operation.type == "BatchMatMulV2" for operation in operations), "not a test otherwise"
    sums = [operation for operation in operations if operation.type in ("Add", "AddV2")]
    assert "BatchMatMulV2" not in {tensor.op.type for operation in sums for tensor in operation.inputs}


def test_a_projected_memory_equals_attending_to_the_memory():
    layer = layers.MultiHeadAttention(2)
    full = array(layer(X, MEMORY))
    output = layer.attend_to(X, layer.memory(ops.convert_to_tensor(MEMORY)))
    np.testing.assert_allclose(array(output), full, atol=1e-6)


def test_attend_can_be_overridden():
    class Uniform(layers.MultiHeadAttention):
        def attend(self, query, key, value, mask, training):
            weights = ops.ones_like(ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))) / ops.shape(key)[2]
            return ops.matmul(weights, value), weights

    output = array(Uniform(2)(X, MEMORY))
    np.testing.assert_allclose(output, np.tile(output[:, :1], (1, 5, 1)), atol=1e-6)


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


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"num_heads": 0}, "num_heads=0"),
        ({"num_heads": -1}, "num_heads=-1"),
        ({"num_heads": 2.5}, "num_heads=2.5"),
        ({"num_heads": 2, "key_dim": 0}, "key_dim=0"),
        ({"num_heads": 2, "value_dim": -3}, "value_dim=-3"),
        ({"num_heads": 2, "dropout": -0.1}, "dropout=-0.1"),
        ({"num_heads": 2, "dropout": 1.0}, "dropout=1.0"),
        ({"num_heads": 2, "dropout": float("nan")}, "dropout=nan"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        layers.MultiHeadAttention(**arguments)


def test_heads_that_do_not_divide():
    with pytest.raises(ValueError, match=r"num_heads=3. Nearest valid num_heads: (2|4)"):
        layers.MultiHeadAttention(3)(X)


def test_a_batch_without_rows():
    layer = layers.MultiHeadAttention(num_heads=2)
    layer.build((None, None, 8))
    assert layer(np.zeros((0, 3, 8), "float32")).shape == (0, 3, 8)


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
    seen = np.array([[False, False, True], [False, False, False]])
    part = array(layer(X[:, 3:], use_causal_mask=True, context=Context(ops.convert_to_tensor(X[:, :3]), seen)))
    np.testing.assert_allclose(part[0], array(layer(X[:1, 2:], use_causal_mask=True))[0, 1:], atol=1e-6)
    np.testing.assert_allclose(part[1], array(layer(X[1:, 3:], use_causal_mask=True))[0], atol=1e-6)
