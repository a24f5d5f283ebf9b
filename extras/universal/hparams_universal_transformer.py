"""Hparams sets for `--model=universal_transformer`, with tensor2tensor's names and values.

These are the sets in models/research/universal_transformer.py that need only position and step signals and adaptive
computation time. As in tensor2tensor, `num_hidden_layers` only determines the default step counts; the model does not
use it.
"""

from t2t_lite.hparams.changes import changed
from t2t_lite.hparams.transformer import transformer_base, transformer_tiny
from t2t_lite.registry import register_hparams


def _universal(hparams, changes=(), **own):
    """Returns `hparams` with `changes` applied. Step counts are tensor2tensor's unless `own` overrides them."""
    layers = hparams.num_hidden_layers
    own = {"num_rec_steps": layers, "act_max_steps": 2 * layers, **own}
    return changed(hparams, own, pos="none", **dict(changes))


_BASE = {"hidden_size": 1024, "filter_size": 4096, "num_heads": 16, "layer_prepostprocess_dropout": 0.3}
_BIG = {**_BASE, "hidden_size": 2048, "filter_size": 8192}
_ACT = {"recurrence_type": "act"}


@register_hparams
def universal_transformer_base():
    """6 steps of one layer with hidden size 1024."""
    return _universal(transformer_base(), _BASE)


@register_hparams
def universal_transformer_big():
    """6 steps of one layer with hidden size 2048."""
    return _universal(transformer_base(), _BIG)


@register_hparams
def universal_transformer_small():
    """6 steps of one layer with hidden size 512."""
    return _universal(transformer_base())


@register_hparams
def universal_transformer_tall():
    """16 steps of one layer with hidden size 512."""
    return _universal(transformer_base(), num_rec_steps=16)


@register_hparams
def universal_transformer_tiny():
    """8 steps of one layer with hidden size 128."""
    return _universal(transformer_tiny(), num_rec_steps=8)


@register_hparams
def universal_transformer_position_random_timing_tiny():
    """universal_transformer_tiny, with a random first position in training."""
    return _universal(transformer_tiny(), num_rec_steps=8, position_start_index="random")


@register_hparams
def universal_transformer_position_step_timing_tiny():
    """universal_transformer_tiny, with a first position that grows with each step."""
    return _universal(transformer_tiny(), num_rec_steps=8, position_start_index="step")


@register_hparams
def universal_transformer_step_sinusoid_timing_tiny():
    """universal_transformer_tiny, with a sinusoid encoding of the step number instead of learned vectors."""
    return _universal(transformer_tiny(), num_rec_steps=8, step_timing_signal_type="sinusoid")


@register_hparams
def adaptive_universal_transformer_base():
    """At most 12 steps of one layer with hidden size 1024."""
    return _universal(transformer_base(), _BASE, **_ACT)


@register_hparams
def adaptive_universal_transformer_small():
    """At most 12 steps of one layer with hidden size 512."""
    return _universal(transformer_base(), **_ACT)


@register_hparams
def adaptive_universal_transformer_tall():
    """At most 24 steps of one layer with hidden size 512."""
    return _universal(transformer_base(), {"batch_size": 1024}, act_max_steps=24, **_ACT)


@register_hparams
def adaptive_universal_transformer_tiny():
    """At most 4 steps of one layer with hidden size 128."""
    return _universal(transformer_tiny(), num_rec_steps=8, **_ACT)


@register_hparams
def adaptive_universal_transformer_position_random_timing_tiny():
    """adaptive_universal_transformer_tiny, with a random first position in training."""
    return _universal(transformer_tiny(), num_rec_steps=8, position_start_index="random", **_ACT)


@register_hparams
def adaptive_universal_transformer_global_base():
    """adaptive_universal_transformer_base, but all positions of a sentence halt together."""
    return _universal(transformer_base(), _BASE, act_type="global", **_ACT)
