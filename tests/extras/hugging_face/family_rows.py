"""The config.json of foreign families and our arguments for it, both ways, in odd numbers: one row per family."""

from typing import NamedTuple

import pytest

from t2t_lite import registry

SIZES = {
    "vocab_size": 53, "hidden_size": 24, "num_hidden_layers": 5, "num_attention_heads": 6, "intermediate_size": 88,
    "max_position_embeddings": 77,
}  # fmt: skip
ENCODER = {"vocab_size": 53, "hidden_size": 24, "num_layers": 5, "num_heads": 6, "filter_size": 88, "max_position": 77}
USUAL = {"activation": "gelu", "norm_epsilon": 1e-12, "num_segments": 2}
RATES = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3}
MORE = RATES | {"type_vocab_size": 3, "layer_norm_eps": 1e-6, "hidden_act": "relu"}
CHANGED = {
    "dropout": 0.2, "attention_dropout": 0.3, "num_segments": 3, "norm_epsilon": 1e-6, "activation": "relu"
}  # fmt: skip
WRITTEN = {"tie_word_embeddings": True, "dtype": "float32"}
GPT = {"vocab_size": 53, "n_positions": 77, "n_embd": 24, "n_layer": 5, "n_head": 6}
OUR_GPT = {
    "vocab_size": 53, "max_position": 77, "hidden_size": 24, "num_layers": 5, "num_heads": 6, "filter_size": 96,
    "activation": "gelu_tanh", "norm_epsilon": 1e-5, "norm": "pre", "attention_bias": True, "position": "learned",
    "scale_embeddings": False, "begin": "end",
}  # fmt: skip
MORE_OF_GPT = {"resid_pdrop": 0.2, "embd_pdrop": 0.2, "attn_pdrop": 0.3, "layer_norm_epsilon": 1e-6}
OUR_MORE_OF_GPT = {"dropout": 0.2, "attention_dropout": 0.3, "norm_epsilon": 1e-6, "activation": "relu"}
MARIAN = {
    "d_model": 24, "encoder_layers": 5, "encoder_attention_heads": 6, "encoder_ffn_dim": 88, "decoder_layers": 3,
    "decoder_attention_heads": 6, "decoder_ffn_dim": 88, "vocab_size": 53, "pad_token_id": 52, "eos_token_id": 1,
    "decoder_start_token_id": 52, "scale_embedding": True, "activation_function": "swish",
}  # fmt: skip
OUR_MARIAN = {
    "attention_bias": True, "softmax_bias": True, "tie_embeddings": True, "vocab_size": 53, "activation": "swish",
    "filter_size": 88, "num_heads": 6, "hidden_size": 24, "num_decoder_layers": 3, "num_encoder_layers": 5,
}  # fmt: skip
MORE_OF_MARIAN = {
    "max_position_embeddings": 77, "dropout": 0.2, "attention_dropout": 0.3, "activation_dropout": 0.4,
    "activation_function": "relu",
}  # fmt: skip
OUR_MORE_OF_MARIAN = {
    "max_position": 77, "dropout": 0.2, "attention_dropout": 0.3, "relu_dropout": 0.4, "activation": "relu"
}  # fmt: skip
MARIAN_WRITTEN = WRITTEN | {
    "is_encoder_decoder": True, "bos_token_id": None, "forced_eos_token_id": None, "pad_token_id": 0,
    "decoder_start_token_id": 0,
}  # fmt: skip


class FamilyRow(NamedTuple):
    """What a family's config.json says.

    Attributes:
        name: str, by which the family is registered.
        least: dict, the fields that a file must have.
        usual: dict, our arguments for these fields: sizes, and what the family's own package has as defaults.
        more: dict, further fields, with values that are not the defaults.
        changed: dict, our arguments for these, where they differ from `usual`.
        written: dict, the fields that are written in addition, or with other values than those of `least` and `more`.
        head: str, suffix of the class in the file.
        facts: dict, attributes of the Family.
    """

    name: str
    least: dict
    usual: dict
    more: dict
    changed: dict
    written: dict
    head: str = "ForMaskedLM"
    facts: dict = {}  # noqa: RUF012


def check_family(row):
    """Reads the least and more of a row, and writes the latter for a model that was made of it."""
    family = registry.family(row.name)
    name = {"architectures": [family.class_prefix + row.head]}
    assert family.arguments(family.read("config.json", name | row.least)) == row.usual
    arguments = family.arguments(family.read("config.json", name | row.least | row.more))
    assert arguments == row.usual | row.changed
    options = {"self_attention": {"type": "relative_segments"}} if row.name == "xlnet" else {}
    for argument in [each for each in arguments if "." in each]:
        options["self_attention"][argument.partition(".")[2]] = arguments.pop(argument)
    config = family.model(**arguments, **options).config
    expected = name | row.least | row.more | {"model_type": row.name} | row.written
    assert family.written(config, family.class_prefix + row.head, {}) == expected
    assert {fact: getattr(family, fact) for fact in row.facts} == row.facts


def families_are_as_published(rows):
    """Returns a test of some rows."""

    @pytest.mark.parametrize("row", rows, ids=lambda row: row.name)
    def test(row):
        check_family(row)

    return test
