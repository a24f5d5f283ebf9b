"""The two stacks against PyTorch's nn.Transformer on the same random weights: outputs and gradients.

Measured at base dimensions, two cores: logits differ by 7e-6 at most; at small ones, gradients by 1.3e-6 of
their norm.
"""

import numpy as np
import pytest
import tensorflow as tf
import torch
from keras import ops

from t2t_lite.training.losses import cross_entropy
from tests.peers.models import random_batch, random_model, shifted
from tests.peers.weights import torch_peer, torch_state

LABEL_SMOOTHING = 0.1


def positions(length, size):
    """The paper's section 3.5: [length, size], sines and cosines in turn."""
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, size, 2) / size)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, size).astype("float32")


def torch_logits(peer, embeddings, inputs, targets):
    """Tied embeddings and softmax around an nn.Transformer, in PyTorch alone -> logits [B, T, V]."""

    def embed(ids):
        ids = torch.tensor(ids).long()
        size = embeddings.shape[1]
        return embeddings[ids] * size**0.5 * (ids != 0)[..., None] + torch.tensor(positions(ids.shape[1], size))

    hidden = peer(
        embed(inputs),
        embed(shifted(targets)),
        tgt_mask=torch.nn.Transformer.generate_square_subsequent_mask(targets.shape[1]),
        src_key_padding_mask=torch.tensor(inputs == 0),
        memory_key_padding_mask=torch.tensor(inputs == 0),
    )
    return hidden @ embeddings.T


def embedding_tensor(model):
    return torch.tensor(ops.convert_to_numpy(model.input_embedding.embeddings), requires_grad=True)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("size", ["small", "base"])
def test_logits(size, norm, activation):
    model = random_model(size, norm=norm, activation=activation)
    inputs, targets = random_batch(model.vocab_size)
    theirs = torch_logits(torch_peer(model), embedding_tensor(model), inputs, targets).detach().numpy()
    ours = ops.convert_to_numpy(model({"inputs": inputs, "targets": targets}, training=False))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=3e-5)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_gradients_of_the_smoothed_loss(norm, activation):
    model = random_model("small", norm=norm, activation=activation, dropout=0.0)
    inputs, targets = random_batch(model.vocab_size)

    peer, embeddings = torch_peer(model), embedding_tensor(model)
    their_loss = smoothed_loss(torch_logits(peer, embeddings, inputs, targets), targets)
    their_loss.backward()
    theirs = {name: weight.grad.numpy() for name, weight in peer.named_parameters()}
    theirs["embeddings"] = embeddings.grad.numpy()

    with tf.GradientTape() as tape:
        logits = model({"inputs": inputs, "targets": targets}, training=True)
        our_loss, _ = cross_entropy(logits, tf.constant(targets), LABEL_SMOOTHING)
    weights = model.trainable_weights
    slopes = tape.gradient(our_loss, [w.value for w in weights])
    by_path = {w.path: tf.convert_to_tensor(g).numpy() for w, g in zip(weights, slopes, strict=True)}
    ours = torch_state(model, array=lambda weight: by_path[weight.path])
    ours["embeddings"] = by_path[model.input_embedding.embeddings.path]

    assert float(our_loss) == pytest.approx(their_loss.item(), rel=1e-5)
    assert ours.keys() == theirs.keys()
    for name, gradient in ours.items():
        difference = np.linalg.norm(gradient - theirs[name]) / np.linalg.norm(theirs[name])
        assert difference < 1e-5, name


def smoothed_loss(logits, targets):
    """Cross-entropy with 1 - ε for the label and ε / (V - 1) for each other id, less its minimum; summed over tokens.

    (torch's own `label_smoothing` spreads ε over all V ids.)
    """
    vocab_size = logits.shape[-1]
    low, high = LABEL_SMOOTHING / (vocab_size - 1), 1 - LABEL_SMOOTHING
    ids = torch.tensor(targets).long()
    wanted = torch.full_like(logits, low).scatter(-1, ids[..., None], high)
    divergence = (wanted * (wanted.log() - logits.log_softmax(-1))).sum(-1)
    return (divergence * (ids != 0)).sum()
