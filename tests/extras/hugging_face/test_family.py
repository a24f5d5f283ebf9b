"""Families of foreign models: their config.json, both ways, and what another family takes: one table."""

# Nearest tests of: extras/hugging_face/bert.py, extras/hugging_face/roberta.py, extras/hugging_face/gpt2.py
# Nearest tests of: extras/hugging_face/marian.py, extras/hugging_face/config_file.py

import json
import pathlib
import subprocess
import sys

import pytest

import t2t_lite
from t2t_lite import registry
from t2t_lite.export.formats import destinations_text
from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from tests.extras.hugging_face.family_rows import (
    CHANGED,
    ENCODER,
    MORE,
    SIZES,
    USUAL,
    WRITTEN,
    FamilyRow,
    families_are_as_published,
    weights_are_as_published,
)
from tests.extras.hugging_face.folders import config_of, configure, refuses_import, tensors_of
from tests.extras.hugging_face.gpt_folders import write_gpt
from tests.extras.hugging_face.in_and_out import assert_same_tensors, exported, loaded

_GPT2 = {"vocab_size": 53, "n_positions": 77, "n_embd": 24, "n_layer": 5, "n_head": 6}
_MARIAN = {
    "d_model": 24, "encoder_layers": 5, "encoder_attention_heads": 6, "encoder_ffn_dim": 88, "decoder_layers": 3,
    "decoder_attention_heads": 6, "decoder_ffn_dim": 88, "vocab_size": 53, "pad_token_id": 52, "eos_token_id": 1,
    "decoder_start_token_id": 52, "scale_embedding": True,
}  # fmt: skip
test_weights_are_as_published = weights_are_as_published(__file__)
# The defaults are those of Transformers' BertConfig, RobertaConfig, GPT2Config and MarianConfig.
test_families_are_as_published = families_are_as_published(
    [
        FamilyRow(
            "bert", SIZES, ENCODER | USUAL, MORE, CHANGED, WRITTEN,
            facts={"hparams_set": "bert_base", "prefix": "bert.", "sentence_problem": "next_sentence_own"},
        ),
        FamilyRow(
            "roberta", SIZES, ENCODER | USUAL, MORE, CHANGED, WRITTEN,
            facts={"hparams_set": "roberta_base", "prefix": "roberta.", "sentence_problem": None},
        ),
        FamilyRow(
            "gpt2", _GPT2,
            {
                "vocab_size": 53, "max_position": 77, "hidden_size": 24, "num_layers": 5, "num_heads": 6,
                "filter_size": 96, "activation": "gelu_tanh", "norm_epsilon": 1e-5, "norm": "pre",
                "attention_bias": True, "position": "learned", "scale_embeddings": False, "begin": "end",
            },
            {
                "n_inner": 88, "resid_pdrop": 0.2, "embd_pdrop": 0.2, "attn_pdrop": 0.3, "layer_norm_epsilon": 1e-6,
                "activation_function": "relu",
            },
            {
                "filter_size": 88, "dropout": 0.2, "attention_dropout": 0.3, "norm_epsilon": 1e-6,
                "activation": "relu",
            },
            WRITTEN, "LMHeadModel",
        ),
        FamilyRow(
            "marian", _MARIAN | {"static_position_embeddings": True, "activation_function": "swish"},
            {
                "norm": "post", "norm_epsilon": 1e-5, "position": "sinusoidal", "position_layout": "marian",
                "attention_bias": True, "softmax_bias": True, "tie_embeddings": True, "vocab_size": 53,
                "max_position": 1024, "activation": "swish", "filter_size": 88, "num_heads": 6, "hidden_size": 24,
                "num_decoder_layers": 3, "num_encoder_layers": 5,
            },
            {
                "max_position_embeddings": 77, "dropout": 0.2, "attention_dropout": 0.3, "activation_dropout": 0.4,
                "activation_function": "relu",
            },
            {
                "max_position": 77, "dropout": 0.2, "attention_dropout": 0.3, "relu_dropout": 0.4,
                "activation": "relu",
            },
            {
                **WRITTEN, "is_encoder_decoder": True, "bos_token_id": None, "forced_eos_token_id": None,
                "pad_token_id": 0, "decoder_start_token_id": 0, "max_position_embeddings": 2048,
                "decoder_vocab_size": 53, "share_encoder_decoder_embeddings": True,
            },
            "MTModel",
        ),
    ]
)  # fmt: skip

NAMES = {"n_positions": "context", "n_layer": "depth", "attn_pdrop": "attention_rate"}


@pytest.fixture
def toy(monkeypatch):
    """A GPT-2 by other names, the only family of language models."""
    gpt2 = registry.family("gpt2")
    toy = gpt2._replace(
        class_prefix="Toy",
        fields=tuple(field._replace(name=NAMES.get(field.name, field.name)) for field in gpt2.fields),
        weights={path: name.replace("transformer.h.", "toy.blocks.") for path, name in gpt2.weights.items()},
        prefix="toy.",
    )
    registry.register_family("toy")(lambda: toy)
    monkeypatch.setattr(registry, "list_families", lambda: ["toy"])
    yield
    registry.Registries.families.remove("toy")


@pytest.mark.slow
def test_it_comes_in_goes_out_and_is_refused_by_its_table(tmp_path, toy):
    folder, _ = write_gpt(tmp_path / "theirs", attn_pdrop=0.5)
    tensors = {name.replace("transformer.h.", "toy.blocks."): each for name, each in tensors_of(folder).items()}
    write_tensors(f"{folder}/model.safetensors", tensors)
    settings = {NAMES.get(name, name): value for name, value in config_of(folder).items()}
    pathlib.Path(folder, "config.json").write_text(json.dumps(settings | {"model_type": "toy", "depth": 0}))
    refuses_import(folder, tmp_path, "depth=0. Expected a number from 1 to 512")
    configure(folder, depth=settings["depth"])
    generator = loaded(folder, tmp_path / "run")
    assert "yes, Toy" in destinations_text(generator.model)
    assert_same_tensors(exported(generator, tmp_path / "out"), tensors)
    said = config_of(tmp_path / "out")
    assert (settings | {"model_type": "toy", "architectures": ["ToyLMHeadModel"]}).items() <= said.items()


FAMILY = """
from t2t_lite import registry
from t2t_lite.extras.hugging_face import gpt2


@registry.register_family("toy")
def toy():
    return gpt2.gpt2()._replace(class_prefix="Toy")
"""


def test_a_users_folder_adds_one_to_the_importer(call_command, assert_user_error, tmp_path):
    folder, _ = write_gpt(tmp_path / "theirs")
    configure(folder, model_type="toy")
    command = ["t2t-importer", "--from=hugging_face", "--path=theirs", "--output_dir=run"]
    assert_user_error(call_command(*command), "model_type is 'toy'", "Expected one of ", " bert, ", " gpt2, ")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "__init__.py").write_text(FAMILY)
    try:
        assert call_command(*command, "--t2t_usr_dir=ours").stdout == "run/model.ckpt-0\n"
    finally:
        registry.Registries.families.remove("toy")
    assert t2t_lite.load("run").problem.name == "languagemodel_own"


def test_one_is_read_without_the_others():
    """Also those of extras: their modules are found by the names in their sources."""
    program = (
        "import sys\nfrom t2t_lite import registry\n"
        "print(registry.family('gpt2').model_type, len(registry.list_families()) >= 4)\n"
        "print(*sorted({'bert', 'gpt2', 'marian', 'roberta'} & {n.rpartition('.')[2] for n in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "gpt2 True\ngpt2\n", done.stderr
