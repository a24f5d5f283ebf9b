"""Hparams sets for XLNet: the published sizes (Yang et al. 2019, appendix A.4) and a small one."""

from t2t_lite.hparams.changes import changed
from t2t_lite.hparams.transformer_encoder import bert_base
from t2t_lite.registry import register_hparams


@register_hparams
def xlnet_base():
    """XLNet base: 12 layers of hidden size 768, post-norm, relative positions; trained like `xlnet_large`."""
    return changed(
        bert_base(),
        {"position_dropout": 0.1},
        attention_bias=False,
        pos="none",
        self_attention_type="relative_segments",
        relu_dropout=0.1,
        learning_rate_constant=4e-4,
        learning_rate_warmup_steps=40_000,
        learning_rate_decay_steps=500_000,
        clip_grad_norm=0.0,
    )


@register_hparams
def xlnet_large():
    """XLNet large: 24 layers of hidden size 1024.

    The paper trains on 8,192 rows of 512 ids per step (appendix A.4.1).
    """
    return changed(xlnet_base(), sizes=(24, 1024, 16))


@register_hparams
def xlnet_tiny():
    """2 layers of hidden size 128, for a CPU."""
    return changed(
        xlnet_base(),
        sizes=(2, 128, 2),
        max_length=127,
        batch_size=2048,
        learning_rate_constant=5e-4,
        learning_rate_warmup_steps=500,
        learning_rate_decay_steps=20_000,
    )
