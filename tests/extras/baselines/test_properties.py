"""The encoder-decoders of the baselines: vocabularies, attention, wide kernels, sizes, and what they refuse."""

# Nearest tests of: extras/baselines/bytenet.py, extras/baselines/conv_seq2seq.py
# Nearest tests of: extras/baselines/extended_neural_gpu.py, extras/baselines/lstm_seq2seq_attention.py

import inspect
import math

import keras
import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.extras.baselines.conv_seq2seq import GatedConvolution
from t2t_lite.layers import Dropout
from t2t_lite.models.shapes_only import shapes_only
from tests.extras.baselines.models import MODELS, VOCAB, example, logits_of, make
from tests.layers.equations import array


@pytest.fixture(scope="module", params=MODELS)
def name(request):
    return request.param


def assert_close(found, expected, tolerance):
    """Asserts that the largest difference is at most a share of the largest value."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.few("True-bytenet", "bytenet-True", "bytenet-False", "True-neural_gpu", "neural_gpu-True")
@pytest.mark.parametrize("tie", [True, False])
def test_two_vocabularies(name, tie):
    model = make(name, target_vocab_size=VOCAB + 9, tie_embeddings=tie)
    inputs, targets = example(target_vocab=VOCAB + 9)
    assert logits_of(model, inputs, targets).shape == (3, 6, VOCAB + 9)
    parts = {weight.path.split("/")[1] for weight in model.weights}
    assert {part for part in parts if part.endswith("embedding")} == {
        "input_embedding", "target_embedding", *([] if tie else ["softmax_embedding"])
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.few("lstm_seq2seq_attention", "conv_seq2seq")
def test_attention_weights_are_shown(name):
    model = make(name)
    if not hasattr(model, "attention_weights"):
        return
    inputs, targets = example()
    for weights in model.attention_weights({"inputs": inputs, "targets": targets})["memory"]:
        assert weights.shape == (3, 1, 6, 7)
        np.testing.assert_allclose(array(weights).sum(-1), 1, atol=1e-5)
        assert (array(weights)[1, :, :, 4:] == 0).all() and (array(weights)[2, ..., 1:] == 0).all()


@pytest.mark.slow
@pytest.mark.few("conv_seq2seq", "bytenet")
@pytest.mark.parametrize("kind", ["conv_seq2seq", "bytenet", "neural_gpu", "extended_neural_gpu"])
def test_a_kernel_may_be_wider_than_a_sentence(kind):
    model = make(kind, kernel_size=9)
    inputs, targets = np.array([[5, 1]], "int32"), np.array([[6, 1]], "int32")
    alone = logits_of(model, inputs, targets)
    wide = logits_of(model, np.pad(inputs, ((0, 0), (0, 20))), np.pad(targets, ((0, 0), (0, 20))))
    assert_close(wide[:, :2], alone, 1e-6)
    assert np.isfinite(alone).all()


@pytest.mark.parametrize(
    "model, hparams_set, changes, words",
    [
        ("lstm_seq2seq_attention", "lstm_attention_tiny", "num_hidden_layers=1", "`num_hidden_layers` .* at least 2"),
        ("lstm_lm", "lstm_lm_tiny", "num_hidden_layers=0", "num_hidden_layers"),
        ("bytenet", "bytenet_tiny", "num_hidden_layers=0", "`num_hidden_layers`.*at least 1"),
        ("bytenet", "bytenet_tiny", "num_block_repeat=0", "num_block_repeat=0.*from 1 to 64"),
        ("neural_gpu", "neural_gpu_tiny", "kernel_height=65", "kernel_height=65.*from 1 to 64"),
        ("kermit", "kermit_tiny", "slot_temperature=0", "slot_temperature=0.*from 0.001 to 1,000"),
    ],
)
def test_values_without_a_meaning_are_refused_in_one_line(model, hparams_set, changes, words):
    kind = registry.model(model)
    with pytest.raises(UserError, match=words) as refused:
        kind.from_hparams(registry.hparams(hparams_set).of_model(kind).parse(changes), VOCAB)
    assert "\n" not in str(refused.value)


DEFAULTS = {  # of the constructors, as tensor2tensor's sets and the papers' base models have them
    "bytenet": {"num_layers": 4, "num_blocks": 4, "kernel_size": 3, "dropout": 0.2},
    "conv_seq2seq": {
        "num_encoder_layers": 20, "num_decoder_layers": 20, "kernel_size": 3, "dropout": 0.1, "max_position": 1024
    },
    "extended_neural_gpu": {"num_layers": 2, "kernel_size": 3, "dropout": 0.1},
    "lstm_lm": {"head": "lm", "num_layers": 2, "hidden_size": 512, "dropout": 0.1, "tie_embeddings": True},
    "lstm_seq2seq_attention": {"num_layers": 2, "mechanism": "bahdanau", "dropout": 0.2},
    "neural_gpu": {"num_layers": 1, "kernel_size": 3, "dropout": 0.1},
}  # fmt: skip


@pytest.mark.parametrize("kind", DEFAULTS)
def test_defaults_of_arguments_and_settings(kind):
    model = registry.model(kind)
    parameters = inspect.signature(model).parameters.values()
    found = {each.name: each.default for each in parameters if each.default is not each.empty}
    found.pop("target_vocab_size")
    assert found == DEFAULTS[kind]
    assert all(field.default == found[field.metadata["argument"]] for field in model.HPARAMS.values())


RATES = {
    "bytenet": 4, "conv_seq2seq": 3 + 3 + 2, "neural_gpu": 1, "extended_neural_gpu": 2, "lstm_seq2seq_attention": 6
}  # fmt: skip


def test_each_dropout_has_the_models_rate(name):
    """Of two blocks, of five convolutions and three other places, of tapes, and of six LSTMs."""
    options = {"num_blocks": 2} if name == "bytenet" else {}
    model = make(name, dropout=0.35, **options)
    layers = [layer for layer in model._flatten_layers() if isinstance(layer, Dropout)]
    assert {layer.rate for layer in layers} == {0.35}
    assert name not in RATES or len(layers) == RATES[name]


def test_a_gated_convolution_keeps_variances():
    """Gehring et al. (2017), section 3.5: N(0, 4 p / n) of n inputs, kept with the probability p."""
    keras.utils.set_random_seed(1)
    layer = GatedConvolution(64, 3, 0.25)
    layer.build((None, None, 64))
    assert array(layer.convolution.windows.kernel).std() == pytest.approx((4 * 0.75 / (3 * 64)) ** 0.5, rel=0.02)


def test_a_sentence_beyond_the_table_of_positions_is_refused():
    model = make("conv_seq2seq", max_position=8)
    assert model.max_length == 8
    with pytest.raises(ValueError, match="max_length=8"):
        model.encode(np.ones((1, 9), "int32"))


@pytest.mark.parametrize(
    "hparams_set, kind, parameters",
    [
        # Embeddings; two LSTMs of 4 · 128 · (128 + 128 + 1) for the encoder's first layer, one of inputs of 256 for the
        # second; the decoder's two; the matrices of attention and its vector.
        ("lstm_attention", "lstm_seq2seq_attention", 1000 * 128 + 512 * (257 * 3 + 385 * 2) + 128 * 257),
        # Embeddings and positions; four maps; of each of 20 + 20 convolutions 3 · 512 · 1024; 20 attentions.
        (
            "conv_seq2seq_base", "conv_seq2seq",
            (1000 + 2 * 1024) * 512 + 4 * 512 * 513 + 40 * 1024 * (3 * 512 + 1) + 20 * 2 * 512 * 513,
        ),
        # Embeddings; 8 blocks of a normalization and 4 convolutions without bias, each normalized; the decoder's start.
        ("bytenet_base", "bytenet", 1000 * 768 + 8 * (1536 + 4 * (3 * 768**2 + 1536)) + 2 * 3 * 768**2 + 1536),
        ("neural_gpu", "neural_gpu", 1000 * 256 + 3 * (3 * 256**2 + 256)),
        # Two units to encode, two to decode, which read two tapes.
        ("extended_neural_gpu", "extended_neural_gpu", 1000 * 256 + 6 * (3 * 256**2 + 256) + 6 * (6 * 256**2 + 256)),
    ],
)  # fmt: skip
def test_sets_have_the_sizes_of_their_sources(hparams_set, kind, parameters):
    model = registry.model(kind)
    built = shapes_only(model, registry.hparams(hparams_set).of_model(model), 1000)
    assert sum(math.prod(weight.shape) for weight in built.trainable_weights) == parameters
