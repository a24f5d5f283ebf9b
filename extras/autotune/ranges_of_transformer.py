"""Ranges for `--hparams_range` (mirrors tensor2tensor's models/transformer.py)."""

from t2t_lite.registry import register_ranged_hparams


@register_ranged_hparams
def transformer_base_range(rhp):
    """tensor2tensor's range for `transformer_base`.

    tensor2tensor's first range is of `learning_rate`, which the schedule of its `transformer_base` does not read. Here
    the same numbers apply to `learning_rate_constant`, which is 1 in the paper and 2 in tensor2tensor's set.
    """
    rhp.set_float("learning_rate_constant", 0.3, 3.0, scale=rhp.LOG_SCALE)
    rhp.set_discrete("learning_rate_warmup_steps", [1000, 2000, 4000, 8000, 16000])
    rhp.set_float("initializer_gain", 0.5, 2.0)
    rhp.set_float("optimizer_adam_beta1", 0.85, 0.95)
    rhp.set_float("optimizer_adam_beta2", 0.97, 0.99)
    rhp.set_float("weight_decay", 0.0, 1e-4)


@register_ranged_hparams
def transformer_regularization_range(rhp):
    """Regularization of a Transformer for small corpora; this package's own range."""
    rhp.set_float("layer_prepostprocess_dropout", 0.0, 0.5)
    rhp.set_float("attention_dropout", 0.0, 0.3)
    rhp.set_float("relu_dropout", 0.0, 0.3)
    rhp.set_float("label_smoothing", 0.0, 0.2)


@register_ranged_hparams
def encoder_fine_tuning_range(rhp):
    """Learning rates for fine-tuning an encoder as a classifier (BERT, appendix A.3; RoBERTa, table 10)."""
    rhp.set_discrete("learning_rate_constant", [1e-5, 2e-5, 3e-5, 5e-5])
