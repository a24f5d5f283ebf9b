"""Sets for `--hparams_set` (mirrors tensor2tensor's models/transformer.py; the paper's are the `_v1` ones).

Three families: the paper's models; the rows of its table 3, each one change to `transformer_base_v1`; tensor2tensor's
later sets, with its values. docs/hparams_sets.md lists all of them with their sizes, and what of tensor2tensor's has
no meaning here.
"""

from t2t_lite.config import HParams
from t2t_lite.registry import register_hparams


def _changed(hparams, **changes):
    return hparams.override_from_dict(changes)


# The paper's models.


@register_hparams
def transformer_base_v1():
    """The paper's base model: the defaults of `HParams`."""
    return HParams()


@register_hparams
def transformer_big_v1():
    """The paper's big model for English-German (table 3, last row; section 5.4)."""
    return _changed(
        transformer_base_v1(), hidden_size=1024, filter_size=4096, num_heads=16, layer_prepostprocess_dropout=0.3
    )


@register_hparams
def transformer_big_enfr_v1():
    """The paper's big model for English-French: dropout 0.1 (section 6.1)."""
    return _changed(transformer_big_v1(), layer_prepostprocess_dropout=0.1)


@register_hparams
def transformer_parsing_v1():
    """The paper's parser (section 6.3): 4 layers, d_model 1024, all else as base.

    The paper chose "dropout, both attention and residual" on its development set without naming the rates: 0.2 and
    0.2 are tensor2tensor's, in transformer_parsing_base.
    """
    return _changed(
        transformer_base_v1(),
        num_hidden_layers=4,
        hidden_size=1024,
        attention_dropout=0.2,
        layer_prepostprocess_dropout=0.2,
    )


# Table 3 of the paper. tensor2tensor has the same names for changes to its transformer_base_v3: other models.


@register_hparams
def transformer_h1():
    """Table 3, row (A): one head of 512."""
    return _changed(transformer_base_v1(), num_heads=1)


@register_hparams
def transformer_h4():
    """Table 3, row (A): 4 heads of 128."""
    return _changed(transformer_base_v1(), num_heads=4)


@register_hparams
def transformer_h16():
    """Table 3, row (A): 16 heads of 32."""
    return _changed(transformer_base_v1(), num_heads=16)


@register_hparams
def transformer_h32():
    """Table 3, row (A): 32 heads of 16."""
    return _changed(transformer_base_v1(), num_heads=32)


@register_hparams
def transformer_k128():
    """Table 3, row (B): d_k = 16, 128 key channels over all heads; d_v stays 64."""
    return _changed(transformer_base_v1(), attention_key_channels=128)


@register_hparams
def transformer_k256():
    """Table 3, row (B): d_k = 32, 256 key channels over all heads; d_v stays 64."""
    return _changed(transformer_base_v1(), attention_key_channels=256)


@register_hparams
def transformer_l2():
    """Table 3, row (C): 2 layers a side."""
    return _changed(transformer_base_v1(), num_hidden_layers=2)


@register_hparams
def transformer_l4():
    """Table 3, row (C): 4 layers a side."""
    return _changed(transformer_base_v1(), num_hidden_layers=4)


@register_hparams
def transformer_l8():
    """Table 3, row (C): 8 layers a side."""
    return _changed(transformer_base_v1(), num_hidden_layers=8)


@register_hparams
def transformer_hs256():
    """Table 3, row (C): d_model 256, 8 heads of 32."""
    return _changed(transformer_base_v1(), hidden_size=256)


@register_hparams
def transformer_hs1024():
    """Table 3, row (C): d_model 1024, 8 heads of 128."""
    return _changed(transformer_base_v1(), hidden_size=1024)


@register_hparams
def transformer_ff1024():
    """Table 3, row (C): d_ff 1024."""
    return _changed(transformer_base_v1(), filter_size=1024)


@register_hparams
def transformer_ff4096():
    """Table 3, row (C): d_ff 4096."""
    return _changed(transformer_base_v1(), filter_size=4096)


@register_hparams
def transformer_dr0():
    """Table 3, row (D): no dropout."""
    return _changed(transformer_base_v1(), layer_prepostprocess_dropout=0.0)


@register_hparams
def transformer_dr2():
    """Table 3, row (D): dropout 0.2."""
    return _changed(transformer_base_v1(), layer_prepostprocess_dropout=0.2)


@register_hparams
def transformer_ls0():
    """Table 3, row (D): no label smoothing."""
    return _changed(transformer_base_v1(), label_smoothing=0.0)


@register_hparams
def transformer_ls2():
    """Table 3, row (D): label smoothing 0.2."""
    return _changed(transformer_base_v1(), label_smoothing=0.2)


@register_hparams
def transformer_learned_positions():
    """Table 3, row (E): learned positions instead of sinusoids."""
    return _changed(transformer_base_v1(), pos="emb")


# tensor2tensor's sets, under its names and with its values.


@register_hparams
def transformer_base_v2():
    """tensor2tensor's second version: pre-norm, dropout inside the sub-layers too, a longer and higher warm-up.

    Its layer norm's epsilon and its layout of the sinusoids differ from the paper's sets here, too.
    """
    return _changed(
        transformer_base_v1(),
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        norm_epsilon=1e-6,
        position_layout="tensor2tensor",
        attention_dropout=0.1,
        relu_dropout=0.1,
        learning_rate_constant=2.0,  # there learning_rate 0.2, times the 5000 · 0.002 of its "legacy" schedule
        learning_rate_warmup_steps=8000,
    )


@register_hparams
def transformer_base_v3():
    """tensor2tensor's third version: Adam's beta2 is 0.997."""
    return _changed(transformer_base_v2(), optimizer_adam_beta2=0.997)


@register_hparams
def transformer_base():
    """tensor2tensor's default: its transformer_base_v3."""
    return transformer_base_v3()


@register_hparams
def transformer_big():
    """tensor2tensor's big model."""
    return _changed(
        transformer_base(),
        hidden_size=1024,
        filter_size=4096,
        num_heads=16,
        layer_prepostprocess_dropout=0.3,
        batch_size=2048,
    )


@register_hparams
def transformer_big_single_gpu():
    """tensor2tensor's big model for smaller batches."""
    return _changed(transformer_big(), layer_prepostprocess_dropout=0.1, learning_rate_warmup_steps=16000)


@register_hparams
def transformer_base_single_gpu():
    """tensor2tensor's base model for small batches; its learning rate does not depend on the hidden size."""
    return _changed(
        transformer_base(),
        batch_size=1024,
        learning_rate_schedule="constant*linear_warmup*rsqrt_decay",
        learning_rate_constant=0.1,
        learning_rate_warmup_steps=16000,
    )


@register_hparams
def transformer_base_multistep8():
    """tensor2tensor's base model, 8 batches an update (there optimizer "multistep_adam").

    A step is an update here; there each batch is one, so train_steps is an eighth of tensor2tensor's.
    """
    return _changed(transformer_base(), gradient_accumulation_steps=8)


@register_hparams
def transformer_tiny():
    """tensor2tensor's tiny model: 2 layers of 128."""
    return _changed(transformer_base(), num_hidden_layers=2, hidden_size=128, filter_size=512, num_heads=4)


@register_hparams
def transformer_small():
    """tensor2tensor's small model: 2 layers of 256."""
    return _changed(transformer_base(), num_hidden_layers=2, hidden_size=256, filter_size=1024, num_heads=4)


@register_hparams
def transformer_l10():
    """tensor2tensor's base model with 10 layers a side. Not of table 3, so the parent is tensor2tensor's."""
    return _changed(transformer_base(), num_hidden_layers=10)


@register_hparams
def transformer_relative():
    """tensor2tensor's base model with relative positions (Shaw et al. 2018) on the keys, and no others."""
    return _changed(
        transformer_base(), pos="none", self_attention_type="dot_product_relative", max_relative_position=20
    )


@register_hparams
def transformer_relative_tiny():
    """tensor2tensor's tiny model with relative positions."""
    return _changed(transformer_relative(), num_hidden_layers=2, hidden_size=128, filter_size=512, num_heads=4)


@register_hparams
def transformer_parsing_base():
    """tensor2tensor's parser; the paper's has 4 layers (`transformer_parsing_v1`)."""
    return _changed(
        transformer_base(),
        attention_dropout=0.2,
        layer_prepostprocess_dropout=0.2,
        max_length=512,
        learning_rate_warmup_steps=16000,
        hidden_size=1024,
        shared_embedding_and_softmax_weights=False,
    )


@register_hparams
def transformer_parsing_big():
    """tensor2tensor's big parser."""
    return _changed(
        transformer_big(), max_length=512, learning_rate_warmup_steps=4000, layer_prepostprocess_dropout=0.1
    )


# This package's own.


@register_hparams
def transformer_quickstart():
    """For `make quickstart`: learns the phrasebook in minutes on two CPU cores."""
    return _changed(transformer_tiny(), batch_size=2048, learning_rate_warmup_steps=500, eval_decode_examples=100)
