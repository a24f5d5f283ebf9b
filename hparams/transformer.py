"""Hyperparameter sets of the Transformer (mirrors tensor2tensor's models/transformer.py; `_v1` marks the paper's sets).

There are three families of sets: the paper's models; the rows of the paper's table 3, each with one change to
`transformer_base_v1`; and tensor2tensor's later sets, with tensor2tensor's values. docs/hparams_sets.md lists all sets
with their sizes; docs/coming_from_tensor2tensor.md lists tensor2tensor's hyperparameters that are not supported here.
"""

from t2t_lite.hparams.changes import changed
from t2t_lite.registry import register_hparams
from t2t_lite.settings.config import HParams

# The paper's models.


@register_hparams
def transformer_base_v1():
    """The paper's base model: the defaults of `HParams`."""
    return HParams()


@register_hparams
def transformer_big_v1():
    """The paper's big model for English-German (table 3, last row; section 5.4)."""
    return changed(transformer_base_v1(), sizes=(6, 1024, 16), layer_prepostprocess_dropout=0.3)


@register_hparams
def transformer_big_enfr_v1():
    """The paper's big model for English-French: dropout 0.1 (section 6.1)."""
    return changed(transformer_big_v1(), layer_prepostprocess_dropout=0.1)


@register_hparams
def transformer_parsing_v1():
    """The paper's parser (section 6.3): 4 layers with d_model 1024, otherwise like the base model.

    The paper chose "dropout, both attention and residual" on its development set but does not give the rates. The rates
    of 0.2 and 0.2 are from tensor2tensor's transformer_parsing_base.
    """
    return changed(
        transformer_base_v1(),
        num_hidden_layers=4,
        hidden_size=1024,
        attention_dropout=0.2,
        layer_prepostprocess_dropout=0.2,
    )


# The rows of table 3 of the paper, as changes to the base model; d_v stays 64 in row (B). In tensor2tensor, the sets
# with these names change transformer_base_v3 instead, so the models differ.
TABLE_3 = {
    # Row (A): different numbers of heads, which share 512 channels.
    "transformer_h1": {"num_heads": 1},
    "transformer_h4": {"num_heads": 4},
    "transformer_h16": {"num_heads": 16},
    "transformer_h32": {"num_heads": 32},
    # Row (B): smaller keys. The option is the total size of all 8 heads: 8 · 16 and 8 · 32.
    "transformer_k128": {"attention_key_channels": 128},
    "transformer_k256": {"attention_key_channels": 256},
    # Row (C): different values of d_model, d_ff or the number of layers per side.
    "transformer_l2": {"num_hidden_layers": 2},
    "transformer_l4": {"num_hidden_layers": 4},
    "transformer_l8": {"num_hidden_layers": 8},
    "transformer_hs256": {"hidden_size": 256},
    "transformer_hs1024": {"hidden_size": 1024},
    "transformer_ff1024": {"filter_size": 1024},
    "transformer_ff4096": {"filter_size": 4096},
    # Row (D): different rates of dropout or label smoothing.
    "transformer_dr0": {"layer_prepostprocess_dropout": 0.0},
    "transformer_dr2": {"layer_prepostprocess_dropout": 0.2},
    "transformer_ls0": {"label_smoothing": 0.0},
    "transformer_ls2": {"label_smoothing": 0.2},
    # Row (E): learned positions instead of sinusoids.
    "transformer_learned_positions": {"pos": "emb"},
}


def _register_row(name):
    @register_hparams(name)
    def make():
        return changed(transformer_base_v1(), **TABLE_3[name])

    return make


# Each set can be imported by name, like the other sets.
globals().update({name: _register_row(name) for name in TABLE_3})


# tensor2tensor's sets, with its names and values.


@register_hparams
def transformer_base_v2():
    """tensor2tensor's second version: pre-norm, additional dropout inside the sub-layers, a longer and higher warm-up.

    The epsilon of layer norm and the layout of the sinusoids also differ from the paper's sets.
    """
    return changed(
        transformer_base_v1(),
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        norm_epsilon=1e-6,
        position_layout="tensor2tensor",
        attention_dropout=0.1,
        relu_dropout=0.1,
        # 0.2 in tensor2tensor, whose "legacy" schedule multiplies the learning rate by 5000 · 0.002
        learning_rate_constant=2.0,
        learning_rate_warmup_steps=8000,
    )


@register_hparams
def transformer_base_v3():
    """tensor2tensor's third version: Adam's beta2 is 0.997."""
    return changed(transformer_base_v2(), optimizer_adam_beta2=0.997)


@register_hparams
def transformer_base():
    """tensor2tensor's default: its transformer_base_v3."""
    return transformer_base_v3()


@register_hparams
def transformer_big():
    """tensor2tensor's big model."""
    return changed(transformer_base(), sizes=(6, 1024, 16), layer_prepostprocess_dropout=0.3, batch_size=2048)


@register_hparams
def transformer_big_single_gpu():
    """tensor2tensor's big model for smaller batches."""
    return changed(transformer_big(), layer_prepostprocess_dropout=0.1, learning_rate_warmup_steps=16000)


@register_hparams
def transformer_base_single_gpu():
    """tensor2tensor's base model for small batches; the learning rate does not depend on the hidden size."""
    return changed(
        transformer_base(),
        batch_size=1024,
        learning_rate_schedule="constant*linear_warmup*rsqrt_decay",
        learning_rate_constant=0.1,
        learning_rate_warmup_steps=16000,
    )


@register_hparams
def transformer_base_multistep8():
    """tensor2tensor's base model with 8 batches per update ("multistep_adam" in tensor2tensor).

    A step is an update here but a batch in tensor2tensor, so train_steps is an eighth of tensor2tensor's value.
    """
    return changed(transformer_base(), gradient_accumulation_steps=8)


@register_hparams
def transformer_tiny():
    """tensor2tensor's tiny model: 2 layers of 128."""
    return changed(transformer_base(), sizes=(2, 128, 4))


@register_hparams
def transformer_small():
    """tensor2tensor's small model: 2 layers of 256."""
    return changed(transformer_base(), sizes=(2, 256, 4))


@register_hparams
def transformer_l10():
    """tensor2tensor's base model with 10 layers per side.

    This model is not in table 3, so the set is based on tensor2tensor's base model.
    """
    return changed(transformer_base(), num_hidden_layers=10)


@register_hparams
def transformer_relative():
    """tensor2tensor's base model with only relative positions (Shaw et al. 2018), on the keys."""
    return changed(transformer_base(), pos="none", self_attention_type="dot_product_relative", max_relative_position=20)


@register_hparams
def transformer_relative_tiny():
    """tensor2tensor's tiny model with relative positions."""
    return changed(transformer_relative(), sizes=(2, 128, 4))


@register_hparams
def transformer_parsing_base():
    """tensor2tensor's parser; the paper's parser has 4 layers (`transformer_parsing_v1`)."""
    return changed(
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
    return changed(transformer_big(), max_length=512, learning_rate_warmup_steps=4000, layer_prepostprocess_dropout=0.1)


# This package's own sets.


@register_hparams
def transformer_quickstart():
    """The set for `make quickstart`, which learns the phrasebook in minutes on two CPU cores."""
    return changed(transformer_tiny(), batch_size=2048, learning_rate_warmup_steps=500, eval_decode_examples=100)


@register_hparams
def transformer_cpu():
    """For thousands of sentence pairs on a CPU: 4 layers of 128; the learning rate falls to zero at the last step.

    The dropout suits about 30,000 pairs; fewer pairs need 0.3. docs/recipes.md has scores and times.
    """
    return changed(
        transformer_tiny(),
        num_hidden_layers=4,
        filter_size=256,
        layer_prepostprocess_dropout=0.2,
        batch_size=1024,
        learning_rate_schedule="constant*slanted_triangular",
        learning_rate_constant=0.003,
        learning_rate_warmup_steps=400,
    )
