"""What layers share beside their inputs reaches each of them, and what they compute beside their outputs comes out."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import X
from tests.layers.priced import Priced

NONPADDING = np.array([[True] * X.shape[1]] * (len(X) - 1) + [[True, True] + [False] * (X.shape[1] - 2)])


def priced(count=2, norm="pre", layer=layers.TransformerEncoderLayer):
    parts = [layer(2, feed_forward=Priced(16, dropout=0.2), dropout=0.3, norm=norm) for _ in range(count)]
    return parts


def run(stack, states=None, **options):
    results = layers.Results()
    context = layers.Context(nonpadding=ops.convert_to_tensor(NONPADDING), results=results)
    if states is not None:
        context = [context.replace(earlier=state) for state in states]
    return stack(ops.convert_to_tensor(X), context=context, **options), results


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_costs_of_all_layers_are_added(norm):
    stack = layers.TransformerStack(priced(norm=norm))
    assert stack.has_costs and not layers.TransformerStack([layers.TransformerEncoderLayer(2, 16)]).has_costs
    output, results = run(stack)
    np.testing.assert_array_equal(array(output), array(stack(X)))
    assert len(results.each("first")) == 2
    found = array(results.total("cost"))
    assert found.shape == NONPADDING.shape and (found[~NONPADDING] == 0).all() and (found[NONPADDING] > 0).all()
    np.testing.assert_allclose(found, sum(array(cost) for cost in results.each("cost")), rtol=1e-6)


@pytest.mark.parametrize("recompute", [False, True])
def test_costs_that_no_context_collects_are_losses(recompute):
    stack = layers.TransformerStack(priced(norm="post", layer=layers.TransformerDecoderLayer), recompute)
    stack.build(X.shape)
    for options in ({}, {"mask": NONPADDING}):
        layers.number_seeds(stack)
        with layers.dropout_seed(5, 1):
            stack(X, **options, training=True)
            [loss] = stack.losses
            context = layers.Context(nonpadding=ops.convert_to_tensor(options.get("mask", np.ones_like(NONPADDING))))
            stack(X, **options, context=context, training=True)
        cost = array(context.results.total("cost"))
        assert array(loss) == pytest.approx(cost.sum() / (cost != 0).sum())
        assert stack.losses == []
    stack(X)
    assert stack.losses == []


def test_a_layer_without_a_context_may_contain_costs():
    class Wrapped(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = Priced(16)

        def build(self, shape):
            self.inner.build(shape)

        def call(self, inputs, return_attention_scores=False, training=None):
            return self.inner(inputs)

    stack = layers.TransformerStack([Wrapped()])
    stack(X, training=True)
    assert stack.has_costs and stack.losses == []


def test_results_are_kept_in_their_order():
    results = layers.Results()
    results.add("cost", 3)
    results.update({"cost": [5, 11], "use": [2]})
    assert results.each("cost") == [3, 5, 11] and results.each("use") == [2] and results.each("other") == []
    assert results.total("cost") == 19
    with pytest.raises(KeyError):
        results.total("other")
    layers.Context().results.add("cost", np.ones(1))
    assert layers.Context().results.each("cost") == []


def test_states_come_before_the_inputs():
    states = ops.convert_to_tensor(X[:, :2, ::-1])
    seen = np.array([[True, False], [False, False], [True, True]])
    plain, masked = layers.Context(states), layers.Context(states, ops.convert_to_tensor(seen))
    np.testing.assert_array_equal(array(plain.before(X)), np.concatenate([X[:, :2, ::-1], X], axis=1))
    assert array(plain.mask(3)).tolist() == [[True] * 5] * 3
    inputs = np.array([[False, True, True], [True] * 3, [True, False, False]])
    assert array(masked.mask(3, inputs)).tolist() == np.concatenate([seen, inputs], axis=1).tolist()
    assert not masked.without_states().has_states and masked.without_states().visible == ()
    assert masked.without_states().results is masked.results and layers.Context().without_states().visible == ()
    doubled = masked.normalized(lambda x: 2 * x)
    np.testing.assert_array_equal(array(doubled.earlier), 2 * X[:, :2, ::-1])
    assert layers.Context().normalized(None).earlier == ()


def test_a_feed_forward_layer_sees_no_states():
    found = []

    class Looking(layers.FeedForward):
        def call(self, inputs, context=None, training=None):
            found.append(context.has_states)
            return super().call(inputs, training=training)

    layer = layers.TransformerDecoderLayer(2, feed_forward=Looking(16))
    layer(X, context=layers.Context(ops.convert_to_tensor(X[:, :2])))
    assert found == [False]


def test_a_layer_that_takes_no_context_sees_none():
    keras_attention = keras.layers.MultiHeadAttention(2, 4)
    layer = layers.TransformerEncoderLayer(self_attention=keras_attention, feed_forward=Priced(16))
    _, results = run(layers.TransformerStack([layer]))
    assert len(results.each("cost")) == 1
    with pytest.raises(ValueError, match=r"MultiHeadAttention '.*states.*`context`"):
        layer(X, context=layers.Context(earlier=ops.convert_to_tensor(X)))


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a gradient by GradientTape")
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "graph"])
def test_recomputed_costs_have_the_gradient_of_kept_ones(compiled):
    """Of weights, of the inputs, and of the states before them."""
    import tensorflow as tf

    found = []
    for recompute in (False, True):
        keras.utils.set_random_seed(3)
        stack = layers.TransformerStack(priced(layer=layers.TransformerDecoderLayer), recompute=recompute)
        stack.build(X.shape)
        layers.number_seeds(stack)
        states = [tf.constant(X[:, ::-1] * (1 + i)) for i in range(2)]

        def gradients(stack=stack, states=states):
            with layers.dropout_seed(5, 1), tf.GradientTape() as tape:
                tape.watch(states)
                _, results = run(stack, states, training=True)
                loss = tf.reduce_sum(results.total("cost")) + tf.reduce_sum(tf.add_n(results.each("first")) ** 2)
            return [loss, *tape.gradient(loss, [*stack.trainable_weights, *states])]

        found.append([array(x) for x in (tf.function(gradients) if compiled else gradients)()])
        assert all(np.abs(gradient).max() > 0 for gradient in found[-1])
    for kept, recomputed in zip(*found, strict=True):
        np.testing.assert_allclose(recomputed, kept, atol=1e-4, rtol=1e-4)
