"""The family of Marian, a post-norm Transformer.

Its position features are all sines, followed by all cosines. Its dense kernels are stored as [outputs, inputs].
"""

from t2t_lite import registry
from t2t_lite.extras.hugging_face.family import (
    NEEDED,
    Family,
    Field,
    check,
    choice,
    fact,
    number,
    off,
    only,
    rate,
    same,
)
from t2t_lite.models.transformer import Transformer
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, SentencePieceEncoder

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
# Number of rows in the position table that is computed at load time: the longest input (1024) and 50 more.
_POSITIONS = 2048
SINUSOIDS = 1024  # number of rows in the position table of related families, which store it: the maximum input length
_TIE = Field("tie_word_embeddings", "tie_embeddings", bool, usual=True)


def fields(*more, tie=_TIE):
    """Returns the fields of `config.json` that Marian and Blenderbot share, followed by the Fields in `more`."""
    return (
        only("is_encoder_decoder", True, is_read=False),
        number("d_model", "hidden_size"),
        number("encoder_layers", "num_encoder_layers"),
        number("encoder_attention_heads", "num_heads", divides="d_model"),
        number("encoder_ffn_dim", "filter_size"),
        number("decoder_layers", "num_decoder_layers"),
        same("decoder_attention_heads", "encoder_attention_heads", "num_heads"),
        same("decoder_ffn_dim", "encoder_ffn_dim", "filter_size"),
        choice("activation_function", "activation", _ACTIVATIONS, usual="gelu", kind=str),
        rate("dropout", "dropout"),
        rate("attention_dropout", "attention_dropout"),
        rate("activation_dropout", "relu_dropout"),
        only("scale_embedding", True, usual=False, kind=bool),
        number("vocab_size", "vocab_size"),
        tie,
        Field("pad_token_id", kind=int, usual=NEEDED, value=lambda config: PAD_ID),
        Field("eos_token_id", kind=int, usual=NEEDED, value=lambda config: EOS_ID),
        Field("decoder_start_token_id", value=lambda config: PAD_ID),
        only("bos_token_id", None, is_read=False),
        only("forced_eos_token_id", None, is_read=False),
        only("dtype", "float32", is_read=False),
        *fact("architectures", "model_type"),
        *more,
    )


def complete(path, config):
    """Checks the ids and completes the vocabulary sizes in `config`: see `Family`."""
    if config["share_encoder_decoder_embeddings"]:
        config["decoder_vocab_size"] = config["vocab_size"]
    size = min(config["vocab_size"], config["decoder_vocab_size"])
    for name in ("pad_token_id", "eos_token_id"):
        check(path, name, config[name], 0 <= config[name] < size, f"an id from 0 to {size - 1:,}")
    same("decoder_start_token_id", "pad_token_id").read(path, config)


def shares_embeddings(config):
    """Returns whether the input embedding, target embedding and softmax of a Transformer share one matrix."""
    return config["tie_embeddings"] and config["target_vocab_size"] is None


def _layers(side, attentions):
    stack, layer = f"{side}.layers.*", f"model.{side}.layers.*"
    roles = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
    return {
        **{
            f"{stack}.{ours}.layer.{role}_projection": f"{layer}.{theirs}.{name}"
            for ours, theirs in attentions.items()
            for role, name in roles.items()
        },
        **{f"{stack}.{ours}.normalization": f"{layer}.{theirs}_layer_norm" for ours, theirs in attentions.items()},
        f"{stack}.feed_forward.layer.inner": f"{layer}.fc1",
        f"{stack}.feed_forward.layer.outer": f"{layer}.fc2",
        f"{stack}.feed_forward.normalization": f"{layer}.final_layer_norm",
    }


@registry.register_family("marian")
def marian():
    """Returns the Family of Marian."""
    return Family(
        class_prefix="Marian",
        model=Transformer,
        matches=lambda config: config["norm"] == "post",
        heads={"MTModel": (None, {})},
        fields=fields(
            only("static_position_embeddings", True, None),
            number("max_position_embeddings", "max_position", usual=1024, value=lambda config: _POSITIONS),
            number("decoder_vocab_size", "vocab_size", usual=lambda config: config["vocab_size"]),
            Field("share_encoder_decoder_embeddings", kind=bool, usual=True, value=shares_embeddings),
            *off("normalize_before", "normalize_embedding", "add_final_layer_norm"),
        ),
        options={
            "norm": "post",
            "norm_epsilon": 1e-5,
            "position": "sinusoidal",
            "position_layout": "marian",
            "attention_bias": True,
            "softmax_bias": True,
        },
        limits=lambda config: {"position_layout": ("interleaved", "marian")},
        weights=_layers("encoder", {"self_attention": "self_attn"})
        | _layers("decoder", {"self_attention": "self_attn", "cross_attention": "encoder_attn"}),
        vocabularies=((SentencePieceEncoder,), "SentencePiece"),
        complete=complete,
        # Weights that are stored under several names, or computed at load time.
        unused=("embed_tokens.weight", "lm_head.weight", "model.shared.weight", "embed_positions.weight"),
    )
