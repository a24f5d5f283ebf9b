"""The further families: their config.json both ways."""

# Nearest tests of: extras/families/bert_relatives.py, extras/families/gpt.py, extras/families/blenderbot.py

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from tests.extras.hugging_face import family_rows as rows
from tests.extras.hugging_face.family_rows import CHANGED, ENCODER, MORE, SIZES, USUAL, WRITTEN, FamilyRow
from tests.extras.hugging_face.published_weights import weights_are_as_published

_DISTILBERT = {
    "vocab_size": 53, "dim": 24, "n_layers": 5, "n_heads": 6, "hidden_dim": 88, "max_position_embeddings": 77
}  # fmt: skip
test_weights_are_as_published = weights_are_as_published("families")
# The defaults are those of Transformers' AlbertConfig, DistilBertConfig, ElectraConfig, ErnieConfig, XLMRobertaConfig,
# OpenAIGPTConfig and BlenderbotConfig.
test_families_are_as_published = rows.families_are_as_published(
    [
        FamilyRow(
            "albert", SIZES,
            ENCODER | USUAL | {"activation": "gelu_tanh", "embedding_size": 128, "num_hidden_groups": 1},
            MORE | {"embedding_size": 12, "num_hidden_groups": 3},
            CHANGED | {"embedding_size": 12, "num_hidden_groups": 3},
            WRITTEN | {"inner_group_num": 1, "classifier_dropout_prob": 0.2},
            facts={"hparams_set": "albert_base", "prefix": "albert.", "sentence_problem": "sentence_order_own"},
        ),
        FamilyRow(
            "distilbert", _DISTILBERT, ENCODER | USUAL | {"num_segments": 0, "pooler_activation": "relu"},
            {"dropout": 0.2, "attention_dropout": 0.3, "activation": "relu"},
            {"dropout": 0.2, "attention_dropout": 0.3, "activation": "relu"},
            WRITTEN | {"sinusoidal_pos_embds": False, "seq_classif_dropout": 0.2, "qa_dropout": 0.0},
            facts={"tokenizer": {"tokenizer_class": "DistilBertTokenizer"}, "hparams_set": "bert_base"},
        ),
        FamilyRow(
            "electra", SIZES, ENCODER | USUAL | {"embedding_size": 128, "pooler_activation": "gelu"},
            MORE | {"embedding_size": 12}, CHANGED | {"embedding_size": 12},
            WRITTEN | {"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"},
            facts={"sentence_problem": None, "prefix": "electra."},
        ),
        FamilyRow(
            "ernie", SIZES, ENCODER | USUAL | {"num_task_types": 0},
            MORE | {"use_task_id": True, "task_type_vocab_size": 4}, CHANGED | {"num_task_types": 4}, WRITTEN,
            facts={"hparams_set": "ernie_base", "sentence_problem": "next_sentence_own"},
        ),
        FamilyRow(
            "xlm-roberta", SIZES, ENCODER | USUAL, MORE, CHANGED, WRITTEN,
            facts={"hparams_set": "roberta_base", "vocabularies": (("xlm-roberta",), "XLM-RoBERTa")},
        ),
        FamilyRow(
            "openai-gpt", rows.GPT, rows.OUR_GPT | {"norm": "post"}, rows.MORE_OF_GPT | {"afn": "relu"},
            rows.OUR_MORE_OF_GPT, WRITTEN, "LMHeadModel",
        ),
        FamilyRow(
            "blenderbot", rows.MARIAN, rows.OUR_MARIAN | {"norm": "pre", "max_position": 128}, rows.MORE_OF_MARIAN,
            rows.OUR_MORE_OF_MARIAN,
            rows.MARIAN_WRITTEN | {"max_position_embeddings": 1024, "encoder_no_repeat_ngram_size": 0},
            "ForConditionalGeneration",
        ),
    ]
)  # fmt: skip


@pytest.mark.parametrize("name", ["albert", "electra"])
def test_embeddings_of_the_hidden_size_are_written_as_such(name):
    """Their packages would take 128 without the field."""
    family = registry.family(name)
    arguments = family.arguments(family.read("", {"architectures": [f"{family.class_prefix}Model"], **SIZES}))
    config = family.model(**arguments | {"embedding_size": None}).config
    assert family.written(config, f"{family.class_prefix}Model", {})["embedding_size"] == 24


@pytest.mark.parametrize(
    "name, config, message",
    [
        ("openai-gpt", rows.GPT | {"n_inner": 88}, "n_inner=88.*4 . n_embd"),
        ("albert", SIZES | {"num_hidden_groups": 6}, "num_hidden_groups=6.*from 1 to 5"),
        ("albert", SIZES | {"inner_group_num": 3}, "inner_group_num=3.*1"),
        ("electra", SIZES | {"summary_type": "last"}, "summary_type=last.*first"),
        ("electra", SIZES | {"num_attention_heads": 5}, "num_attention_heads=5.*hidden_size=24"),
    ],
)
def test_what_no_model_here_has_is_refused(name, config, message):
    family = registry.family(name)
    with pytest.raises(UserError, match=message):
        family.read("config.json", {"architectures": [f"{family.class_prefix}Model"], **config})
