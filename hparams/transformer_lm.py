"""Hyperparameter sets for language models: GPT and GPT-2, tensor2tensor's sets, and this package's own sets.

GPT has the sizes and dropout of its published models, and the optimizer and learning rate of Radford et al. 2018,
section 4.1. The authors of GPT-2 did not publish an optimizer or a learning rate, so GPT's settings are used. All
matrices are initialized as N(0, 0.02). The exception in GPT-2 is matrices whose products are added to the residual
stream, which are initialized as N(0, 0.02/√(2N)). tensor2tensor's sets are from its models/research/attention_lm.py and
models/transformer.py.
"""

from t2t_lite.hparams.changes import changed, of_gpt_and_bert
from t2t_lite.hparams.transformer import transformer_base
from t2t_lite.registry import register_hparams
from t2t_lite.settings.config import HParams

# GPT and GPT-2.


@register_hparams(model="transformer_lm")
def gpt():
    """GPT (Radford et al. 2018): 12 layers of 768, post-norm, 512 positions."""
    return of_gpt_and_bert(
        {"begin": "end"},
        ffn_activation="gelu_tanh",
        max_length=512,
        optimizer_adam_epsilon=1e-8,
        learning_rate_schedule="constant*linear_warmup*single_cycle_cos_decay",
        learning_rate_constant=2.5e-4,
        learning_rate_warmup_steps=2000,
    )


@register_hparams(model="transformer_lm")
def gpt2_small():
    """The smallest GPT-2 (Radford et al. 2019): pre-norm, 1,024 positions; trained with the settings of GPT."""
    return changed(
        gpt(),
        {"scale_residuals": True},
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        max_position=1024,
        max_length=1024,
    )


@register_hparams(model="transformer_lm")
def gpt2_medium():
    """GPT-2, 24 layers of 1024."""
    return changed(gpt2_small(), sizes=(24, 1024, 16))


@register_hparams(model="transformer_lm")
def gpt2_large():
    """GPT-2, 36 layers of 1280."""
    return changed(gpt2_small(), sizes=(36, 1280, 20))


@register_hparams(model="transformer_lm")
def gpt2_xl():
    """GPT-2, 48 layers of 1600."""
    return changed(gpt2_small(), sizes=(48, 1600, 25))


# tensor2tensor's sets, with its names and values.


@register_hparams(model="transformer_lm")
def attention_lm_base():
    """tensor2tensor's first language model: 6 layers of 1024, post-norm, with a separate softmax matrix."""
    return changed(
        HParams(),
        sizes=(6, 1024, 8),
        batch_size=8192,
        norm_epsilon=1e-6,
        position_layout="tensor2tensor",
        label_smoothing=0.0,
        shared_embedding_and_softmax_weights=False,
        # 0.1 in tensor2tensor, whose "legacy" schedule multiplies the learning rate by 5000 · 0.002
        learning_rate_constant=1.0,
        learning_rate_warmup_steps=2000,
    )


@register_hparams(model="transformer_lm")
def attention_lm_small():
    """tensor2tensor's smaller language model: 4 layers of 512 with dropout 0.5."""
    return changed(attention_lm_base(), sizes=(4, 512, 8), layer_prepostprocess_dropout=0.5)


@register_hparams(model="transformer_lm")
def transformer_tall():
    """tensor2tensor's set for language models that are later fine-tuned on other tasks: 12 layers of 768."""
    return changed(
        transformer_base(),
        sizes=(12, 768, 12),
        batch_size=2048,
        label_smoothing=0.0,
        max_length=1024,
        clip_grad_norm=1.0,
    )


@register_hparams(model="transformer_lm")
def transformer_tall_pretrain_lm():
    """tensor2tensor's pretraining of `transformer_tall`: AdamW with cosine decay.

    A step subtracts 2e-6 of each matrix, as in tensor2tensor, but only at the peak of the learning rate, with which
    this fraction rises and falls.
    """
    return changed(
        transformer_tall(),
        optimizer="adam_w",
        weight_decay=0.01,
        optimizer_adam_beta1=0.9,
        optimizer_adam_beta2=0.999,
        optimizer_adam_epsilon=1e-8,
        learning_rate_schedule="linear_warmup*constant*cosdecay",
        learning_rate_constant=2e-4,
        learning_rate_decay_steps=5_000_000,
    )


# This package's own sets: pre-norm, with tanh-GELU.


@register_hparams(model="transformer_lm")
def transformer_lm_base():
    """A medium-sized language model for one GPU: 12 layers of 512."""
    return changed(
        transformer_base(),
        num_hidden_layers=12,
        ffn_activation="gelu_tanh",
        label_smoothing=0.0,
        attention_dropout=0.0,
        relu_dropout=0.0,
        max_length=0,
        clip_grad_norm=1.0,
        learning_rate_constant=1.0,
        learning_rate_warmup_steps=4000,
    )


@register_hparams(model="transformer_lm")
def transformer_lm_small():
    """A small language model: 6 layers of 384."""
    return changed(transformer_lm_base(), sizes=(6, 384, 6))


@register_hparams(model="transformer_lm")
def transformer_lm_tiny():
    """A tiny language model for CPUs and tests: 4 layers of 128."""
    return changed(
        transformer_lm_base(),
        sizes=(4, 128, 4),
        batch_size=2048,
        layer_prepostprocess_dropout=0.0,
        learning_rate_warmup_steps=500,
    )
