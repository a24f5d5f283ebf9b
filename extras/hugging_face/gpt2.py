"""The family of GPT-2, a pre-norm language model. Its dense kernels are [inputs, outputs], with Q, K and V joined."""

from t2t_lite import registry
from t2t_lite.extras.hugging_face.family import Family, Field, choice, epsilon, fact, number, off, only, rate
from t2t_lite.models.transformer_lm import TransformerLM
from t2t_lite.text.published.bpe_files import BPEEncoder

ACTIVATIONS = {"relu": "relu", "silu": "swish", "swish": "swish"}
_GELU = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}


def fields(activation, writes_inner=True):
    """Returns the fields of `config.json` that GPT-2 and GPT share, including the Field `activation`."""
    return (
        *fact("architectures", "model_type"),
        number("vocab_size", "vocab_size"),
        number("n_positions", "max_position"),
        number("n_embd", "hidden_size"),
        number("n_layer", "num_layers"),
        number("n_head", "num_heads", divides="n_embd"),
        number("n_inner", "filter_size", usual=lambda config: 4 * config["n_embd"], is_written=writes_inner),
        activation,
        rate("resid_pdrop", "dropout"),
        rate("embd_pdrop", "", value=lambda config: config["dropout"]),
        rate("attn_pdrop", "attention_dropout"),
        epsilon("layer_norm_epsilon", 1e-5),
        *fact("bos_token_id"),
        Field("eos_token_id", kind=int | list | None, is_written=False),
        only("tie_word_embeddings", True, usual=True),
        only("dtype", "float32", is_read=False),
        only("scale_attn_weights", True, usual=True, is_written=False),
        *off("scale_attn_by_inverse_layer_idx", "add_cross_attention"),
    )


def layers(name):
    """Returns {path of our weight: foreign name} for the layers; the foreign names begin with `name`."""
    attention, ffn = "decoder.layers.*.self_attention", "decoder.layers.*.feed_forward"
    return {
        f"{attention}.layer.query_projection+key_projection+value_projection": f"{name}.attn.c_attn",
        f"{attention}.layer.output_projection": f"{name}.attn.c_proj",
        f"{ffn}.layer.inner": f"{name}.mlp.c_fc",
        f"{ffn}.layer.outer": f"{name}.mlp.c_proj",
        f"{attention}.normalization": f"{name}.ln_1",
        f"{ffn}.normalization": f"{name}.ln_2",
    }


@registry.register_family("gpt2")
def gpt2():
    """Returns the Family of GPT-2."""
    return Family(
        class_prefix="GPT2",
        model=TransformerLM,
        matches=lambda config: config["norm"] == "pre",
        heads={"LMHeadModel": (None, {})},
        fields=fields(choice("activation_function", "activation", _GELU | ACTIVATIONS)),
        options={
            "norm": "pre",
            "attention_bias": True,
            "position": "learned",
            "scale_embeddings": False,
            "begin": "end",
        },
        limits=lambda config: dict.fromkeys(("position_layout", "unused_ids", "scale_residuals")),
        weights={
            "target_embedding": "transformer.wte",
            "decoder_position": "transformer.wpe",
            **layers("transformer.h.*"),
            "decoder_norm": "transformer.ln_f",
        },
        vocabularies=((BPEEncoder,), "byte-level or GPT's BPE"),
        is_transposed=False,
        prefix="transformer.",
        unused=(".attn.bias", ".attn.masked_bias", "lm_head.weight"),
    )
