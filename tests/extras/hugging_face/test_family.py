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
from tests.extras.hugging_face import family_rows as rows
from tests.extras.hugging_face.family_rows import CHANGED, ENCODER, MORE, SIZES, USUAL, WRITTEN, FamilyRow
from tests.extras.hugging_face.folders import config_of, configure
from tests.extras.hugging_face.gpt_folders import write_gpt
from tests.extras.hugging_face.in_and_out import assert_same_tensors, exported
from tests.extras.hugging_face.published_weights import weights_are_as_published

test_weights_are_as_published = weights_are_as_published("hugging_face")
# The defaults are those of Transformers' BertConfig, RobertaConfig, GPT2Config and MarianConfig.
test_families_are_as_published = rows.families_are_as_published(
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
            "gpt2", rows.GPT, rows.OUR_GPT,
            {**rows.MORE_OF_GPT, "n_inner": 88, "activation_function": "relu"},
            {**rows.OUR_MORE_OF_GPT, "filter_size": 88}, WRITTEN, "LMHeadModel",
        ),
        FamilyRow(
            "marian", rows.MARIAN | {"static_position_embeddings": True},
            rows.OUR_MARIAN
            | {
                "norm": "post", "norm_epsilon": 1e-5, "position": "sinusoidal", "position_layout": "marian",
                "max_position": 1024,
            },
            rows.MORE_OF_MARIAN, rows.OUR_MORE_OF_MARIAN,
            rows.MARIAN_WRITTEN
            | {
                "max_position_embeddings": 2048, "decoder_vocab_size": 53, "share_encoder_decoder_embeddings": True,
            },
            "MTModel",
        ),
    ]
)  # fmt: skip

NAMES = {"n_positions": "context", "n_layer": "depth", "attn_pdrop": "attention_rate"}
FAMILY = f"""
from t2t_lite import registry
from t2t_lite.extras.hugging_face import gpt2


@registry.register_family("a_toy")  # before GPT-2, which can represent the same models
def toy():
    family = gpt2.gpt2()
    return family._replace(
        class_prefix="Toy",
        fields=tuple(field._replace(name={NAMES}.get(field.name, field.name)) for field in family.fields),
        weights={{path: name.replace("transformer.h.", "toy.blocks.") for path, name in family.weights.items()}},
        prefix="toy.",
    )
"""


@pytest.mark.slow
def test_a_users_folder_adds_one_by_its_table(call_command, assert_user_error, tmp_path):
    """A GPT-2 by other names comes in, goes out, and is refused."""
    folder, tensors = write_gpt(tmp_path / "theirs", attn_pdrop=0.5)
    tensors = {name.replace("transformer.h.", "toy.blocks."): tensor for name, tensor in tensors.items()}
    write_tensors(f"{folder}/model.safetensors", tensors)
    settings = {NAMES.get(name, name): value for name, value in config_of(folder).items()} | {"model_type": "a_toy"}
    pathlib.Path(folder, "config.json").write_text(json.dumps(settings | {"depth": 0}))
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "__init__.py").write_text(FAMILY)
    importer = ["t2t-importer", "--from=hugging_face", "--path=theirs", "--output_dir=run"]
    assert_user_error(call_command(*importer), "model_type is 'a_toy'", "Expected one of ", " bert, ", " gpt2, ")
    try:
        refused = call_command(*importer, "--t2t_usr_dir=ours")
        assert_user_error(refused, "depth=0. Expected a number from 1 to 512")
        configure(folder, depth=settings["depth"])
        assert call_command(*importer, "--t2t_usr_dir=ours").stdout == "run/model.ckpt-0\n"
        generator = t2t_lite.load("run")
        assert generator.problem.name == "languagemodel_own" and "yes, Toy" in destinations_text(generator.model)
        assert_same_tensors(exported(generator, tmp_path / "out"), tensors)
    finally:
        registry.Registries.families.remove("a_toy")
    assert (settings | {"architectures": ["ToyLMHeadModel"]}).items() <= config_of(tmp_path / "out").items()


def test_one_is_read_without_the_others():
    """Also those of extras: their modules are found by the names in their sources."""
    program = (
        "import sys\nfrom t2t_lite import registry\n"
        "print(registry.family('gpt2').model_type, len(registry.list_families()) >= 4)\n"
        "print(*sorted({'bert', 'gpt2', 'marian', 'roberta'} & {n.rpartition('.')[2] for n in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "gpt2 True\ngpt2\n", done.stderr
