"""Sets of Transformer-XL for `--model=transformer_memory`.

`transformer_xl_…` have the sizes, lengths and optimizer of the authors' scripts (kimiyoung/transformer-xl,
pytorch/run_enwik8_base.sh and run_wt103_base.sh), but no adaptive softmax, which theirs of WikiText-103 has.
Distances are clamped in training, too, theirs in evaluation alone. The smaller ones are this package's own.
"""

from t2t_lite.config import HParams
from t2t_lite.registry import register_hparams


def _set(**changes):
    """Returns HParams of the model with what all sets share: no absolute positions, weights of N(0, 0.02)."""
    hparams = HParams().override_from_dict(
        {
            "pos": "none",
            "self_attention_type": "dot_product_relative_memory",
            "initializer": "normal",
            "initializer_gain": 0.02,
            "label_smoothing": 0.0,
            "max_length": 0,
            "optimizer_adam_beta2": 0.999,
            "optimizer_adam_epsilon": 1e-8,
            "clip_grad_norm": 0.25,
        }
    )
    for name, value in changes.items():
        if name in hparams:
            hparams.set_hparam(name, value)
        else:
            hparams.add_hparam(name, value)
    return hparams


@register_hparams
def transformer_xl_enwik8_base():
    """12 layers of 512, segments and memory of 512 bytes: 1.06 bits per character in the paper."""
    return _set(
        hidden_size=512,
        filter_size=2048,
        num_heads=8,
        num_hidden_layers=12,
        batch_size=22 * 512,
        learning_rate_schedule="constant*cosdecay",
        learning_rate_constant=2.5e-4,
        learning_rate_warmup_steps=0,
        learning_rate_decay_steps=400_000,
        segment_length=512,
        memory_length=512,
        eval_memory_length=2100,
        clamp_length=820,
    )


@register_hparams
def transformer_xl_wikitext103_base():
    """16 layers of 410, a memory of 150 words: perplexity 24.0. Segments of 128, not 150, divide rows of 4,096 ids."""
    return _set(
        hidden_size=410,
        filter_size=2100,
        num_heads=10,
        num_hidden_layers=16,
        batch_size=60 * 128,
        learning_rate_schedule="constant*cosdecay",
        learning_rate_constant=2.5e-4,
        learning_rate_warmup_steps=0,
        learning_rate_decay_steps=200_000,
        segment_length=128,
        memory_length=150,
        eval_memory_length=640,
        clamp_length=400,
    )


@register_hparams
def transformer_memory_small():
    """6 layers of 384, for one GPU."""
    return _set(
        hidden_size=384,
        filter_size=1536,
        num_heads=6,
        num_hidden_layers=6,
        learning_rate_warmup_steps=4000,
        segment_length=128,
        memory_length=128,
    )


@register_hparams
def transformer_memory_tiny():
    """3 layers of 128, for CPUs and tests."""
    return _set(
        hidden_size=128,
        filter_size=512,
        num_heads=4,
        num_hidden_layers=3,
        batch_size=1024,
        learning_rate_warmup_steps=150,
        segment_length=32,
        memory_length=32,
    )
