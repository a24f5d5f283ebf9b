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
# tensor2tensor's models/image_transformer.py: learning rates there are of its "legacy" schedule, times 5000 · 0.002.
IMAGES = {
    "num_hidden_layers": 12, "hidden_size": 512, "filter_size": 512, "num_heads": 8, "self_attention_type": "local_1d",
    "block_length": 256, "batch_size": 4 * 3072, "learning_rate_constant": 1.0, "learning_rate_warmup_steps": 4000,
    "initializer_gain": 0.2, "label_smoothing": 0.0, "norm_epsilon": 1e-6, "clip_grad_norm": 0.0,
    "layer_preprocess_sequence": "none", "layer_postprocess_sequence": "dan", "layer_prepostprocess_dropout": 0.0,
    "shared_embedding_and_softmax_weights": False, "optimizer_adam_beta2": 0.98, "optimizer_adam_epsilon": 1e-9,
}  # fmt: skip
CIFAR = IMAGES | {
    "num_heads": 4, "filter_size": 2048, "learning_rate_constant": 5.0, "layer_prepostprocess_dropout": 0.3
}  # fmt: skip
BIG = IMAGES | {"num_hidden_layers": 8, "filter_size": 2048, "layer_prepostprocess_dropout": 0.3}
RELATIVE = {"self_attention_type": "local_1d+dot_product_relative_v2", "max_relative_position": 512}
LARGE_IMAGES = {"batch_size": 3 * 64 * 64, "layer_prepostprocess_dropout": 0.1}
# Child et al. (2019), section 7.1.
SPARSE_CIFAR = {
    "num_hidden_layers": 128, "hidden_size": 256, "filter_size": 512, "num_heads": 2, "attention_key_channels": 128,
    "attention_stride": 128, "layer_prepostprocess_dropout": 0.25, "learning_rate_constant": 3.5e-4,
    "learning_rate_warmup_steps": 5000, "weight_decay": 0.01, "clip_grad_norm": 1.0,
}  # fmt: skip
SETS = {
    "imagetransformer_base": IMAGES, "imagetransformer_base_rel": IMAGES | RELATIVE,
    "imagetransformer_cifar10_base": CIFAR,
    "imagetransformer_imagenet32_base": CIFAR | {"layer_prepostprocess_dropout": 0.1},
    "imagetransformer_base_8l_8h_big_cond_dr03_dan_128": BIG | {"block_length": 128},
    "imagetransformer_base_10l_8h_big_uncond_dr03_dan_64": BIG | LARGE_IMAGES | {"num_hidden_layers": 10},
    "imagetransformer1d_base_8l_64by64": BIG | LARGE_IMAGES | {"block_length": 512},
    "imagetransformer_tiny": IMAGES | {"num_hidden_layers": 2, "hidden_size": 64, "batch_size": 3072},
    "sparse_transformer_cifar10": SPARSE_CIFAR,
    "bert_base": BERT, "bert_large": BERT, "ernie_base": BERT, "roberta_base": ROBERTA,
    "roberta_large": ROBERTA | {"learning_rate_constant": 4e-4, "learning_rate_warmup_steps": 30_000},
    "albert_base": ALBERT, "albert_large": ALBERT, "albert_xlarge": ALBERT,
    "albert_xxlarge": ALBERT | {"layer_prepostprocess_dropout": 0.0, "attention_dropout": 0.0},
    "gpt": GPT | {"layer_preprocess_sequence": "none"}, "gpt2_small": GPT | {"layer_preprocess_sequence": "n"},
}  # fmt: skip


@pytest.mark.whole
@pytest.mark.parametrize("name", SETS)
def test_a_set_trains_as_published(name):
    hparams = registry.hparams(name)
    assert {setting: hparams.get(setting) for setting in SETS[name]} == SETS[name]
