"""The encoder-decoders of the baselines written plainly in NumPy, and which positions each convolution reaches."""

# Nearest tests of: extras/baselines/bytenet.py, extras/baselines/conv_seq2seq.py
# Nearest tests of: extras/baselines/extended_neural_gpu.py, extras/baselines/lstm_seq2seq_attention.py

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite.extras.baselines.conv_seq2seq import GatedConvolution
from t2t_lite.layers import dropout_seed
from tests.extras.baselines.models import example, logits_of, make
from tests.extras.baselines.recurrent import lstm, sigmoid
from tests.layers.backend import gradients
from tests.layers.equations import array, softmax

INPUTS, TARGETS = (ids[:1] for ids in example())


def dense(layer, x):
    return x @ array(layer.kernel) + (array(layer.bias) if layer.use_bias else 0)


def embedded(model, ids, scale):
    return array(model.input_embedding.embeddings)[ids] * scale


def shifted(x):
    return np.concatenate([np.zeros_like(x[:1]), x[:-1]])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lstm_seq2seq_attention", "lstm_seq2seq_attention_luong"])
def test_lstms_and_both_kinds_of_attention(name):
    model = make(name)
    x = embedded(model, INPUTS[0], 4.0)  # √16
    states = []
    for i, layer in enumerate(model.encoder):
        outputs, *state = lstm(layer, x)
        if i == 0:
            backward, *state = lstm(model.backward, x[::-1])
            outputs = np.concatenate([outputs, backward[::-1]], axis=1)
        x = outputs + x if i > 1 else outputs
        states.append(state)
    memory, keys = x, dense(model.attention.key, x)

    x = shifted(embedded(model, TARGETS[0], 4.0))
    queries, *_ = lstm(model.decoder[0], x, *states[0])
    if name == "lstm_seq2seq_attention":
        query, score = model.attention.query, array(model.attention.score.kernel)[:, 0]
        scores = [[score @ np.tanh(dense(query, q) + key) for key in keys] for q in queries]
    else:
        scores = queries @ keys.T
    weights = softmax(np.array(scores))
    context, x = weights @ memory, queries
    for i, layer in enumerate(model.decoder[1:], 1):
        outputs, *_ = lstm(layer, np.concatenate([x, context], axis=1), *states[i])
        x = outputs + x if i > 1 else outputs
    expected = x @ array(model.softmax.embeddings).T
    np.testing.assert_allclose(logits_of(model, INPUTS, TARGETS)[0], expected, atol=1e-4)
    shown = model.attention_weights({"inputs": INPUTS, "targets": TARGETS})["memory"][0]
    np.testing.assert_allclose(array(shown)[0, 0], weights, atol=1e-5)


def convolved(layer, x, before):
    """The sum over a window of three positions, `before` of them earlier ones."""
    kernels, padded = array(layer.windows.kernel).reshape(3, x.shape[1], -1), np.pad(x, ((before, 2 - before), (0, 0)))
    return sum(padded[j : j + len(x)] @ kernels[j] for j in range(3)) + array(layer.windows.bias)


def gated(layer, x, before):
    values, gates = np.split(convolved(layer.convolution, x, before), 2, axis=1)
    return values * sigmoid(gates)


def test_a_gated_convolution():
    """Gehring et al. (2017), section 3.2: v([A B]) = A ⊙ σ(B)."""
    layer, x = GatedConvolution(4, 3, 0.0), np.random.default_rng(1).normal(size=(2, 6, 4)).astype("float32")
    found = array(layer(x))
    for row, values in zip(found, x, strict=True):
        np.testing.assert_allclose(row, gated(layer, values, before=1), atol=1e-5)


def test_convs2s():
    """Gehring et al. (2017), sections 3.1 to 3.4."""
    model, half = make("conv_seq2seq"), np.sqrt(0.5)
    table = array(model.positions["encoder"].table)
    e = embedded(model, INPUTS[0], 1.0) + table[:7]
    z = dense(model.maps["encoder_in"], e)
    for layer in model.encoder:
        z = (gated(layer, z, before=1) + z) * half
    z = dense(model.maps["encoder_out"], z)
    values = (z + e) * half
    g = shifted(embedded(model, TARGETS[0], 1.0)) + array(model.positions["decoder"].table)[:6]
    h = dense(model.maps["decoder_in"], g)
    for layer, attention in zip(model.decoder, model.attentions, strict=True):
        inner = gated(layer, h, before=2)
        weights = softmax((dense(attention.query, inner) + g) * half @ z.T)
        context = dense(attention.output_layer, weights @ values * np.sqrt(7))
        h = ((context + inner) * half + h) * half
    expected = dense(model.maps["decoder_out"], h) @ array(model.softmax.embeddings).T
    np.testing.assert_allclose(logits_of(model, INPUTS, TARGETS)[0], expected, atol=1e-4)


def test_bytenet():
    """Kalchbrenner et al. (2016) in tensor2tensor's form: x + block(norm(x)), where a block has rectifiers in front."""
    model, end = make("bytenet", num_layers=2, num_blocks=2), 7 + 3  # the encoder runs on by half
    rows = INPUTS[:, :7]

    def norm(layer, x):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
        return x * array(layer.gamma) + array(layer.beta)

    def block(layers, x, causal):
        for i, (convolution, normalization) in enumerate(zip(layers.convolutions, layers.norms, strict=True)):
            kernels, far = array(convolution.windows.kernel).reshape(3, x.shape[1], -1), 2**i
            padded = np.pad(np.maximum(x, 0), ((2 * far, 0) if causal else (far, far), (0, 0)))
            x = norm(normalization, sum(padded[j * far : j * far + len(x)] @ kernels[j] for j in range(3)))
        return x

    memory = np.pad(embedded(model, rows[0], 4.0), ((0, end - 7), (0, 0)))
    for layer in model.encoder:
        memory = memory + block(layer.block, norm(layer.norm, memory), causal=False)
    x = shifted(embedded(model, TARGETS[0], 4.0))
    x = block(model.start, np.concatenate([memory[:6], x], axis=1), causal=True)
    for layer in model.decoder:
        x = x + block(layer.block, norm(layer.norm, x), causal=True)
    expected = x @ array(model.softmax.embeddings).T
    np.testing.assert_allclose(logits_of(model, rows, TARGETS)[0], expected, atol=1e-4)


@pytest.mark.slow
def test_convs2s_begins_with_small_embeddings_and_divides_the_encoders_gradient():
    model = make("conv_seq2seq", hidden_size=64, dropout=0.0)
    features, weight = {"inputs": INPUTS, "targets": TARGETS}, model.encoder[0].convolution.windows.kernel
    (trained,), (plain,) = (
        gradients(lambda: ops.sum(ops.square(model(features, training=training))), [weight])  # noqa: B023
        for training in (True, False)
    )
    np.testing.assert_allclose(trained, plain / 4, rtol=1e-3, atol=1e-5)  # two attentions
    keras.utils.set_random_seed(1)
    fresh = type(model)(1000, hidden_size=64, num_encoder_layers=1, num_decoder_layers=1)
    fresh.build()
    for table in (fresh.input_embedding.embeddings, fresh.positions["encoder"].table):
        assert 0.095 < array(table).std() < 0.105
    logits = logits_of(fresh, INPUTS, TARGETS)
    nats = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, TARGETS[..., None], -1)[..., 0]
    assert np.abs(nats - np.log(1000)).max() < 1  # nothing is predicted before training


@pytest.mark.slow
@pytest.mark.parametrize("training", [False, True])
def test_the_neural_gpu_is_tensor2tensors(training):
    """models/neural_gpu.py and `conv_gru` of layers/common_layers.py, of one row without padding."""
    model = make("neural_gpu", dropout=0.3)
    with dropout_seed(5):
        factors = array(model.dropout(np.ones((1, 7, 7, 16), "float32"), training=training))[0]
    assert len(np.unique(factors, axis=0)) == (7 if training else 1)  # each step has its own mask
    tape = embedded(model, INPUTS[0], 4.0)
    for factor in factors:
        tape = tape * factor
        for unit in model.steps.cell.units:
            gates = (1.2 * sigmoid(convolved(layer, tape, before=1)) - 0.1 for layer in (unit.reset, unit.gate))
            reset, gate = (np.clip(each, 0, 1) for each in gates)
            candidate = np.tanh(convolved(unit.candidate, reset * tape, before=1))
            tape = gate * tape + (1 - gate) * candidate
    expected = tape[:6] @ array(model.softmax.embeddings).T
    with dropout_seed(5):
        logits = array(model({"inputs": INPUTS, "targets": TARGETS}, training=training))
    np.testing.assert_allclose(logits[0], expected, atol=1e-4)


@pytest.mark.slow
def test_the_extended_neural_gpu_reads_its_outputs():
    """Figure 5: a second tape has the targets known so far; the first one grows with the outputs, if need be."""
    model = make("extended_neural_gpu", num_layers=2)
    targets = np.random.default_rng(7).integers(3, 20, (1, 9)).astype("int32")
    tape = array(model.encode(INPUTS)["hidden"])[0]  # of 7 positions
    known, expected = np.zeros_like(tape), []
    for t, e in enumerate(embedded(model, targets[0], 4.0)):
        more = max(t + 1 - len(tape), 0)
        tape, known = (np.pad(each, ((0, more), (0, 0))) for each in (tape, known))
        for unit in model.outputs_of_steps.cell.units:

            def read(layer, x, known=known):
                return convolved(layer, np.concatenate([x, known], axis=-1), before=1)

            reset, gate = (np.clip(1.2 * sigmoid(read(layer, tape)) - 0.1, 0, 1) for layer in (unit.reset, unit.gate))
            tape = gate * tape + (1 - gate) * np.tanh(read(unit.candidate, reset * tape))
        expected.append(tape[t] @ array(model.softmax.embeddings).T)
        known[t] = e
    np.testing.assert_allclose(logits_of(model, INPUTS, targets)[0], expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("vocab_size", [20, 30_000])
def test_past_the_tape_the_neural_gpu_predicts_the_end(vocab_size):
    inputs, targets = example()  # of 7, 4 and 1 ids
    logits = logits_of(make("neural_gpu", vocab_size=vocab_size), inputs, targets).astype("float64")
    for row, length in zip(logits, (7, 4, 1), strict=True):
        probabilities = np.exp(row - np.logaddexp.reduce(row, axis=-1, keepdims=True))
        np.testing.assert_allclose(probabilities[length:, 1], 1 / (1 + np.exp(-10)), rtol=1e-5)
        assert (probabilities[:length, 1] < 0.9).all()


def reached(function, ids, at):
    """Returns at which positions the output [T, …] changes if the id at a position does, and asserts equality there."""
    changed = ids.copy()
    changed[0, at] = 3 if ids[0, at] != 3 else 4
    before, after = array(function(ids)), array(function(changed))
    return [t for t in range(before.shape[1]) if not np.array_equal(before[0, t], after[0, t])]


LONG = np.random.default_rng(4).integers(5, 20, (1, 40)).astype("int32")


@pytest.mark.parametrize(
    "name, options, radius",
    [
        ("conv_seq2seq", {"num_encoder_layers": 2, "kernel_size": 5}, 4),  # two positions a layer
        ("bytenet", {"num_layers": 3, "num_blocks": 1}, 7),  # 1 + 2 + 4
    ],
)
def test_an_encoder_reaches_its_receptive_field(name, options, radius):
    model = make(name, **options)
    memory = {"conv_seq2seq": "keys", "bytenet": "hidden"}[name]
    found = reached(lambda ids: model.encode(ids)[memory], LONG, at=20)
    assert found == [*range(20 - radius, 20 + radius + 1)]


@pytest.mark.parametrize("name", ["lstm_seq2seq_attention", "lstm_lm"])
def test_no_lstm_takes_kernels_that_xla_does_not_have(name):
    """On a GPU Keras' layer would take cuDNN's, with which neither a step nor a search can be compiled."""
    layers = [layer for layer in make(name)._flatten_layers() if isinstance(layer, keras.layers.LSTM)]
    assert layers and not any(layer.use_cudnn for layer in layers)
