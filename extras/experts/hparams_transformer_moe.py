"""Hparams sets for mixtures of experts (mirrors tensor2tensor's models/research/transformer_moe.py)."""

from t2t_lite.hparams.changes import changed
from t2t_lite.hparams.transformer import transformer_base_single_gpu, transformer_tiny
from t2t_lite.registry import register_hparams
from t2t_lite.settings.config import HParams

_MIDDLE = "dense_relu_dense/dense_relu_dense/local_moe/dense_relu_dense/dense_relu_dense"


def _with_experts(hparams, layers="local_moe", num_experts=64, loss_coef=1e-2, **changes):
    """Returns `hparams` with the experts' settings, which a set can then override before the model is known."""
    experts = {"moe_num_experts": num_experts, "moe_k": 2, "moe_loss_coef": loss_coef}
    return changed(hparams, experts, ffn_layer=layers, **changes)


@register_hparams(model="transformer_moe")
def transformer_moe_base():
    """Five pre-norm layers in both encoder and decoder; the third layer of each has 64 experts.

    The values are those of tensor2tensor's set of the same name. In that set, no layer has experts unless `layer_types`
    is changed; in its transformer_moe_2k, only the decoder's third layer has experts.
    """
    return _with_experts(
        HParams(),
        _MIDDLE,
        num_hidden_layers=5,
        max_length=2001,
        label_smoothing=0.0,
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        norm_epsilon=1e-6,
        position_layout="tensor2tensor",
        learning_rate_warmup_steps=2000,
    )


@register_hparams(model="transformer_moe")
def transformer_moe_8k():
    """transformer_moe_base with hidden size 1024 and batches of 8,192 tokens, for long texts.

    Layers without experts have the usual feed-forward networks, whereas tensor2tensor's have separable convolutions
    (`default_ff="sep"`).
    """
    return changed(transformer_moe_base(), batch_size=8192, max_length=0, hidden_size=1024)


@register_hparams(model="transformer_moe")
def transformer_moe_single_gpu():
    """transformer_base_single_gpu with 16 experts in each layer, like tensor2tensor's Transformer with `ffn_layer`."""
    return _with_experts(transformer_base_single_gpu(), num_experts=16, loss_coef=1e-3)


@register_hparams(model="transformer_moe")
def transformer_moe_tiny():
    """transformer_tiny with four experts in each layer, for CPUs and tests."""
    return _with_experts(transformer_tiny(), num_experts=4)
