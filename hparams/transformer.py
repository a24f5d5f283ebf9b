"""Sets for `--hparams_set` (mirrors tensor2tensor's models/transformer.py; the paper's are the `_v1` ones)."""

from t2t_lite.config import HParams
from t2t_lite.registry import register_hparams


@register_hparams
def transformer_base_v1():
    """The paper's base model: the defaults of `HParams`."""
    return HParams()


@register_hparams
def transformer_big_v1():
    """The paper's big model for English-German (table 3, last row; section 5.4)."""
    hparams = transformer_base_v1()
    hparams.hidden_size = 1024
    hparams.filter_size = 4096
    hparams.num_heads = 16
    hparams.layer_prepostprocess_dropout = 0.3
    return hparams


@register_hparams
def transformer_big_enfr_v1():
    """The paper's big model for English-French: dropout 0.1 (section 6.1)."""
    hparams = transformer_big_v1()
    hparams.layer_prepostprocess_dropout = 0.1
    return hparams


@register_hparams
def transformer_base():
    """tensor2tensor's later default (its transformer_base_v3): pre-norm, more dropout, longer warm-up."""
    hparams = transformer_base_v1()
    hparams.layer_preprocess_sequence = "n"
    hparams.layer_postprocess_sequence = "da"
    hparams.norm_epsilon = 1e-6
    hparams.position_layout = "tensor2tensor"
    hparams.attention_dropout = 0.1
    hparams.relu_dropout = 0.1
    hparams.optimizer_adam_beta2 = 0.997
    hparams.learning_rate_constant = 2.0
    hparams.learning_rate_warmup_steps = 8000
    return hparams


@register_hparams
def transformer_big():
    """tensor2tensor's big model."""
    hparams = transformer_base()
    hparams.hidden_size = 1024
    hparams.filter_size = 4096
    hparams.num_heads = 16
    hparams.layer_prepostprocess_dropout = 0.3
    hparams.batch_size = 2048
    return hparams


@register_hparams
def transformer_tiny():
    """tensor2tensor's tiny model: 2 layers of 128."""
    hparams = transformer_base()
    hparams.num_hidden_layers = 2
    hparams.hidden_size = 128
    hparams.filter_size = 512
    hparams.num_heads = 4
    return hparams


@register_hparams
def transformer_quickstart():
    """For `make quickstart`: learns the phrasebook in minutes on two CPU cores."""
    hparams = transformer_tiny()
    hparams.batch_size = 2048
    hparams.learning_rate_warmup_steps = 500
    hparams.eval_decode_examples = 100
    return hparams
