"""Hparams sets of the Sparse Transformer (Child et al. 2019) for text; `extras/images` has the sets for images."""

from t2t_lite.hparams.changes import changed
from t2t_lite.hparams.transformer_lm import transformer_lm_base, transformer_lm_tiny
from t2t_lite.registry import register_hparams


@register_hparams(model="transformer_lm")
def sparse_transformer_enwik8():
    """The paper's byte-level model (section 7.2): 30 layers of hidden size 512, fixed attention.

    The attention has stride 128 and summary size 32. The learning rate is taken from `transformer_lm_base`.
    """
    return changed(
        transformer_lm_base(),
        {"attention_stride": 128, "attention_summary": 32},
        sizes=(30, 512, 8),
        self_attention_type="fixed",
        pos="emb",
        max_position=12_288,
        max_length=12_288,
        batch_size=12_288,
        layer_prepostprocess_dropout=0.4,
        optimizer="adam_w",
        weight_decay=0.01,
    )


@register_hparams(model="transformer_lm")
def sparse_transformer_tiny():
    """4 layers of hidden size 128, alternately strided and fixed, for CPUs and tests."""
    return changed(transformer_lm_tiny(), {"attention_stride": 32}, self_attention_type="strided/fixed")
