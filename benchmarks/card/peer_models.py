"""The models of `benchmarks.card.peers`, PyTorch's and Hugging Face's, of random weights."""

import math

from benchmarks.card.cases import DROPOUT, SIZES, SMOOTHING

BATCHES = 4  # they take turns
POSITIONS = 1024
# torch.compile cannot ask whether rows are packed, and so gives Hugging Face's "sdpa" a mask, which keeps it from the
# flash kernel. For attention that it does not know it makes no mask: then the same function gets is_causal.
UNMASKED = "sdpa_unmasked"


def translation_model(case):
    """Returns nn.Transformer, post-norm as the paper and with its one matrix of embeddings: ids to the loss.

    It is the model of `transformer_base_v1`: the attention's projections have no biases, and dropout is on the outputs
    of sub-layers and on embeddings alone.
    """
    import torch
    import torch.nn.functional as F
    from torch import nn

    sizes = SIZES[case.model]
    hidden, layers = sizes["hidden_size"], sizes["num_hidden_layers"]

    class Model(nn.Module):
        """Ids of both sides to the mean loss of the targets."""

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(case.vocab_size, hidden, padding_idx=0)
            nn.init.normal_(self.embedding.weight, std=hidden**-0.5)
            self.layers = nn.Transformer(
                hidden, sizes["num_heads"], layers, layers, sizes["filter_size"], DROPOUT, batch_first=True
            )
            self.layers.encoder.norm = self.layers.decoder.norm = None  # the paper has none after a post-norm stack
            for module in self.layers.modules():
                if isinstance(module, nn.MultiheadAttention):
                    module.in_proj_bias = module.out_proj.bias = None
                    module.dropout = 0.0
                elif isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
                    module.dropout.p = 0.0  # that of the inner activations
            self.dropout = nn.Dropout(DROPOUT)
            rates = torch.pow(10000.0, torch.arange(0, hidden, 2) / hidden)
            angles = torch.arange(float(case.length))[:, None] / rates
            positions = torch.stack([angles.sin(), angles.cos()], -1).reshape(case.length, hidden)
            self.register_buffer("positions", positions, persistent=False)
            causal = nn.Transformer.generate_square_subsequent_mask(case.length)
            self.register_buffer("causal", causal, persistent=False)

        def embed(self, ids):
            return self.dropout(self.embedding(ids) * math.sqrt(hidden) + self.positions)

        def forward(self, inputs, targets):
            # Of the dtype of the causal mask: two kinds are converted, with a warning, at every call.
            padding = torch.zeros(inputs.shape, device=inputs.device).masked_fill(inputs == 0, -math.inf)
            states = self.layers(
                self.embed(inputs), self.embed(F.pad(targets, (1, 0))[:, :-1]), tgt_mask=self.causal,
                tgt_is_causal=True, src_key_padding_mask=padding, memory_key_padding_mask=padding,
            )  # fmt: skip
            logits = states @ self.embedding.weight.T
            return F.cross_entropy(
                logits.reshape(-1, case.vocab_size), targets.reshape(-1), ignore_index=0, label_smoothing=SMOOTHING
            )

    return Model()


def gpt2(case, attention="sdpa"):
    """Returns a GPT2LMHeadModel of random weights; texts never end by themselves."""
    from transformers import AttentionInterface, GPT2Config, GPT2LMHeadModel
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    AttentionInterface.register(UNMASKED, sdpa_attention_forward)
    sizes = SIZES[case.model]
    config = GPT2Config(
        vocab_size=case.vocab_size, n_embd=sizes["hidden_size"], n_layer=sizes["num_hidden_layers"],
        n_head=sizes["num_heads"], n_inner=sizes["filter_size"], n_positions=POSITIONS, resid_pdrop=DROPOUT,
        embd_pdrop=DROPOUT, attn_pdrop=DROPOUT, bos_token_id=None, eos_token_id=None, attn_implementation=attention,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    model.loss_type = "ForCausalLM"  # what it takes anyway, with a warning at which torch.compile would stop
    return model


def marian(case):
    """Returns a MarianMTModel of random weights; translations never end by themselves."""
    from transformers import MarianConfig, MarianMTModel

    sizes = SIZES[case.model]
    layers, heads, filter_size = sizes["num_hidden_layers"], sizes["num_heads"], sizes["filter_size"]
    config = MarianConfig(
        vocab_size=case.vocab_size, d_model=sizes["hidden_size"], encoder_layers=layers, decoder_layers=layers,
        encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=filter_size,
        decoder_ffn_dim=filter_size, activation_function="relu", scale_embedding=True, pad_token_id=0,
        eos_token_id=None, forced_eos_token_id=None, decoder_start_token_id=0, max_position_embeddings=512,
        attn_implementation="sdpa",
    )  # fmt: skip
    return MarianMTModel(config)
