"""Hyperparameter sets for encoders: BERT, RoBERTa, ALBERT, ERNIE, and this package's own small sets.

Sizes and pretraining follow the papers: Devlin et al. 2019, appendix A.2; Liu et al. 2019, table 9; Lan et al. 2020,
table 1 and section 4.1; Sun et al. 2019. A set's `batch_size`, 16 rows of 512 ids, is that of one replica: the papers'
batches, which the sets state, need more replicas, or `gradient_accumulation_steps`.
"""

from t2t_lite.hparams.changes import changed, of_gpt_and_bert
from t2t_lite.registry import register_hparams


@register_hparams(model="transformer_encoder")
def bert_base():
    """BERT base: 12 layers of 768, post-norm, 512 positions. The paper's batches have 256 rows of 512 ids."""
    return of_gpt_and_bert(
        ffn_activation="gelu",
        norm_epsilon=1e-12,
        max_length=511,
        softmax_bias=True,
        batch_size=8192,
        optimizer_adam_epsilon=1e-6,
        learning_rate_schedule="constant*linear_warmup*linear_decay",
        learning_rate_constant=1e-4,
        learning_rate_warmup_steps=10_000,
        learning_rate_decay_steps=1_000_000,
    )


@register_hparams(model="transformer_encoder")
def bert_large():
    """BERT large: 24 layers of 1024."""
    return changed(bert_base(), sizes=(24, 1024, 16))


@register_hparams(model="transformer_encoder")
def roberta_base():
    """RoBERTa base: BERT's sizes and one segment. The paper's batches have 8,000 rows of 512 ids."""
    return changed(
        bert_base(),
        {"num_segments": 1},
        norm_epsilon=1e-5,
        optimizer_adam_beta2=0.98,
        learning_rate_constant=6e-4,
        learning_rate_warmup_steps=24_000,
        learning_rate_decay_steps=500_000,
        clip_grad_norm=0.0,
    )


@register_hparams(model="transformer_encoder")
def roberta_large():
    """RoBERTa large."""
    return changed(roberta_base(), sizes=(24, 1024, 16), learning_rate_constant=4e-4, learning_rate_warmup_steps=30_000)


@register_hparams(model="transformer_encoder")
def albert_base():
    """ALBERT base: 12 layers of 768 that share weights, embeddings of 128. The paper's batches have 4,096 rows."""
    return changed(
        bert_base(),
        {"num_hidden_groups": 1},
        embedding_size=128,
        ffn_activation="gelu_tanh",
        optimizer="lamb",
        learning_rate_constant=1.76e-3,
        learning_rate_warmup_steps=3125,
        learning_rate_decay_steps=125_000,
    )


@register_hparams(model="transformer_encoder")
def albert_large():
    """ALBERT large: 24 layers of 1024."""
    return changed(albert_base(), sizes=(24, 1024, 16))


@register_hparams(model="transformer_encoder")
def albert_xlarge():
    """ALBERT xlarge: 24 layers of 2048, with the 16 heads of the published model; the paper's rule would give 32."""
    return changed(albert_large(), sizes=(24, 2048, 16))


@register_hparams(model="transformer_encoder")
def albert_xxlarge():
    """ALBERT xxlarge: 12 layers of 4096, without dropout (section 4.9)."""
    return changed(albert_base(), sizes=(12, 4096, 64), layer_prepostprocess_dropout=0.0, attention_dropout=0.0)


@register_hparams(model="transformer_encoder")
def ernie_base():
    """ERNIE 2.0 base: BERT base with embeddings of task types; whole phrases should be masked (`--mask_unit`)."""
    return changed(bert_base(), {"num_task_types": 3})


# This package's own sets, for a CPU.


@register_hparams(model="transformer_encoder")
def bert_mini():
    """A small encoder: 4 layers of 256, 128 positions."""
    return changed(
        bert_base(),
        sizes=(4, 256, 4),
        max_position=128,
        max_length=127,
        batch_size=2048,
        learning_rate_constant=5e-4,
        learning_rate_warmup_steps=500,
        learning_rate_decay_steps=20_000,
    )


@register_hparams(model="transformer_encoder")
def bert_tiny():
    """A tiny encoder: 2 layers of 128."""
    return changed(bert_mini(), sizes=(2, 128, 2))
