"""The weights of Hugging Face's GPT and GPT-2: one table of their names, for import and export.

Their dense kernels are [inputs, outputs] as ours; the kernels of queries, keys and values are joined to one. GPT is
post-norm and has no final normalization; GPT-2 is pre-norm.
"""

from typing import NamedTuple

from t2t_lite.interchange.named_weights import Part, dense, norm

# Computed when a model is loaded, or stored under another name, too.
UNUSED = (".attn.bias", ".attn.masked_bias", "lm_head.weight")
PREFIX = "transformer."  # which the files of the first models do not have


class Architecture(NamedTuple):
    """What differs between the two.

    Attributes:
        norm: str, of `TransformerLM`.
        embedding, position, final_norm: names of weights there; None: there is none.
        activation: the setting in `config.json`.
        activations: {its value: our activation}; of several the first one is written.
    """

    norm: str
    embedding: str
    position: str
    final_norm: str | None
    activation: str
    activations: dict


_OTHERS = {"relu": "relu", "silu": "swish", "swish": "swish"}
ARCHITECTURES = {
    "gpt2": Architecture(
        "pre", "wte", "wpe", "ln_f", "activation_function",
        {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", **_OTHERS},
    ),
    "openai-gpt": Architecture(
        "post", "tokens_embed", "positions_embed", None, "afn",
        {"gelu": "gelu_tanh", **_OTHERS},
    ),
}  # fmt: skip


def kind_of(model):
    """Returns the key in `ARCHITECTURES` of a `TransformerLM`."""
    return next(kind for kind, architecture in ARCHITECTURES.items() if architecture.norm == model.config["norm"])


def parts(model, kind):
    """Yields the Parts of a `TransformerLM` with one matrix of embeddings and positions; without `PREFIX`."""
    architecture = ARCHITECTURES[kind]
    yield Part(f"{architecture.embedding}.weight", [(model.target_embedding, "embeddings")], is_by_id=True)
    yield Part(f"{architecture.position}.weight", [(model.decoder_position, "table")])
    for number, layer in enumerate(model.decoder.layers):
        attention, feed_forward = layer.self_attention, layer.feed_forward
        joined = [getattr(attention.layer, f"{role}_projection") for role in ("query", "key", "value")]
        yield from dense(f"h.{number}.attn.c_attn", *joined)
        yield from dense(f"h.{number}.attn.c_proj", attention.layer.output_projection)
        yield from dense(f"h.{number}.mlp.c_fc", feed_forward.layer.inner)
        yield from dense(f"h.{number}.mlp.c_proj", feed_forward.layer.outer)
        yield from norm(f"h.{number}.ln_1", attention.normalization)
        yield from norm(f"h.{number}.ln_2", feed_forward.normalization)
    if architecture.final_norm:
        yield from norm(architecture.final_norm, model.decoder_norm)
