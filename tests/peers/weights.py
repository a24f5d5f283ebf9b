"""Our weights under the names and in the layouts of Hugging Face's Marian and PyTorch's `nn.Transformer`.

Dense kernels are [inputs, outputs] in Keras and [outputs, inputs] in PyTorch; embeddings are [ids, hidden] in both.
Each function maps whatever `array` gives for a weight, so that gradients are mapped as weights are.
"""

import numpy as np
import torch
import transformers
from keras import ops

from tests.peers.models import shifted


def marian_peer(model):
    """Returns a MarianMTModel that computes what `model` does.

    `model` must have tied embeddings in one vocabulary, epsilon 1e-5 and Marian's positions (any table, if the caller
    puts it there). Where it is pre-norm the peer is a Pegasus, which is Marian with the normalizations before. Row 0 of
    its embeddings must be zero: Marian starts to decode at the padding id, whose row is zero in the embeddings and,
    being tied, in the softmax.
    """
    c = model.config
    is_pre = c["norm"] == "pre"
    config = (transformers.PegasusConfig if is_pre else transformers.MarianConfig)(
        vocab_size=c["vocab_size"], d_model=c["hidden_size"], activation_function=c["activation"],
        encoder_layers=c["num_encoder_layers"], decoder_layers=c["num_decoder_layers"],
        encoder_attention_heads=c["num_heads"], decoder_attention_heads=c["num_heads"],
        encoder_ffn_dim=c["filter_size"], decoder_ffn_dim=c["filter_size"], scale_embedding=True,
        max_position_embeddings=c["max_position"], pad_token_id=0, eos_token_id=1, forced_eos_token_id=None,
        decoder_start_token_id=0, attn_implementation="eager",
    )  # fmt: skip
    peer = (transformers.PegasusForConditionalGeneration if is_pre else transformers.MarianMTModel)(config).eval()
    missing, unexpected = peer.load_state_dict(tensors(marian_state(model)), strict=False)
    assert not unexpected
    assert not [n for n in missing if "embed_" not in n and n not in ("lm_head.weight", "final_logits_bias")], missing
    peer.tie_weights()
    return peer


def marian_state(model, array=ops.convert_to_numpy):
    """Returns {name in MarianMTModel's state dict: array}, without what is tied to or made from others."""
    state = {"model.shared.weight": array(model.input_embedding.embeddings)}
    names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
    for side, layer, i in _layers(model):
        prefix = f"model.{side}.layers.{i}"
        for name, attention in (("self_attn", layer.self_attention), *_cross(layer, "encoder_attn")):
            for role, theirs in names.items():
                dense = getattr(attention.layer, f"{role}_projection")
                state |= dense_state(f"{prefix}.{name}.{theirs}", dense, array)
            state |= norm_state(f"{prefix}.{name}_layer_norm", attention.normalization, array)
        state |= dense_state(f"{prefix}.fc1", layer.feed_forward.layer.inner, array)
        state |= dense_state(f"{prefix}.fc2", layer.feed_forward.layer.outer, array)
        state |= norm_state(f"{prefix}.final_layer_norm", layer.feed_forward.normalization, array)
    for side, norm in (("encoder", model.encoder_norm), ("decoder", model.decoder_norm)):
        if norm is not None:
            state |= norm_state(f"model.{side}.layer_norm", norm, array)
    return state


def marian_batch(inputs, targets):
    """Returns what a Marian is called with."""
    ids = {"input_ids": inputs, "attention_mask": inputs != 0, "decoder_input_ids": shifted(targets)}
    return {name: torch.tensor(array).long() for name, array in ids.items()}


def torch_peer(model):
    """Returns an nn.Transformer that computes what the two stacks of `model` do, from embeddings to hidden states."""
    c = model.config
    is_pre = c["norm"] == "pre"
    options = {
        "d_model": c["hidden_size"], "nhead": c["num_heads"], "dim_feedforward": c["filter_size"], "dropout": 0.0,
        "activation": c["activation"], "layer_norm_eps": c["norm_epsilon"], "batch_first": True, "norm_first": is_pre,
    }  # fmt: skip

    def final_norm():  # PyTorch's default adds one to post-norm stacks too; the paper has none there
        return torch.nn.LayerNorm(c["hidden_size"], eps=c["norm_epsilon"]) if is_pre else None

    encoder = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(**options), c["num_encoder_layers"], final_norm(), enable_nested_tensor=False
    )
    decoder = torch.nn.TransformerDecoder(
        torch.nn.TransformerDecoderLayer(**options), c["num_decoder_layers"], final_norm()
    )
    peer = torch.nn.Transformer(
        c["hidden_size"], c["num_heads"], custom_encoder=encoder, custom_decoder=decoder, batch_first=True
    )
    peer.load_state_dict(tensors(torch_state(model)))
    return peer


def torch_state(model, array=ops.convert_to_numpy):
    """Returns {name in nn.Transformer's state dict: array}."""
    state = {}
    for side, layer, i in _layers(model):
        prefix = f"{side}.layers.{i}"
        sub_layers = [("self_attn", layer.self_attention), *_cross(layer, "multihead_attn")]
        for name, attention in sub_layers:
            projections = [getattr(attention.layer, f"{role}_projection") for role in ("query", "key", "value")]
            state[f"{prefix}.{name}.in_proj_weight"] = np.concatenate([array(p.kernel).T for p in projections])
            state[f"{prefix}.{name}.in_proj_bias"] = np.concatenate([array(p.bias) for p in projections])
            state |= dense_state(f"{prefix}.{name}.out_proj", attention.layer.output_projection, array)
        state |= dense_state(f"{prefix}.linear1", layer.feed_forward.layer.inner, array)
        state |= dense_state(f"{prefix}.linear2", layer.feed_forward.layer.outer, array)
        for number, residual in enumerate([*(a for _, a in sub_layers), layer.feed_forward], start=1):
            state |= norm_state(f"{prefix}.norm{number}", residual.normalization, array)
    for side, norm in (("encoder", model.encoder_norm), ("decoder", model.decoder_norm)):
        if norm is not None:
            state |= norm_state(f"{side}.norm", norm, array)
    return state


def _layers(model):
    yield from (("encoder", layer, i) for i, layer in enumerate(model.encoder.layers))
    yield from (("decoder", layer, i) for i, layer in enumerate(model.decoder.layers))


def _cross(layer, name):
    """[(name, cross-attention)] of a decoder's layer, [] of an encoder's."""
    return [(name, layer.cross_attention)] if hasattr(layer, "cross_attention") else []


def dense_state(name, dense, array):
    bias = array(dense.bias) if dense.use_bias else np.zeros(dense.units, "float32")
    return {f"{name}.weight": array(dense.kernel).T, f"{name}.bias": bias}


def norm_state(name, norm, array):
    return {f"{name}.weight": array(norm.gamma), f"{name}.bias": array(norm.beta)}


def tensors(state):
    return {name: torch.tensor(np.ascontiguousarray(value)) for name, value in state.items()}
