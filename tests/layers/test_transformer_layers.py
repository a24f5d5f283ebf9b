"""The encoder's and the decoder's layer: their contract, causality, masks, and what is refused."""

import keras
import numpy as np
import pytest

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import MEMORY, X, check_layer

SMALL = {"num_heads": 2, "filter_size": 16}


IDS = np.array([[3, 4, 0], [5, 0, 0], [6, 7, 8]])
PADDING = np.arange(5) < np.array([[4], [5], [2]])


@pytest.mark.slow
def test_decoder_contract(tmp_path):
    check_layer(layers.TransformerDecoderLayer, SMALL, X, 4 + 2 + 4 + 2 + 4 + 2, tmp_path, memory=MEMORY)


def test_decoder_without_memory_is_a_language_models_layer():
    layer, changed = layers.TransformerDecoderLayer(**SMALL), X.copy()
    output = array(layer(X))
    assert len(layer.trainable_weights) == 4 + 2 + 4 + 2
    changed[:, 3:] = 0
    np.testing.assert_allclose(array(layer(changed))[:, :3], output[:, :3], atol=1e-6)
    clone = layers.TransformerDecoderLayer.from_config(layer.get_config())
    clone.build(X.shape)
    clone.set_weights(layer.get_weights())
    np.testing.assert_array_equal(array(clone(X)), output)


def test_decoder_attends_to_its_memory():
    layer = layers.TransformerDecoderLayer(2, 16)
    output, scores = layer(X, MEMORY, return_attention_scores=True)
    assert scores["memory"].shape == (3, 2, 5, 7)
    assert np.abs(array(layer(X, MEMORY * 2)) - array(output)).max() > 1e-3


def test_a_memory_given_once_is_given_always():
    """Cross-attention without one would be self-attention that sees the future."""
    one, other = layers.TransformerDecoderLayer(2, 16), layers.TransformerDecoderLayer(2, 16)
    one(X, MEMORY), other(X)
    with pytest.raises(ValueError, match=r"built with a `memory`.*called without"):
        one(X)
    with pytest.raises(ValueError, match=r"built without a `memory`.*called with "):
        other(X, MEMORY)


@pytest.mark.slow
@pytest.mark.few("post-GroupedQueryAttention", "pre-MultiHeadAttention")
@pytest.mark.parametrize("kind", [keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_attention_of_keras_is_a_sub_layer(kind, norm):
    """It needs its `value`, and has no cache."""
    options = {"filter_size": 16, "norm": norm, "dropout": 0.0}

    def attention():
        return kind(2, 4) if kind is keras.layers.MultiHeadAttention else kind(4, 2, 1)

    encoder = layers.TransformerEncoderLayer(**options, self_attention=attention())
    decoder = layers.TransformerDecoderLayer(**options, self_attention=attention(), cross_attention=attention())
    mask = np.arange(5) < 3
    for call in ({"mask": np.tile(mask, (3, 1))}, {"attention_mask": np.tile(mask, (3, 5, 1))}):
        np.testing.assert_allclose(array(encoder(X, **call))[:, :3], array(encoder(X[:, :3])), atol=1e-5)
    assert np.abs(array(encoder(X))[:, :3] - array(encoder(X[:, :3]))).max() > 1e-3
    np.testing.assert_allclose(array(decoder(X, MEMORY))[:, :3], array(decoder(X[:, :3], MEMORY)), atol=1e-5)
    with pytest.raises(ValueError, match=rf"{kind.__name__} has no cache.*MultiHeadAttention"):
        decoder.init_cache(MEMORY, 2, 3)
    clone = layers.TransformerEncoderLayer.from_config(encoder.get_config())
    clone.build(X.shape)
    clone.set_weights(encoder.get_weights())
    np.testing.assert_array_equal(array(clone(X)), array(encoder(X)))


def test_attention_of_keras_leaves_its_inputs_their_masks():
    """Keras' own attention removes them, so the next layer would attend to padding."""
    mask = np.arange(7) < np.array([[4], [7], [2]])
    memory = keras.layers.Masking()(np.where(mask[..., None], MEMORY, 0.0))
    x = keras.layers.Masking()(X)
    layer = layers.TransformerDecoderLayer(
        filter_size=16, dropout=0.0, self_attention=keras.layers.MultiHeadAttention(2, 4),
        cross_attention=keras.layers.MultiHeadAttention(2, 4),
    )  # fmt: skip
    expected = array(layer(X, array(memory), memory_mask=mask))
    for _ in range(2):
        np.testing.assert_allclose(array(layer(x, memory)), expected, atol=1e-6)
        assert array(keras.layers.GlobalAveragePooling1D()(memory))[2] == pytest.approx(MEMORY[2, :2].mean(0), abs=1e-6)


@pytest.mark.parametrize("attention", [None, keras.layers.MultiHeadAttention], ids=["own", "keras"])
def test_an_attention_mask_as_a_list_goes_with_that_of_the_inputs(attention):
    own = {} if attention is None else {"num_heads": None, "self_attention": attention(2, 4)}
    layer = layers.TransformerEncoderLayer(**{"num_heads": 2, "filter_size": 16, "dropout": 0.0, **own})
    x, mask = layers.TokenEmbedding(9, 8, mask_zero=True)(IDS[:2]), np.tri(IDS.shape[1], dtype=bool)
    expected = array(layer(x, attention_mask=mask))
    np.testing.assert_allclose(array(layer(x, attention_mask=mask.tolist())), expected, atol=1e-5)


def test_attention_of_keras_gets_each_mask_once_in_a_shape_it_merges():
    """There are as many rows as heads, so that a mask of the rows would also fit the heads."""
    encoder, decoder = (
        kind(filter_size=16, dropout=0.0, self_attention=keras.layers.MultiHeadAttention(2, 4))
        for kind in (layers.TransformerEncoderLayer, layers.TransformerDecoderLayer)
    )
    embedding = layers.TokenEmbedding(9, 8, mask_zero=True)
    for layer in (encoder, decoder):
        output = array(layer(embedding(IDS[:2])))
        for row, length in ((0, 2), (1, 1)):
            alone = array(layer(embedding(IDS[[row], :length])))[0]
            np.testing.assert_allclose(output[row, :length], alone, atol=1e-5)


@pytest.mark.slow
def test_attention_weights_in_a_functional_model():
    encoder, decoder = layers.TransformerEncoderLayer(2, 16), layers.TransformerDecoderLayer(2, 16)
    inputs, targets = keras.Input((None, 8)), keras.Input((None, 8))
    memory, encoder_scores = encoder(inputs, return_attention_scores=True)
    output, decoder_scores = decoder(targets, memory, return_attention_scores=True)
    model = keras.Model([inputs, targets], {"output": output, "encoder": encoder_scores, **decoder_scores})
    found = model([MEMORY, X])
    shapes = {name: tuple(x.shape) for name, x in found.items()}
    assert shapes == {"output": (3, 5, 8), "encoder": (3, 2, 7, 7), "self": (3, 2, 5, 5), "memory": (3, 2, 5, 7)}
    np.testing.assert_allclose(array(found["output"]), array(decoder(X, encoder(MEMORY))), atol=1e-5)


def test_a_mask_given_beside_an_attention_mask():
    """Both hide: the result is that of their conjunction."""
    layer = layers.TransformerEncoderLayer(2, 16)
    mask, attention_mask = PADDING, np.tril(np.ones((3, 5, 5), bool))
    both = array(layer(X, mask=mask, attention_mask=attention_mask))
    np.testing.assert_allclose(both, array(layer(X, attention_mask=attention_mask & mask[:, None])), atol=1e-6)


def test_a_mask_that_the_memory_carries():
    ids, targets = keras.Input((None,), dtype="int32"), keras.Input((None, 8))
    embedded = layers.TokenEmbedding(9, 8, mask_zero=True)(ids)
    model = keras.Model([ids, targets], layers.TransformerDecoderLayer(2, 16)(targets, embedded))
    longer = np.pad(IDS, ((0, 0), (0, 4)))
    np.testing.assert_allclose(array(model([longer, X])), array(model([IDS, X])), atol=1e-5)


@pytest.mark.parametrize(
    "layer, inputs",
    [
        (lambda: layers.TransformerEncoderLayer(2, 16), {}),
        (lambda: layers.TransformerEncoderLayer(2, 16), {"mask": PADDING}),
        (lambda: layers.TransformerEncoderLayer(self_attention=layers.RestrictedAttention(2, 2), filter_size=16), {}),
        (lambda: layers.TransformerDecoderLayer(2, 16), {"memory": MEMORY}),
        (lambda: layers.Residual(layers.MultiHeadAttention(2)), {}),
        (lambda: layers.MultiHeadAttention(2), {}),
        (lambda: layers.RelativeAttention(2, 3), {}),
        (lambda: layers.RestrictedAttention(2, 3), {}),
    ],
)
def test_a_padding_mask_as_attention_mask_is_refused_by_name(layer, inputs):
    with pytest.raises(ValueError, match=r"`attention_mask` must be \[T, S\].* \(3, 5\).*mask\[:, None, :\]"):
        layer()(X, attention_mask=PADDING, **inputs)


def test_a_padding_mask_of_a_functional_model_is_refused_by_name():
    """There its first size is unknown; the queries' length is not."""
    x, mask = keras.Input((5, 8)), keras.Input((5,), dtype="bool")
    model = keras.Model([x, mask], layers.TransformerEncoderLayer(2, 16)(x, attention_mask=mask))
    with pytest.raises(ValueError, match="`attention_mask` must be"):
        model.predict([X, PADDING], verbose=0)


def test_an_initializer_reaches_every_dense_layer():
    own = {"kernel_initializer": keras.initializers.Constant(0.25), "bias_initializer": "ones"}
    layer = layers.TransformerDecoderLayer(2, 16, attention_bias=True, activation=keras.activations.softplus, **own)
    layer.build((None, None, 8), (None, None, 8))
    dense = [part for part in layer._flatten_layers() if isinstance(part, keras.layers.Dense)]
    assert len(dense) == 4 + 4 + 2
    assert all((array(part.kernel) == 0.25).all() and (array(part.bias) == 1).all() for part in dense)
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert copy.get_config() == layer.get_config() and copy.get_config()["activation"] == "softplus"


def composed(**options):
    return {
        "self_attention": layers.RelativeAttention(2, 3),
        "feed_forward": layers.FeedForward(16, activation="swiglu"),
        "norm": "pre",
        **options,
    }


@pytest.mark.long
def test_contract_of_a_layer_composed_of_layers(tmp_path):
    cross = composed(cross_attention=layers.MultiHeadAttention(4))
    check_layer(layers.TransformerDecoderLayer, cross, X, 5 + 2 + 6 + 2 + 4 + 2, tmp_path, memory=MEMORY)


def test_layers_composed_of_layers():
    """What is given is used, and nothing else is made."""
    encoder = layers.TransformerEncoderLayer(**composed())
    encoder(X)
    assert len(encoder.trainable_weights) == 4 + 1 + 2 + 6 + 2
    assert encoder.self_attention.layer.score.max_relative_position == 3
    decoder = layers.TransformerDecoderLayer(**composed(cross_attention=layers.MultiHeadAttention(4)))
    part = layers.TransformerDecoderLayer.from_config(decoder.get_config())
    assert part.self_attention.layer.score.max_relative_position == 3 and part.options.cross_attention.num_heads == 4


@pytest.mark.parametrize("layer_class", [layers.TransformerEncoderLayer, layers.TransformerDecoderLayer])
def test_each_option_reaches_its_sub_layer(layer_class):
    sizes = {"num_heads": 2, "filter_size": 16, "key_dim": 3, "value_dim": 5}
    rates = {"dropout": 0.1, "attention_dropout": 0.2, "relu_dropout": 0.3}
    others = {"norm": "pre", "norm_epsilon": 0.4, "attention_bias": True, "activation": "gelu"}
    layer = layer_class(**sizes, **rates, **others)
    layer.build(X.shape, *([MEMORY.shape] if layer_class is layers.TransformerDecoderLayer else []))
    residuals = [layer.self_attention, layer.feed_forward]
    attentions = [layer.self_attention.layer]
    if layer_class is layers.TransformerDecoderLayer:
        residuals.append(layer.cross_attention)
        attentions.append(layer.cross_attention.layer)
    for residual in residuals:
        found = (residual.norm, residual.dropout_rate, residual.normalization.epsilon)
        assert found == ("pre", 0.1, 0.4)
    for attention in attentions:
        found = (attention.num_heads, attention.key_dim, attention.value_dim, attention.dropout_rate)
        assert (*found, attention.use_bias) == (2, 3, 5, 0.2, True)
    network = layer.feed_forward.layer
    assert (network.filter_size, network.dropout_rate, network.activation) == (16, 0.3, "gelu")


def test_a_memory_mask_as_keras_carries_it_hides_the_same():
    layer, mask = layers.TransformerDecoderLayer(2, 16), np.arange(7) < np.array([[4], [7], [2]])
    expected = array(layer(X, MEMORY, memory_mask=mask[:, None]))
    np.testing.assert_array_equal(array(layer(X, MEMORY, memory_mask=mask)), expected)
    np.testing.assert_allclose(expected[2], array(layer(X[2:], MEMORY[2:, :2]))[0], atol=1e-5)


def test_without_weights_there_are_no_steps():
    layer, attention = layers.TransformerDecoderLayer(2, 16), layers.MultiHeadAttention(2)
    for begin in (
        lambda: layer.init_cache(None, 3, 5),
        lambda: layer.prefill(X),
        lambda: attention.empty_past(3, 5),
        lambda: attention.prefill(X),
        lambda: attention.memory(X),
    ):
        with pytest.raises(ValueError, match=r"^(transformer_decoder|multi_head_attention)\w* has no weights yet"):
            begin()


@pytest.mark.parametrize("given", [None, "rows", "lists", "queries"])
def test_steps_see_as_much_of_the_memory_as_one_pass(given):
    """The mask that Keras attaches to a memory counts in addition to one that is passed, of either shape."""
    layer, ids = layers.TransformerDecoderLayer(2, 16), np.array([[3, 0, 4, 0], [1, 2, 0, 0], [5, 6, 7, 8]])
    memory = layers.TokenEmbedding(9, 8, mask_zero=True)(ids)
    mask = None if given is None else np.arange(4) != np.array([[0], [1], [2]])
    mask = mask.tolist() if given == "lists" else mask[:, None] if given == "queries" else mask
    full, cache = array(layer(X, memory, memory_mask=mask)), layer.init_cache(memory, 3, 5)
    for i in range(5):
        output, cache = layer.step(X[:, i : i + 1], cache, i, memory_mask=mask)
        np.testing.assert_allclose(array(output)[:, 0], full[:, i], atol=1e-5)


def test_steps_after_a_prompt_are_one_pass():
    layer, mask = layers.TransformerDecoderLayer(2, 16, dropout=0.5), np.arange(7) < np.array([[[4]], [[7]], [[2]]])
    layer(X)
    full = array(layer(X))
    output, prompt = layer.prefill(X[:, :3])
    np.testing.assert_allclose(array(output), full[:, :3], atol=1e-5)
    cache = layer.init_cache(None, 3, 0, prompt, np.array([3, 3, 3], "int32"))
    for i in (3, 4):
        output, cache = layer.step(X[:, i : i + 1], cache)
        np.testing.assert_allclose(array(output)[:, 0], full[:, i], atol=1e-5)
    cross = layers.TransformerDecoderLayer(2, 16)
    full, cache = array(cross(X, MEMORY, memory_mask=mask)), None
    cache = cross.init_cache(MEMORY, 3, 0)
    for i in range(5):
        output, cache = cross.step(X[:, i : i + 1], cache, memory_mask=mask)
        np.testing.assert_allclose(array(output)[:, 0], full[:, i], atol=1e-5)
