"""How the published encoders and language models were trained, as their papers and programs say."""

import pytest

from t2t_lite import registry

ADAM = {"optimizer": "adam_w", "weight_decay": 0.01, "optimizer_adam_beta1": 0.9}
LINEAR = {"learning_rate_schedule": "constant*linear_warmup*linear_decay", "label_smoothing": 0.0}
# Devlin et al. (2019), appendix A.2, and optimization.py of google-research/bert.
BERT = LINEAR | ADAM | {
    "optimizer_adam_beta2": 0.999, "optimizer_adam_epsilon": 1e-6, "learning_rate_constant": 1e-4,
    "learning_rate_warmup_steps": 10_000, "learning_rate_decay_steps": 1_000_000, "clip_grad_norm": 1.0,
    "layer_prepostprocess_dropout": 0.1, "attention_dropout": 0.1,
}  # fmt: skip
# Liu et al. (2019), table 9.
ROBERTA = LINEAR | ADAM | {
    "optimizer_adam_beta2": 0.98, "optimizer_adam_epsilon": 1e-6, "learning_rate_constant": 6e-4,
    "learning_rate_warmup_steps": 24_000, "learning_rate_decay_steps": 500_000, "clip_grad_norm": 0.0,
    "layer_prepostprocess_dropout": 0.1, "attention_dropout": 0.1,
}  # fmt: skip
# Lan et al. (2020), section 4.1.
ALBERT = LINEAR | {
    "optimizer": "lamb", "learning_rate_constant": 1.76e-3, "learning_rate_warmup_steps": 3125,
    "learning_rate_decay_steps": 125_000, "layer_prepostprocess_dropout": 0.1,
}  # fmt: skip
# Radford et al. (2018), section 4.1.
GPT = ADAM | {
    "learning_rate_schedule": "constant*linear_warmup*single_cycle_cos_decay", "learning_rate_constant": 2.5e-4,
    "learning_rate_warmup_steps": 2000, "layer_prepostprocess_dropout": 0.1, "attention_dropout": 0.1,
    "label_smoothing": 0.0,
}  # fmt: skip
SETS = {
    "bert_base": BERT, "bert_large": BERT, "ernie_base": BERT, "roberta_base": ROBERTA,
    "roberta_large": ROBERTA | {"learning_rate_constant": 4e-4, "learning_rate_warmup_steps": 30_000},
    "albert_base": ALBERT, "albert_large": ALBERT, "albert_xlarge": ALBERT,
    "albert_xxlarge": ALBERT | {"layer_prepostprocess_dropout": 0.0, "attention_dropout": 0.0},
    "gpt": GPT | {"layer_preprocess_sequence": "none"}, "gpt2_small": GPT | {"layer_preprocess_sequence": "n"},
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_a_set_trains_as_published(name):
    hparams = registry.hparams(name)
    assert {setting: hparams.get(setting) for setting in SETS[name]} == SETS[name]
