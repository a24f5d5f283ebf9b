"""Transformer-XL against XLNetLMHeadModel, which with `attn_type="uni"` and `mems` computes the same."""

import numpy as np
import pytest
import torch
import transformers
from keras import ops

from tests.peers.weights import dense_state, norm_state, tensors

TransformerMemory = pytest.importorskip("t2t_lite.extras.memory.transformer_memory").TransformerMemory
VOCAB, HIDDEN, HEADS, FILTER, LAYERS, MEMORY, SEGMENT = 30, 16, 4, 24, 3, 10, 6


def made():
    """Returns (our model, XLNet of the same weights, N(0, 0.3))."""
    ours = TransformerMemory(
        VOCAB, hidden_size=HIDDEN, num_heads=HEADS, filter_size=FILTER, num_layers=LAYERS, memory_length=MEMORY,
        dropout=0.0, scale_embeddings=False, norm_epsilon=1e-12, softmax_bias=True,
    )  # fmt: skip
    ours.build()
    theirs = transformers.XLNetLMHeadModel(
        transformers.XLNetConfig(
            vocab_size=VOCAB, d_model=HIDDEN, n_head=HEADS, d_inner=FILTER, n_layer=LAYERS, attn_type="uni",
            mem_len=MEMORY, use_mems_eval=True, ff_activation="relu", dropout=0.0, layer_norm_eps=1e-12,
        )
    ).eval()  # fmt: skip
    rng = np.random.default_rng(0)
    for weight in ours.trainable_weights:
        weight.assign(rng.normal(0, 0.3, weight.shape))

    def heads(kernel):
        return ops.convert_to_numpy(kernel).reshape(HIDDEN, HEADS, HIDDEN // HEADS)

    state, array = {}, ops.convert_to_numpy
    for i, layer in enumerate(ours.decoder.layers):
        prefix, attention, network = f"transformer.layer.{i}", layer.self_attention.layer, layer.feed_forward.layer
        for name, role in {"q": "query", "k": "key", "v": "value", "r": "position"}.items():
            state[f"{prefix}.rel_attn.{name}"] = heads(getattr(attention, f"{role}_projection").kernel)
        state[f"{prefix}.rel_attn.o"] = heads(array(attention.output_projection.kernel).T)
        state[f"{prefix}.rel_attn.r_w_bias"] = array(attention.content_bias)
        state[f"{prefix}.rel_attn.r_r_bias"] = array(attention.position_bias)
        for name, dense in (("layer_1", network.inner), ("layer_2", network.outer)):
            state |= dense_state(f"{prefix}.ff.{name}", dense, array)
        for name, residual in (("rel_attn", layer.self_attention), ("ff", layer.feed_forward)):
            state |= norm_state(f"{prefix}.{name}.layer_norm", residual.normalization, array)
    table = array(ours.target_embedding.embeddings).copy()
    table[0] = 0  # id 0 is read as zero
    ours.target_embedding.embeddings.assign(table)
    state |= {"transformer.word_embedding.weight": table, "lm_loss.weight": table}
    state["lm_loss.bias"] = array(ours.target_embedding.bias)
    missing, unexpected = theirs.load_state_dict(tensors(state), strict=False)
    assert not unexpected
    assert all("seg_embed" in name or "r_s_bias" in name or "mask_emb" in name for name in missing), missing
    return ours, theirs


def test_logits_and_memory_of_four_segments():
    ours, theirs = made()
    ids = np.random.default_rng(1).integers(3, VOCAB, (2, 1 + 4 * SEGMENT))
    state, mems = ours.initial_state(2), None
    for begin in range(0, 4 * SEGMENT, SEGMENT):
        read, targets = ids[:, begin : begin + SEGMENT], ids[:, begin + 1 : begin + 1 + SEGMENT]
        found = ours({"targets": targets, "before": read[:, 0], "state": state}, training=False)
        state = found["state"]
        with torch.inference_mode():
            expected = theirs(torch.tensor(read), mems=mems, use_mems=True)
        mems = expected.mems
        np.testing.assert_allclose(ops.convert_to_numpy(found["targets"]), expected.logits.numpy(), atol=1e-4)
        for memory, mem in zip(state["memory"], mems, strict=True):
            there = mem.numpy().swapaxes(0, 1)
            np.testing.assert_allclose(ops.convert_to_numpy(memory)[:, -there.shape[1] :], there, atol=1e-4)
    assert ops.convert_to_numpy(state["visible"]).all() and there.shape[1] == MEMORY
