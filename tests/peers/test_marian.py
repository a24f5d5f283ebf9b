"""The whole model against Hugging Face's MarianMTModel on the same random weights.

Measured at base dimensions, two cores: logits differ by 6e-6 at most, log-probabilities by 7e-6, attention by 8e-7.
"""

import numpy as np
import pytest
import torch
from keras import ops

from tests.peers.models import random_batch, random_model
from tests.peers.weights import marian_batch, marian_peer


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("size", ["small", "base"])
def test_logits_and_attention_weights(size, activation):
    model = random_model(size, position_layout="marian", activation=activation)
    inputs, targets = random_batch(model.vocab_size)
    batch = {"inputs": inputs, "targets": targets}
    with torch.no_grad():
        theirs = marian_peer(model)(**marian_batch(inputs, targets), output_attentions=True)
    ours = model(batch, training=False)
    assert_close(ours, theirs.logits, 3e-5)
    assert_close(ops.log_softmax(ours), theirs.logits.log_softmax(-1), 3e-5)
    weights = model.attention_weights(batch)
    peers = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "memory": "cross_attentions"}
    for name, attribute in peers.items():
        for mine, peer in zip(weights[name], getattr(theirs, attribute), strict=True):
            assert_close(mine, peer, 5e-6)


def assert_close(ours, theirs, tolerance):
    np.testing.assert_allclose(ops.convert_to_numpy(ours), theirs.numpy(), rtol=0, atol=tolerance)
