"""A mixture of experts is the sum of the chosen networks, weighted by the gates; unequal use has a cost."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.harness import PAIR as X
from tests.layers.harness import check_layer


def mixture(num_experts=4, k=2, **options):
    """A mixture whose gates have been trained: they differ by position."""
    layer = layers.MixtureOfExperts(16, num_experts, k, **options)
    layer.build(X.shape)
    rng = np.random.default_rng(3)
    for kernel in (layer.gate_kernel, layer.noise_kernel):
        kernel.assign(rng.normal(size=kernel.shape))
    for part in layer.parts:
        bias = getattr(layer, f"{part}_bias")
        bias.assign(rng.normal(size=bias.shape))
    return layer


def gates_of(layer, x):
    """The gates [N, num_experts] by equations 3 and 5, without noise."""
    logits = x @ array(layer.gate_kernel)
    chosen = logits >= np.sort(logits, axis=1)[:, [-layer.k]]
    weights = np.exp(logits - logits.max(1, keepdims=True)) * chosen
    return weights / weights.sum(1, keepdims=True)


def squared_variation(x):
    return x.var() / (x.mean() ** 2 + 1e-10)


@pytest.mark.slow
def test_contract(tmp_path):
    check_layer(layers.MixtureOfExperts, {"filter_size": 16, "num_experts": 4}, X, 2 + 4, tmp_path)


@pytest.mark.parametrize("num_experts, k, activation", [(4, 2, "relu"), (3, 3, "swiglu"), (5, 1, "gelu")])
def test_it_is_the_dense_sum_with_gates(num_experts, k, activation):
    layer = mixture(num_experts, k, activation=activation)
    weights = {name: array(weight) for name, weight in layer.weights_of_all().items()}
    rows, expected = X.reshape(-1, X.shape[-1]), 0
    gates = gates_of(layer, rows)
    assert ((gates > 0).sum(1) == k).all()
    for i in range(num_experts):
        expert = layers.FeedForward(16, activation=activation)
        expert.build(X.shape)
        for part, name in {"inner": "inner", "outer": "outer", "linear": "gate"}.items():
            if dense := getattr(expert, name, None):
                dense.kernel.assign(weights[f"{part}_kernel"][i])
                dense.bias.assign(weights[f"{part}_bias"][i])
        expected = expected + gates[:, [i]] * array(expert(rows))
    np.testing.assert_allclose(array(layer(X)).reshape(rows.shape), expected, atol=1e-5, rtol=1e-5)


def test_experts_begin_with_values_of_their_own():
    layer = layers.MixtureOfExperts(16, 3)
    layer.build(X.shape)
    kernel = array(layer.weights_of_all()["inner_kernel"])
    assert np.abs(kernel[0] - kernel[1]).max() > 0.1 and np.abs(kernel).max() <= np.sqrt(6 / (8 + 16))  # Glorot's bound
    assert not array(layer.gate_kernel).any() and not array(layer.noise_kernel).any()


def test_a_position_depends_on_no_other_one():
    layer = mixture()
    full = array(layer(X))
    for row in range(len(X)):
        for at in range(X.shape[1]):
            np.testing.assert_allclose(array(layer(X[[row], at : at + 1]))[0, 0], full[row, at], atol=1e-6)


def test_later_positions_do_not_even_round_earlier_ones_in_another_way():
    """Of some experts one position is the only one, or is not."""
    layer, draw = layers.MixtureOfExperts(400, 4, 2), np.random.default_rng(4)
    matrix, kernel = (draw.normal(size=shape).astype("float32") for shape in [(14, 200), (200, 400)])
    products = [array(ops.matmul(matrix[:rows], kernel)) for rows in range(2, 15)]
    if any((product != products[-1][: len(product)]).any() for product in products):
        pytest.skip("the kernels of this CPU round a row by the number of rows beside it")
    layer.build((None, 200))
    layer.gate_kernel.assign(draw.normal(size=layer.gate_kernel.shape))
    for _ in range(60):
        x = draw.normal(size=(draw.integers(3, 14), 200)).astype("float32")
        at = len(x) // 2
        other = np.concatenate([x[:at], draw.normal(size=x[at:].shape).astype("float32")])
        np.testing.assert_array_equal(array(layer(x))[:at], array(layer(other))[:at])


def results_of(layer, x, nonpadding=(), **options):
    nonpadding = nonpadding if isinstance(nonpadding, tuple) else ops.convert_to_tensor(nonpadding)
    context = layers.Context(nonpadding=nonpadding)
    layer(x, context=context, **options)
    return context.results


def test_the_cost_is_that_of_an_unequal_use_and_padding_has_none():
    layer = mixture(loss_coef=0.5)
    nonpadding = np.array([[True] * 5, [True, True, False, False, False]])
    cost = array(results_of(layer, X, nonpadding).total("cost"))
    gates = gates_of(layer, X.reshape(-1, 8))[nonpadding.reshape(-1)]
    expected = 0.5 * (squared_variation(gates.sum(0)) + squared_variation((gates > 0).sum(0).astype("float32")))
    np.testing.assert_allclose(cost, np.where(nonpadding, expected, 0), rtol=1e-5)
    wider = np.pad(X, ((0, 0), (0, 3), (0, 0)), constant_values=9)
    padded = array(results_of(layer, wider, np.pad(nonpadding, ((0, 0), (0, 3)))).total("cost"))
    np.testing.assert_allclose(padded[:, :5], cost, rtol=1e-6)


def test_without_a_context_the_cost_is_a_loss_in_training():
    layer, nonpadding = mixture(loss_coef=0.5), np.array([[True] * 5, [True, True, False, False, False]])
    around = layers.TransformerEncoderLayer(2, feed_forward=layer, dropout=0.0, norm="pre")
    masked = keras.layers.Masking()(np.where(nonpadding[..., None], X, 0.0))
    for call, inputs, where in ((layer, X, ()), (layer, masked, nonpadding), (around, masked, nonpadding)):
        with layers.dropout_seed(5, 1):
            call(inputs, training=True)
            [loss] = call.losses
            cost = results_of(call, inputs, where, training=True).total("cost")
        assert array(loss) == pytest.approx(array(cost).max(), rel=1e-5)
        call(inputs)
        assert call.losses == []


def test_an_empty_batch_has_no_cost():
    layer = mixture(loss_coef=0.5)
    layer(X[:0], training=True)
    assert [array(loss) for loss in layer.losses] == [0]


def test_the_load_is_the_probability_that_an_expert_is_chosen():
    """Of noise drawn again for one expert, the others' being what they were: as often as it happens."""
    layer = mixture()
    x, draws = X.reshape(-1, 8)[:2], 20_000
    with layers.dropout_seed(ops.convert_to_tensor(1, "int32")):
        _, experts, load = layer.gates(x, training=True)
        noise = array(layers.normal((2, 4), layer.noise))
    clean, deviation = x @ array(layer.gate_kernel), np.log1p(np.exp(x @ array(layer.noise_kernel))) + 1e-2
    logits = clean + noise * deviation
    np.testing.assert_array_equal(np.sort(array(experts)), np.sort(np.argsort(-logits)[:, :2]))
    again = np.random.default_rng(0).normal(size=(draws, 2, 4)) * deviation + clean
    for i in range(4):
        others = np.sort(np.delete(logits, i, axis=1))[:, -2]  # it must be above the second best of the others
        np.testing.assert_allclose((again[:, :, i] > others).mean(0), array(load)[:, i], atol=0.015)


def test_use_is_counted_in_training():
    layer = layers.MixtureOfExperts(16, 4, 2)
    layer.build(X.shape)
    assert results_of(layer, X).each("shares/expert_use") == []
    nonpadding = np.array([[True] * 5, [True, True, False, False, False]])
    (use,) = results_of(layer, X, nonpadding, training=True).each("shares/expert_use")
    assert array(use).sum() == 2 * 7 and array(use).max() <= 7


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="XLA beside a graph")
def test_xla_computes_with_all_experts_what_a_graph_does_with_the_chosen_ones():
    """The same outputs, costs and gradients, noise and dropout included."""
    import tensorflow as tf

    layer = mixture(dropout=0.4)
    layers.number_seeds(keras.Sequential([layer]))

    def gradients(x, in_xla):
        context = layers.Context()
        with layers.dropout_seed(tf.constant(3), 5, in_xla=in_xla), tf.GradientTape() as tape:
            tape.watch(x)
            output = layer(x, context=context, training=True)
            loss = tf.reduce_sum(output**2) + tf.reduce_sum(context.results.total("cost"))
        weights = [weight.value for weight in layer.trainable_weights]
        return [output, loss, *tape.gradient(loss, [x, *weights])]

    signature = [tf.TensorSpec([None, None, 8])]
    graph = tf.function(lambda x: gradients(x, False), input_signature=signature)
    compiled = tf.function(lambda x: gradients(x, True), input_signature=signature, jit_compile=True)
    assert "SplitV" in {node.type for node in graph.get_concrete_function().graph.get_operations()}
    for ours, theirs in zip(graph(tf.constant(X)), compiled(tf.constant(X)), strict=True):
        np.testing.assert_allclose(array(ours), array(theirs), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_experts": 2, "k": 3}, "`num_experts` must be at least `k`.*num_experts=2, k=3"),
        ({"num_experts": 0}, "num_experts"),
        ({"loss_coef": -1.0}, r"`loss_coef`.*-1\.0"),
        ({"loss_coef": "a"}, "`loss_coef`.*'a'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        layers.MixtureOfExperts(16, **options)


def test_settings_have_the_defaults_of_the_arguments():
    layer = layers.MixtureOfExperts(16)
    assert {name: field.default for name, field in layers.MixtureOfExperts.HPARAMS.items()} == {
        "moe_num_experts": 16, "moe_k": 2, "moe_loss_coef": 1e-3
    }  # fmt: skip
    assert (layer.num_experts, layer.k, layer.loss_coef, layer.dropout_rate) == (16, 2, 1e-3, 0.0)


def test_operations_and_bytes_by_hand():
    """Of hidden size 8: the gates of 5 experts, 3 experts of 7 inner activations, two or three products each."""
    plain, gated = (
        layers.MixtureOfExperts(7, 5, 3, dropout=rate, activation=name) for rate, name in ((0, "relu"), (0.1, "swiglu"))
    )
    for layer in (plain, gated):
        layer.build((None, None, 8))
    assert plain.flops(9) == 2 * 8 * 5 + 3 * 2 * 2 * 8 * 7 and gated.flops(9) == 2 * 8 * 5 + 3 * 3 * 2 * 8 * 7
    noise = 8 * 4 * 5
    assert plain.activations(9, 2) == 3 * 2 * (7 + 2 * 8) + noise
    assert gated.activations(9, 2) == 3 * 2 * (5 * 7 + 2 * 8) + 7 * 2 + noise
