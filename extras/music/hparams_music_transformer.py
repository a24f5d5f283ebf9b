"""Hparams sets for the Music Transformer (Huang et al. 2018), with relative positions: a small set and the paper's."""

from t2t_lite.hparams.changes import changed
from t2t_lite.hparams.transformer_lm import transformer_lm_base, transformer_lm_tiny
from t2t_lite.registry import register_hparams


@register_hparams(model="transformer_lm")
def music_transformer_small():
    """4 layers of hidden size 128, relative positions up to 256 events, 2,048 events per batch."""
    return changed(
        transformer_lm_tiny(),
        learning_rate_schedule="constant*linear_warmup*single_cycle_cos_decay",
        learning_rate_constant=0.002,
        learning_rate_warmup_steps=200,
        self_attention_type="dot_product_relative_v2",
        max_relative_position=256,
        layer_prepostprocess_dropout=0.1,
    )


@register_hparams(model="transformer_lm")
def music_transformer_base():
    """The paper's set for performances of 2,048 events: 8 layers of hidden size 384, key size 512, dropout 0.2."""
    return changed(
        transformer_lm_base(),
        num_hidden_layers=8,
        hidden_size=384,
        filter_size=1024,
        num_heads=8,
        attention_key_channels=512,
        attention_value_channels=512,
        batch_size=8192,
        self_attention_type="dot_product_relative_v2",
        max_relative_position=1024,
        layer_prepostprocess_dropout=0.2,
        learning_rate_warmup_steps=8000,
    )
