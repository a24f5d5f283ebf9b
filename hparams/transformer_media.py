"""Sets of language models of images and music: small ones for one machine, and the Music Transformer's own.

All have Huang et al.'s relative positions: without them the blocks of the Image Transformer learned streaks, no digits.
tensor2tensor's own Image Transformers are in image_transformer.py.
"""

from t2t_lite.hparams.transformer_lm import transformer_lm_base
from t2t_lite.registry import register_hparams


def _small(**changes):
    """Returns 4 layers of 128, pre-norm, with changes."""
    return transformer_lm_base().override_from_dict(
        {
            "num_hidden_layers": 4,
            "hidden_size": 128,
            "filter_size": 512,
            "num_heads": 4,
            "self_attention_type": "dot_product_relative_v2",
            "learning_rate_schedule": "constant*linear_warmup*single_cycle_cos_decay",
            "learning_rate_constant": 0.002,
            "learning_rate_warmup_steps": 200,
            **changes,
        }
    )


@register_hparams(model="transformer_lm")
def image_transformer_small():
    """4 layers of 128 that see 112 to 224 pixels, 4 to 8 rows of MNIST's; 5 of its images to a batch."""
    hparams = _small(
        batch_size=4096,
        self_attention_type="local_1d+dot_product_relative_v2",
        max_relative_position=224,
        layer_prepostprocess_dropout=0.0,
    )
    hparams.add_hparam("block_length", 112)
    hparams.add_hparam("unconditional", False)
    return hparams


@register_hparams(model="transformer_lm")
def music_transformer_small():
    """4 layers of 128, the relative positions of 256 events, 2,048 events to a batch."""
    return _small(batch_size=2048, max_relative_position=256, layer_prepostprocess_dropout=0.1)


@register_hparams(model="transformer_lm")
def music_transformer_base():
    """Huang et al.'s for performances of 2,048 events: 8 layers of 384, keys of 512 in all, dropout 0.2."""
    return transformer_lm_base().override_from_dict(
        {
            "num_hidden_layers": 8,
            "hidden_size": 384,
            "filter_size": 1024,
            "num_heads": 8,
            "attention_key_channels": 512,
            "attention_value_channels": 512,
            "batch_size": 8192,
            "self_attention_type": "dot_product_relative_v2",
            "max_relative_position": 1024,
            "layer_prepostprocess_dropout": 0.2,
            "learning_rate_warmup_steps": 8000,
        }
    )
