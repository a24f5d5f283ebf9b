"""A stack is its layers one after another, with or without a cache, and is saved with them."""

# Nearest tests of: t2t_lite/layers/dropout.py

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.errors import UserError
from t2t_lite.layers.context import Context
from tests.layers.equations import array
from tests.layers.harness import MEMORY, X, check_layer


def encoder_layers(count=2, **options):
    return [layers.TransformerEncoderLayer(2, 16, **options) for _ in range(count)]


@pytest.fixture
def decoder():
    stack = layers.TransformerStack([layers.TransformerDecoderLayer(2, 16, norm="pre") for _ in range(2)])
    stack.build(X.shape, MEMORY.shape)
    return stack


@pytest.mark.slow
def test_contract(tmp_path):
    check_layer(layers.TransformerStack, {"layers": encoder_layers(1)}, X, 4 + 2 + 4 + 2, tmp_path)


@pytest.mark.parametrize("kind", [keras.layers.Dense, keras.layers.LSTM, layers.FeedForward])
def test_a_layer_that_it_could_not_call_is_refused(kind):
    layer = kind(8)
    with pytest.raises(ValueError, match=rf"{layer.name}' has no argument return_attention_scores\. .*Sequential"):
        layers.TransformerStack([*encoder_layers(1), layer])


def test_it_runs_its_layers_in_turn_and_shows_every_state():
    parts = encoder_layers(3)
    output, scores, states = layers.TransformerStack(parts)(X, return_attention_scores=True, return_hidden_states=True)
    x = X
    for part, weights, before in zip(parts, scores, states, strict=False):
        np.testing.assert_array_equal(array(before), array(x))
        x, expected = part(x, return_attention_scores=True)
        np.testing.assert_allclose(array(weights), array(expected), atol=1e-6)
    np.testing.assert_allclose(array(output), array(x), atol=1e-6)
    np.testing.assert_array_equal(array(states[-1]), array(output))


def test_steps_with_a_cache_give_the_full_pass(decoder):
    cache = decoder.init_cache(MEMORY, len(X), X.shape[1])
    steps = []
    memory_mask = np.arange(7) < np.array([[[4]], [[7]], [[2]]])
    for position in range(X.shape[1]):
        seen = ops.arange(X.shape[1])[None, None] <= position
        x, cache = decoder.step(X[:, [position]], cache, position, seen, memory_mask)
        steps.append(array(x))
    expected = array(decoder(X, MEMORY, memory_mask=memory_mask))
    np.testing.assert_allclose(np.concatenate(steps, axis=1), expected, atol=1e-5)
    assert np.abs(expected - array(decoder(X, MEMORY))).max() > 1e-3


@pytest.mark.slow
def test_a_layer_may_stand_in_several_places():
    one, two = encoder_layers()
    stack = layers.TransformerStack([one, one, two])
    assert len(stack(X).shape) == 3 and len(stack.trainable_weights) == 2 * (4 + 2 + 4 + 2)
    np.testing.assert_allclose(array(stack(X)), array(two(one(one(X)))), atol=1e-6)
    again = layers.TransformerStack.from_config(stack.get_config())
    again.build(X.shape)
    again.set_weights(stack.get_weights())
    np.testing.assert_allclose(array(again(X)), array(stack(X)), atol=1e-6)


def test_each_place_of_a_layer_has_masks_of_its_own():
    class Same(keras.layers.Layer):
        """Shows the mask."""

        def __init__(self):
            super().__init__()
            self.dropout = layers.Dropout(0.5)

        def call(self, x, return_attention_scores=False, training=None):
            return ops.where(self.dropout(ops.ones_like(x), training=training) > 0, 1.0, 0.0)

    one, two = Same(), Same()
    stack = layers.TransformerStack([one, one, two, one])
    assert layers.number_seeds(stack) == 2
    with layers.dropout_seed(5, 1):
        _, (_, *masks) = stack(np.ones((1, 20, 20), "float32"), return_hidden_states=True, training=True)
    for i, mask in enumerate(masks):
        assert all(0.3 < (array(mask) != array(other)).mean() < 0.7 for other in masks[:i])


@pytest.mark.slow
@pytest.mark.few("shared")
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a gradient by GradientTape")
@pytest.mark.parametrize("places", [[0, 1], [0, 0, 1]], ids=["own", "shared"])
def test_recomputed_activations_have_the_gradient_of_kept_ones_without_a_scope(places):
    """As in `fit`: outside of `dropout_seed`, where each draw of a mask changes the generator's state."""
    import tensorflow as tf

    found = []
    for recompute in (False, True):
        keras.utils.set_random_seed(3)
        parts = encoder_layers(dropout=0.3, attention_dropout=0.2)
        stack = layers.TransformerStack([parts[place] for place in places], recompute=recompute)
        stack.build(X.shape)
        with tf.GradientTape() as tape:
            loss = ops.sum(stack(X, training=True) ** 3)
        found.append([array(loss), *map(array, tape.gradient(loss, stack.trainable_weights))])
        found[-1].append(sum(int(array(v).sum()) for v in stack.non_trainable_variables))
    for kept, recomputed in zip(*found, strict=True):
        np.testing.assert_allclose(recomputed, kept, atol=1e-3, rtol=1e-4)


def test_a_decoder_stack_takes_the_mask_that_keras_carries():
    embedding = layers.TokenEmbedding(9, 8, mask_zero=True)
    stack = layers.TransformerStack([layers.TransformerDecoderLayer(2, 16) for _ in range(2)])
    rows = np.array([[0, 0, 3, 4, 5], [0, 6, 7, 8, 1], [0, 0, 0, 0, 2]])
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, stack(embedding(inputs)))
    found = array(model(rows))
    for row, output, start in zip(rows, found, (2, 1, 4), strict=True):
        alone = array(stack(embedding(row[None, start:])))[0]
        np.testing.assert_allclose(output[start:], alone, atol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="float64 is float32 elsewhere")
def test_a_mask_that_keras_carries_reaches_every_layer_beside_other_tensors():
    """Recomputed activations and a cast to another precision carry no mask."""
    mask = np.arange(5) >= np.array([[2], [0], [1]])  # on the left, where a causal order does not hide padding
    symbol, memory, embedding = keras.Input((5,), dtype="int32"), keras.Input((7, 8)), layers.TokenEmbedding(9, 8, True)
    ids = np.where(mask, 4, 0)
    for dtype, recompute in (("float32", True), ("float64", False)):
        parts = [layers.TransformerDecoderLayer(2, 16, dropout=0.0, dtype=dtype) for _ in range(2)]
        stack = layers.TransformerStack(parts, recompute=recompute)
        model = keras.Model([symbol, memory], stack(embedding(symbol), memory))
        expected = array(stack(array(embedding(ids)), MEMORY, mask=mask))[mask]
        np.testing.assert_allclose(array(model([ids, MEMORY], training=True))[mask], expected, atol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a gradient by GradientTape")
def test_recomputed_layers_update_their_state_once():
    import tensorflow as tf

    found = []
    for recompute in (False, True):
        network = keras.layers.BatchNormalization()
        stack = layers.TransformerStack(
            [layers.TransformerEncoderLayer(2, feed_forward=network, dropout=0.0)], recompute
        )
        stack.build(X.shape)
        stack.set_weights([np.full_like(w, 0.5) for w in stack.get_weights()])
        with tf.GradientTape() as tape:
            loss = ops.sum(stack(X, training=True) ** 3)
        found.append([*map(array, tape.gradient(loss, stack.trainable_weights)), *stack.get_weights()])
    for kept, recomputed in zip(*found, strict=True):
        np.testing.assert_allclose(recomputed, kept, atol=1e-4, rtol=1e-4)


def test_dropouts_are_numbered_as_if_the_model_held_the_layers_itself():
    """Runs that were begun before there were stacks continue with their masks."""

    class Flat(keras.Model):
        def __init__(self, parts, stacked):
            super().__init__()
            self.first = layers.Dropout(0.1)
            self.parts = layers.TransformerStack(parts) if stacked else parts
            self.last = layers.Dropout(0.1)

    found = []
    for stacked in (True, False):
        parts = encoder_layers(3, attention_dropout=0.1)
        for part in parts:
            part.build(X.shape)
        layers.number_seeds(Flat(parts, stacked))
        residuals = [getattr(part, name) for part in parts for name in ("self_attention", "feed_forward")]
        found.append([residual.dropout.seed_generator.index for residual in residuals])
    assert found[0] == found[1] and len(set(found[0])) == 6


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_segments_with_the_states_before_them_are_one_pass(norm):
    """States of each layer's inputs, which pre-norm layers normalize as they do the inputs."""
    stack = layers.TransformerStack([layers.TransformerDecoderLayer(2, 16, norm=norm) for _ in range(3)])
    full = array(stack(X))
    outputs, states = [], [X[:, :0]] * 3
    for begin, end in ((0, 2), (2, 3), (3, 5)):
        x, new = stack(X[:, begin:end], context=[Context(x) for x in states], return_hidden_states=True)
        states = [ops.concatenate(pair, axis=1) for pair in zip(states, new, strict=False)]
        outputs.append(array(x))
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), full, atol=1e-5)


def test_layers_with_a_precision_of_their_own_hand_on_that_of_the_stack():
    parts = [layers.TransformerDecoderLayer(2, 16, dtype=dtype) for dtype in ("bfloat16", "float32")]
    stack = layers.TransformerStack(parts)
    stack.build(X.shape)
    _, states = stack(X, return_hidden_states=True)
    x, prompts = stack.prefill(X)
    y, _ = stack.step(X[:, :1], stack.init_cache(None, 3, 5), 0)
    for state in (*states[1:], x, y):
        assert keras.backend.standardize_dtype(state.dtype) == "float32"
    assert len(prompts) == 2


@pytest.mark.parametrize(
    "layer, words",
    [
        (lambda: keras.layers.Dropout(0.5), r"recompute_grad: Dropout .*generator"),
        (lambda: keras.layers.Dense(8, activity_regularizer="l2"), r"recompute_grad: Dense .*add_loss"),
    ],
    ids=["own generator", "own loss"],
)
def test_what_cannot_be_recomputed_is_refused_in_training(layer, words):
    network = keras.Sequential([layer()])
    stack = layers.TransformerStack([layers.TransformerEncoderLayer(2, feed_forward=network)], recompute=True)
    assert stack(X).shape == X.shape
    with pytest.raises(UserError, match=words):
        stack(X, training=True)
