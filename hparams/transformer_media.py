"""Sets of language models of images and music: small ones for one machine, and the Music Transformer's own.

Both have Huang et al.'s relative positions, whose vectors take the place of a neighbourhood: without them a model of
MNIST learned streaks, no digits.
"""

from t2t_lite.hparams.transformer_lm import transformer_lm_base
from t2t_lite.registry import register_hparams


@register_hparams
def image_transformer_small():
    """4 layers of 128 for images of about a thousand pixels, 5 MNIST images to a batch."""
    return transformer_lm_base().override_from_dict(
        {
            "num_hidden_layers": 4,
            "hidden_size": 128,
            "filter_size": 512,
            "num_heads": 4,
            "batch_size": 4096,
            "self_attention_type": "dot_product_relative_v2",
            "max_relative_position": 128,
            "layer_prepostprocess_dropout": 0.0,
            "learning_rate_warmup_steps": 200,
        }
    )


@register_hparams
def music_transformer_small():
    """4 layers of 128, the relative positions of 256 events, 2,048 events to a batch."""
    return image_transformer_small().override_from_dict(
        {
            "batch_size": 2048,
            "max_relative_position": 256,
            "layer_prepostprocess_dropout": 0.1,
        }
    )


@register_hparams
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
