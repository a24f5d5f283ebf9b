"""Creates the models of `benchmarks.card.peers`: PyTorch's and Hugging Face's, with random weights."""

import math

from benchmarks.card.cases import DROPOUT, SIZES, SMOOTHING

BATCHES = 4  # number of batches, used in turn
POSITIONS = 1024
# Under torch.compile, Hugging Face cannot check whether rows are packed, and therefore gives "sdpa" a mask, which
# prevents the flash kernel. For a kind of attention that it does not know, Hugging Face makes no mask, and the same
# function is called with is_causal.
UNMASKED = "sdpa_unmasked"


def translation_model(case):
    """Returns an nn.Transformer that maps ids to the loss.

    As in the paper, the model is post-norm and shares one embedding matrix. It is the same model as that of
    `transformer_base_v1`: attention projections have no biases, and dropout is applied only to the embeddings and to
    the outputs of sub-layers.
    """
    import torch
    import torch.nn.functional as F
    from torch import nn

    sizes = SIZES[case.model]
    hidden, layers = sizes["hidden_size"], sizes["num_hidden_layers"]

    class Model(nn.Module):
        """Maps the ids of both sides to the mean loss over the targets."""

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(case.vocab_size, hidden, padding_idx=0)
            nn.init.normal_(self.embedding.weight, std=hidden**-0.5)
            self.layers = nn.Transformer(
                hidden, sizes["num_heads"], layers, layers, sizes["filter_size"], DROPOUT, batch_first=True
            )
            self.layers.encoder.norm = self.layers.decoder.norm = None  # the paper has no norm after a post-norm stack
            for module in self.layers.modules():
                if isinstance(module, nn.MultiheadAttention):
                    module.in_proj_bias = module.out_proj.bias = None
                    module.dropout = 0.0
                elif isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
                    module.dropout.p = 0.0  # dropout of the inner activations
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
            # The padding mask has the dtype of the causal mask, because masks of different dtypes would be converted,
            # with a warning, at every call.
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
    """Returns a GPT2LMHeadModel with random weights. The texts that it generates always reach the length limit."""
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
    model.loss_type = "ForCausalLM"  # the default, which would otherwise cause a warning that breaks torch.compile
    return model


def marian(case):
    """Returns a MarianMTModel with random weights. Its translations always reach the length limit."""
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
