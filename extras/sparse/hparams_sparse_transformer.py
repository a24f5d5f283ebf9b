"""Sets of the Sparse Transformer (Child et al. 2019) for text; those for images are in `extras/images`."""

from t2t_lite.hparams.transformer_lm import transformer_lm_base, transformer_lm_tiny
from t2t_lite.registry import register_hparams


@register_hparams(model="transformer_lm")
def sparse_transformer_enwik8():
    """The paper's model of bytes (section 7.2): 30 layers of 512, fixed attention with stride 128 and summary 32.

    The learning rate is that of `transformer_lm_base`.
    """
    hparams = transformer_lm_base().override_from_dict(
        {
            "num_hidden_layers": 30,
            "filter_size": 2048,
            "num_heads": 8,
            "self_attention_type": "fixed",
            "pos": "emb",
            "max_position": 12_288,
            "max_length": 12_288,
            "batch_size": 12_288,
            "layer_prepostprocess_dropout": 0.4,
            "optimizer": "adam_w",
            "weight_decay": 0.01,
        }
    )
    hparams.add_hparam("attention_stride", 128)
    hparams.add_hparam("attention_summary", 32)
    return hparams


@register_hparams(model="transformer_lm")
def sparse_transformer_tiny():
    """4 layers of 128, alternately strided and fixed, for CPUs and tests."""
    hparams = transformer_lm_tiny().override_from_dict({"self_attention_type": "strided/fixed"})
    hparams.add_hparam("attention_stride", 32)
    return hparams
