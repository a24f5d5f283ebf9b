"""Hugging Face's format of XLNet, a post-norm encoder whose attention kernels have the shape [hidden, heads, size]."""

import numpy as np

from t2t_lite import registry
from t2t_lite.extras.hugging_face import bert
from t2t_lite.extras.hugging_face.family import Family, Field, check, choice, epsilon, number, off, only, rate
from t2t_lite.extras.hugging_face.named_weights import PerHead
from t2t_lite.extras.xlnet.xlnet import XLNet

_LAYER = "transformer.layer.*"
_ATTENTION, _FFN = "encoder.layers.*.self_attention", "encoder.layers.*.feed_forward"
_KERNELS = {"query": "q", "key": "k", "value": "v", "output": "o"}
_CLASSIFIER = {"class_head.pooler": "sequence_summary.summary", "class_head.dense": "logits_proj"}
_BIASES = {"content_bias": "r_w_bias", "position_bias": "r_r_bias", "segment_bias": "r_s_bias"}


def _complete(path, config):
    size = config["d_model"] // config["n_head"]
    check(path, "d_head", config["d_head"], config["d_head"] in (None, size), f"{size}, d_model / n_head")
    config["clamp_len"] = max(config["clamp_len"], 0)  # -1 means no limit in Hugging Face's config


def _attentions(config):
    """Returns the attention of each layer, or a single one for all layers, as a list of dicts.

    In an import, whose arguments are "self_attention.clamp_length" and so on, the list is [None].
    """
    kinds = config.get("self_attention")
    return kinds if isinstance(kinds, list) else [kinds]


def _clamp_length(config):
    return _attentions(config)[0]["clamp_length"] or -1


def _limits(config):
    first, *others = _attentions(config)
    return {
        **dict.fromkeys(("max_position", "position_layout", "head", "last_id")),
        "self_attention": None if all(other == first for other in others) else (first,),
        "attention_bias": (False,),
        "softmax_bias": (False, True),
    }


@registry.register_family("xlnet")
def xlnet():
    """Returns the Family that maps Hugging Face's XLNet to ours."""
    return Family(
        class_prefix="XLNet",
        model=XLNet,
        matches=lambda config: True,
        heads={
            "LMHeadModel": ("masked_lm", {"embedding.bias": "lm_loss.bias"}),
            "ForSequenceClassification": ("class", _CLASSIFIER),
            "ForTokenClassification": ("tag", {"class_head.dense": "classifier"}),
            "ForQuestionAnsweringSimple": ("span", {"span_head.dense": "qa_outputs"}),
        },
        fields=bert.encoder_fields(
            number("d_model", "hidden_size"),
            number("n_layer", "num_layers"),
            number("n_head", "num_heads", divides="d_model"),
            Field("d_head", kind=int | None, value=lambda config: config["hidden_size"] // config["num_heads"]),
            number("d_inner", "filter_size"),
            choice("ff_activation", "activation", bert.ACTIVATIONS, usual="gelu"),
            rate("dropout", "dropout"),
            *(
                rate("dropout", argument, is_written=False)
                for argument in ("attention_dropout", "relu_dropout", "self_attention.position_dropout")
            ),
            Field("summary_last_dropout", value=lambda config: config["dropout"], is_read=False),
            epsilon("layer_norm_eps", 1e-12),
            Field("clamp_len", "self_attention.clamp_length", int, usual=-1, value=_clamp_length),
            only("attn_type", "bi", usual="bi"),
            only("untie_r", True, None, is_written=False),
            *off("bi_data", "same_length"),
            only("summary_type", "last", usual="last"),
            only("summary_use_proj", True, usual=True),
            only("summary_activation", "tanh", usual="tanh"),
            padding=5,
        ),
        options={},
        limits=_limits,
        weights={
            "embedding": "transformer.word_embedding",
            "query": "transformer.mask_emb",
            **{
                f"{_ATTENTION}.layer.{role}_projection": PerHead(f"{_LAYER}.rel_attn.{name}", role == "output")
                for role, name in _KERNELS.items()
            },
            f"{_ATTENTION}.layer.position_projection": PerHead(f"{_LAYER}.rel_attn.r"),
            **{f"{_ATTENTION}.layer.{ours}": f"{_LAYER}.rel_attn.{theirs}" for ours, theirs in _BIASES.items()},
            f"{_ATTENTION}.layer.segment_table": f"{_LAYER}.rel_attn.seg_embed",
            f"{_ATTENTION}.normalization": f"{_LAYER}.rel_attn.layer_norm",
            f"{_FFN}.layer.inner": f"{_LAYER}.ff.layer_1",
            f"{_FFN}.layer.outer": f"{_LAYER}.ff.layer_2",
            f"{_FFN}.normalization": f"{_LAYER}.ff.layer_norm",
        },
        vocabularies=(("xlnet",), "XLNet"),
        complete=_complete,
        prefix="transformer.",
        unused=("lm_loss.weight", "mask_emb"),  # a tied matrix; the query vector, which other heads do not use
        hparams_set="xlnet_base",
        text_problem="permutation_lm_own",
        row_id="last_id",
        constants={"transformer.mask_emb": lambda config: np.zeros((1, 1, config["hidden_size"]), "float32")},
    )
