"""Each layer through the harness, and against the paper's equations written in NumPy."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from t2t_lite import layers
from tests.layers.harness import check_layer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 5, 8)).astype("float32")
MEMORY = RNG.normal(size=(2, 7, 8)).astype("float32")


def array(tensor):
    return ops.convert_to_numpy(tensor)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention_in_numpy(layer, query, value, visible):
    """MultiHead(Q, K, V) of section 3.2.2, head by head; `visible` is bool, broadcastable to [B, T, S]."""
    heads, outputs = layer.num_heads, []
    wq, wk, wv = (array(getattr(layer, f"{role}_projection").kernel) for role in ("query", "key", "value"))
    for i in range(heads):
        k_columns = slice(i * layer.query_size, (i + 1) * layer.query_size)
        v_columns = slice(i * layer.value_size, (i + 1) * layer.value_size)
        q, k, v = query @ wq[:, k_columns], value @ wk[:, k_columns], value @ wv[:, v_columns]
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(layer.query_size)
        outputs.append(softmax(np.where(visible, scores, -np.inf)) @ v)
    return np.concatenate(outputs, -1) @ array(layer.output_projection.kernel)


class TestMultiHeadAttention:
    def test_contract(self, tmp_path):
        check_layer(layers.MultiHeadAttention, {"num_heads": 2, "dropout": 0.1}, X, 4, tmp_path)

    @pytest.mark.parametrize("sizes", [{}, {"key_dim": 3, "value_dim": 5}])
    def test_paper_equation(self, sizes):
        layer = layers.MultiHeadAttention(2, **sizes)
        output = array(layer(X, MEMORY))
        np.testing.assert_allclose(output, attention_in_numpy(layer, X, MEMORY, True), atol=1e-5)

    def test_causal_mask(self):
        layer = layers.MultiHeadAttention(2)
        output = array(layer(X, use_causal_mask=True))
        visible = np.tril(np.ones((5, 5), bool))
        np.testing.assert_allclose(output, attention_in_numpy(layer, X, X, visible), atol=1e-5)

    def test_mask_in_two_three_and_four_dimensions(self):
        mask = RNG.random((5, 7)) > 0.4
        mask[:, 0] = True
        layer = layers.MultiHeadAttention(2)
        outputs = [
            array(layer(X, MEMORY, attention_mask=m))
            for m in (mask, np.tile(mask, (2, 1, 1)), np.tile(mask, (2, 2, 1, 1)))
        ]
        expected = attention_in_numpy(layer, X, MEMORY, mask)
        for output in outputs:
            np.testing.assert_allclose(output, expected, atol=1e-5)

    def test_keras_masks_are_used(self):
        layer = layers.MultiHeadAttention(2)
        value_mask = np.array([[True] * 4 + [False] * 3, [True] * 7])
        output = array(layer(X, MEMORY, value_mask=value_mask))
        np.testing.assert_allclose(output, attention_in_numpy(layer, X, MEMORY, value_mask[:, None]), atol=1e-5)

    def test_a_row_without_visible_keys_is_finite(self):
        layer = layers.MultiHeadAttention(2)
        assert np.isfinite(array(layer(X, MEMORY, attention_mask=np.zeros((2, 5, 7), bool)))).all()

    def test_weights_sum_to_one_and_output_is_the_same_with_them(self):
        layer = layers.MultiHeadAttention(2)
        output, weights = layer(X, MEMORY, return_attention_scores=True)
        assert weights.shape == (2, 2, 5, 7)
        np.testing.assert_allclose(array(weights).sum(-1), 1.0, atol=1e-6)
        np.testing.assert_array_equal(array(output), array(layer(X, MEMORY)))

    @pytest.mark.parametrize("in_place", [True, False])
    def test_cached_steps_equal_one_causal_call(self, in_place):
        layer = layers.MultiHeadAttention(2)
        full = array(layer(X, use_causal_mask=True))
        slots = 5 if in_place else 0
        cache = {name: np.zeros((2, 2, slots, 4), "float32") for name in ("key", "value")}
        for i in range(5):
            mask = np.arange(max(slots, i + 1))[None, None] <= i
            position = ops.convert_to_tensor(i, "int32") if in_place else None
            output, cache = layer(X[:, i : i + 1], attention_mask=mask, cache=cache, position=position)
            np.testing.assert_allclose(array(output)[:, 0], full[:, i], atol=1e-5)

    def test_memory_cache_equals_attending_to_the_memory(self):
        layer = layers.MultiHeadAttention(2)
        full = array(layer(X, MEMORY))
        output, _ = layer(X, cache=layer.memory_cache(ops.convert_to_tensor(MEMORY)))
        np.testing.assert_allclose(array(output), full, atol=1e-6)

    def test_attend_can_be_overridden(self):
        class Uniform(layers.MultiHeadAttention):
            def attend(self, query, key, value, mask, training):
                weights = ops.ones_like(ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))) / ops.shape(key)[2]
                return ops.matmul(weights, value), weights

        output = array(Uniform(2)(X, MEMORY))
        np.testing.assert_allclose(output, np.tile(output[:, :1], (1, 5, 1)), atol=1e-6)

    @pytest.mark.parametrize("arguments", [{"num_heads": 0}, {"num_heads": 2, "key_dim": 0}])
    def test_bad_sizes(self, arguments):
        with pytest.raises(ValueError, match="at least 1"):
            layers.MultiHeadAttention(**arguments)

    def test_heads_that_do_not_divide(self):
        with pytest.raises(ValueError, match=r"num_heads=3. Nearest valid num_heads: (2|4)"):
            layers.MultiHeadAttention(3)(X)


class TestFeedForward:
    @pytest.mark.parametrize("activation, weights", [("relu", 4), ("gelu", 4), ("swiglu", 6)])
    def test_contract(self, activation, weights, tmp_path):
        init = {"filter_size": 16, "dropout": 0.1, "activation": activation}
        check_layer(layers.FeedForward, init, X, weights, tmp_path)

    def test_paper_equation(self):
        layer = layers.FeedForward(16)
        output = array(layer(X))
        w1, b1 = array(layer.inner.kernel), array(layer.inner.bias)
        w2, b2 = array(layer.outer.kernel), array(layer.outer.bias)
        np.testing.assert_allclose(output, np.maximum(0, X @ w1 + b1) @ w2 + b2, atol=1e-5)

    def test_gelu_is_the_exact_one(self):
        layer = layers.FeedForward(16, activation="gelu")
        output = array(layer(X))
        inner = X @ array(layer.inner.kernel)
        phi = 0.5 * (1 + np.vectorize(math.erf)(inner / np.sqrt(2)))
        np.testing.assert_allclose(output, (inner * phi) @ array(layer.outer.kernel), atol=1e-5)

    def test_unknown_activation(self):
        with pytest.raises(ValueError, match="relu, gelu, swiglu"):
            layers.FeedForward(16, activation="tanh")


class TestResidual:
    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_contract_and_equation(self, norm, tmp_path):
        inner = layers.FeedForward(16)
        _, output = check_layer(layers.Residual, {"layer": inner, "norm": norm}, X, 6, tmp_path)

        def normalized(x):
            return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

        if norm == "post":
            expected = normalized(X + array(inner(X)))
        else:
            expected = X + array(inner(ops.convert_to_tensor(normalized(X))))
        np.testing.assert_allclose(output, expected, atol=1e-5)

    def test_bad_norm(self):
        with pytest.raises(ValueError, match="'post' or 'pre'"):
            layers.Residual(layers.FeedForward(4), norm="none")


class TestTransformerLayers:
    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_encoder_contract(self, norm, tmp_path):
        init = {"num_heads": 2, "filter_size": 16, "norm": norm}
        check_layer(layers.TransformerEncoderLayer, init, X, 4 + 2 + 4 + 2, tmp_path)

    def test_decoder_without_memory_is_a_language_models_layer(self, tmp_path):
        init = {"num_heads": 2, "filter_size": 16}
        layer, output = check_layer(layers.TransformerDecoderLayer, init, X, 4 + 2 + 4 + 2, tmp_path)
        changed = X.copy()
        changed[:, 3:] = 0
        np.testing.assert_allclose(array(layer(changed))[:, :3], output[:, :3], atol=1e-6)

    def test_decoder_attends_to_its_memory(self):
        layer = layers.TransformerDecoderLayer(2, 16)
        output, scores = layer(X, MEMORY, return_attention_scores=True)
        assert len(layer.trainable_weights) == 4 + 2 + 4 + 2 + 4 + 2
        assert scores["memory"].shape == (2, 2, 5, 7)
        assert np.abs(array(layer(X, MEMORY * 2)) - array(output)).max() > 1e-3


class TestTokenEmbedding:
    IDS = np.array([[3, 4, 0], [5, 0, 0]])

    def test_contract(self, tmp_path):
        check_layer(layers.TokenEmbedding, {"vocab_size": 9, "hidden_size": 8}, self.IDS.astype("int32"), 1, tmp_path)

    def test_scaled_by_the_root_of_the_size_and_zero_at_padding(self):
        layer = layers.TokenEmbedding(9, 8)
        output = array(layer(self.IDS))
        np.testing.assert_allclose(output[0, 0], array(layer.embeddings)[3] * np.sqrt(8), rtol=1e-6)
        assert (output[self.IDS == 0] == 0).all()

    def test_tied_softmax(self):
        layer = layers.TokenEmbedding(9, 8)
        layer.build()
        np.testing.assert_allclose(array(layer(X, reverse=True)), X @ array(layer.embeddings).T, atol=1e-5)

    def test_logits_are_float32_in_mixed_precision(self):
        layer = layers.TokenEmbedding(9, 8, dtype="mixed_bfloat16")
        layer.build()
        assert keras.backend.standardize_dtype(layer(X, reverse=True).dtype) == "float32"

    def test_initial_embeddings_have_unit_variance_after_scaling(self):
        layer = layers.TokenEmbedding(500, 64)
        assert 0.97 < array(layer(np.arange(1, 500)[None])).std() < 1.03

    @pytest.mark.parametrize("bad", [-1, 9])
    def test_an_id_outside_the_vocabulary_is_named(self, bad):
        with pytest.raises(ValueError, match=rf"id {bad} is outside the vocabulary: ids must be in \[0, 9\)"):
            layers.TokenEmbedding(9, 8)(np.array([[1, bad]]))

    def test_mask_is_carried_when_asked_for(self):
        ids = keras.Input((None,), dtype="int32")
        embedded = layers.TokenEmbedding(9, 8, mask_zero=True)(ids)
        model = keras.Model(ids, layers.TransformerEncoderLayer(2, 16)(embedded))
        longer = np.pad(self.IDS, ((0, 0), (0, 4)))
        np.testing.assert_allclose(array(model(longer))[:, :1], array(model(self.IDS))[:, :1], atol=1e-5)


class TestPositions:
    @pytest.mark.parametrize("layout", ["interleaved", "marian", "tensor2tensor"])
    def test_sinusoids_contract(self, layout, tmp_path):
        check_layer(layers.SinusoidalPositionEmbedding, {"layout": layout}, X, 0, tmp_path)

    def test_paper_formula(self):
        output = array(layers.SinusoidalPositionEmbedding()(np.zeros((1, 50, 16), "float32")))[0]
        for pos in (0, 1, 49):
            for i in range(8):
                angle = pos / 10000 ** (2 * i / 16)
                assert output[pos, 2 * i] == pytest.approx(np.sin(angle), abs=1e-5)
                assert output[pos, 2 * i + 1] == pytest.approx(np.cos(angle), abs=1e-5)

    def test_layouts_of_peers(self):
        zeros = np.zeros((1, 50, 16), "float32")
        paper, marian, t2t = (
            array(layers.SinusoidalPositionEmbedding(layout)(zeros))[0]
            for layout in ("interleaved", "marian", "tensor2tensor")
        )
        np.testing.assert_allclose(marian, np.concatenate([paper[:, ::2], paper[:, 1::2]], -1), atol=1e-6)
        np.testing.assert_allclose(t2t[:, 7], np.sin(np.arange(50) / 10000.0), atol=1e-5)  # the last timescale

    def test_an_encoding_k_further_is_a_linear_function(self):
        layer = layers.SinusoidalPositionEmbedding()
        pe = array(layer(np.zeros((1, 60, 16), "float32")))[0]
        matrix, *_ = np.linalg.lstsq(pe[:40], pe[7:47], rcond=None)
        np.testing.assert_allclose(pe[40:53] @ matrix, pe[47:60], atol=1e-3)

    @pytest.mark.parametrize("make", [layers.SinusoidalPositionEmbedding, lambda: layers.LearnedPositionEmbedding(9)])
    def test_one_position_for_all_beams(self, make):
        layer = make()
        full = array(layer(X))
        beams = array(layer(np.tile(X[:, 3:4], (1, 2, 1)), position=ops.convert_to_tensor(3)))
        np.testing.assert_allclose(beams, np.tile(full[:, 3:4], (1, 2, 1)), atol=1e-6)

    def test_learned_contract(self, tmp_path):
        check_layer(layers.LearnedPositionEmbedding, {"max_length": 9}, X, 1, tmp_path)

    def test_a_sequence_longer_than_the_table(self):
        with pytest.raises(ValueError, match="5 positions, the learned table 4"):
            layers.LearnedPositionEmbedding(4)(X)

    def test_odd_size(self):
        with pytest.raises(ValueError, match="even hidden size: received 7"):
            layers.SinusoidalPositionEmbedding()(X[..., :7])


class TestDropout:
    def test_contract(self, tmp_path):
        check_layer(layers.Dropout, {"rate": 0.5}, X, 0, tmp_path)

    def test_rate_and_expectation(self):
        ones = np.ones((200, 200), "float32")
        output = array(layers.Dropout(0.3)(ones, training=True))
        assert (output == 0).mean() == pytest.approx(0.3, abs=0.02)
        assert output.mean() == pytest.approx(1.0, abs=0.02)
        assert (array(layers.Dropout(0.3)(ones, training=False)) == 1).all()

    def test_masks_depend_on_batch_run_and_layer_alone(self):
        first, second = layers.Dropout(0.5), layers.Dropout(0.5)
        second.seed_generator.index = 1
        ones = np.ones((20, 20), "float32")

        def mask(layer, batch, run):
            with layers.dropout_seed(tf.constant(batch, tf.int64), run):
                return array(layer(ones, training=True))

        np.testing.assert_array_equal(mask(first, 7, 1), mask(first, 7, 1))
        for other in (mask(first, 8, 1), mask(first, 7, 2), mask(second, 7, 1)):
            assert 0.3 < (other != mask(first, 7, 1)).mean() < 0.7
        assert (array(first(ones, training=True)) != array(first(ones, training=True))).any()  # outside: as Keras

    @pytest.mark.parametrize("rate", [-0.1, 1.0])
    def test_bad_rate(self, rate):
        with pytest.raises(ValueError, match=r"in \[0, 1\)"):
            layers.Dropout(rate)
