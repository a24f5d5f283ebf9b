"""The encoder-decoders among the baselines, small, and what their tests share."""

import keras
import numpy as np

from baselines.bytenet import ByteNet
from baselines.conv_seq2seq import ConvSeq2Seq
from baselines.lstm_seq2seq_attention import LSTMSeq2SeqAttention
from baselines.neural_gpu import NeuralGPU
from tests.layers.equations import array

VOCAB = 20
MODELS = {
    "additive": (LSTMSeq2SeqAttention, {"num_layers": 3}),
    "multiplicative": (LSTMSeq2SeqAttention, {"mechanism": "luong"}),
    "conv_seq2seq": (ConvSeq2Seq, {"num_encoder_layers": 2, "num_decoder_layers": 2, "max_position": 64}),
    "bytenet": (ByteNet, {"num_layers": 2, "num_blocks": 1}),
    "neural_gpu": (NeuralGPU, {"num_layers": 2}),
}


def make(name, **options):
    """Returns a small model with weights drawn from a wide distribution, biases and gains included."""
    kind, own = MODELS[name]
    keras.utils.set_random_seed(3)
    model = kind(**{"vocab_size": VOCAB, "hidden_size": 16, **own, **options})
    model.build()
    draw = np.random.default_rng(2)
    for weight in model.weights:
        weight.assign(array(weight) + draw.normal(0, 0.2, weight.shape))
    return model


def example(seed=1, target_vocab=VOCAB):
    """Three sentences of 7, 4 and 1 ids, and as many targets of 6, 2 and 6."""
    draw = np.random.default_rng(seed)
    inputs, targets = draw.integers(3, VOCAB, (3, 7)), draw.integers(3, target_vocab, (3, 6))
    inputs[1, 4:], inputs[2, 1:], targets[1, 2:] = 0, 0, 0
    return inputs.astype("int32"), targets.astype("int32")


def logits_of(model, inputs, targets):
    return array(model({"inputs": inputs, "targets": targets}, training=False))
