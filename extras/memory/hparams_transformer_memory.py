"""Hparams sets of Transformer-XL for `--model=transformer_memory`.

The `transformer_xl_…` sets have the sizes, lengths, dropout and optimizer of the authors' scripts
(kimiyoung/transformer-xl, pytorch/run_enwik8_base.sh and run_wt103_base.sh), but not the adaptive softmax that the
authors use for WikiText-103, and no dropout on the last layer's output.
Distances are also clamped in training, whereas the authors clamp them only in evaluation. The smaller sets are this
package's `transformer_lm_` sets with a memory.
"""

from t2t_lite.hparams.changes import changed
from t2t_lite.hparams.transformer_lm import transformer_lm_small, transformer_lm_tiny
from t2t_lite.registry import register_hparams
from t2t_lite.settings.config import HParams


def _with_memory(hparams, segment_length, memory_length, own=None, **changes):
    """Returns `hparams` with a memory, relative attention and no position encodings; for the rest, see `changed`."""
    own = {"segment_length": segment_length, "memory_length": memory_length, **(own or {})}
    return changed(hparams, own, pos="none", self_attention_type="dot_product_relative_memory", **changes)


def _authors():
    """Returns HParams with the settings that the authors use in all their sets."""
    return changed(
        HParams(),
        initializer="normal",
        initializer_gain=0.02,
        label_smoothing=0.0,
        max_length=0,
        relu_dropout=0.1,  # the authors' --dropout also applies to the inner activations
        optimizer_adam_beta2=0.999,
        optimizer_adam_epsilon=1e-8,
        clip_grad_norm=0.25,
        learning_rate_schedule="constant*cosdecay",
        learning_rate_constant=2.5e-4,
        learning_rate_warmup_steps=0,
    )


@register_hparams
def transformer_xl_enwik8_base():
    """The paper's model with 1.06 bits per character: 12 layers of size 512, segments and memory of 512 bytes."""
    return _with_memory(
        _authors(),
        segment_length=512,
        memory_length=512,
        own={"eval_memory_length": 2100, "clamp_length": 820, "position_dropout": 0.1},
        sizes=(12, 512, 8),
        batch_size=22 * 512,
        learning_rate_decay_steps=400_000,
    )


@register_hparams
def transformer_xl_wikitext103_base():
    """The paper's model with a perplexity of 24.0: 16 layers of hidden size 410, with a memory of 150 words.

    Segments have 128 ids instead of 150, because rows of 4,096 ids must be divisible into segments.
    """
    return _with_memory(
        _authors(),
        segment_length=128,
        memory_length=150,
        own={"eval_memory_length": 640, "clamp_length": 400, "position_dropout": 0.1},
        hidden_size=410,
        filter_size=2100,
        num_heads=10,
        num_hidden_layers=16,
        batch_size=60 * 128,
        learning_rate_decay_steps=200_000,
    )


@register_hparams
def transformer_memory_small():
    """6 layers of hidden size 384, for one GPU."""
    return _with_memory(transformer_lm_small(), segment_length=128, memory_length=128)


@register_hparams
def transformer_memory_tiny():
    """4 layers of hidden size 128, for CPUs and tests."""
    return _with_memory(transformer_lm_tiny(), segment_length=32, memory_length=32)
