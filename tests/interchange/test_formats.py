"""Where a model can go: one table of rules, which the exporters obey."""

import json
import pathlib

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.export import export_hugging_face
from t2t_lite.interchange import formats
from t2t_lite.interchange.families import family_of
from t2t_lite.models.describe import shapes_only
from tests.export.models import random_transformer, translator_of
from tests.interchange.test_blenderbot import encoders
from tests.layers.kinds import RELATIVE, RESTRICTED

__all__ = ["encoders"]  # a fixture


def model_of(hparams):
    return shapes_only(registry.model("transformer"), hparams, 100)


@pytest.mark.parametrize(
    "hparams_set, answer",
    [
        ("transformer_base", "Blenderbot"),
        ("transformer_big", "Blenderbot"),
        ("transformer_tiny", "Blenderbot"),
        ("transformer_quickstart", "Blenderbot"),
        ("transformer_base_v1", "Marian"),
        ("transformer_big_v1", "Marian"),
    ],
)
def test_the_usual_sets_go_everywhere(hparams_set, answer):
    model = model_of(registry.hparams(hparams_set))
    assert all(not formats.obstacles(name, model) for name in formats.FORMATS)
    assert f"yes, {answer}" in formats.destinations_text(model)


def test_all_reasons_are_given():
    hparams = registry.hparams("transformer_base").parse("self_attention_type=restricted,ffn_activation=swiglu")
    hparams = hparams.parse("attention_neighborhood=9")
    lines = {line.split()[0]: line for line in formats.destinations_text(model_of(hparams)).splitlines()[1:]}
    assert list(lines) == list(formats.FORMATS)
    assert lines["saved_model"].endswith("yes")
    assert "self_attention=restricted(neighborhood=9) (hparam self_attention_type)" in lines["ctranslate2"]
    assert "swiglu" not in lines["ctranslate2"]
    assert (
        "neighborhood=9" in lines["hugging_face"]
        and "activation=swiglu (hparam ffn_activation)" in lines["hugging_face"]
    )


def test_vocabularies_that_are_known_count(encoders):
    model = random_transformer(258)
    assert "with a SentencePiece vocabulary" in formats.destinations_text(model)
    assert "ByteTextEncoder" in formats.destinations_text(model, translator_of().encoders)
    assert "SentencePiece" not in formats.destinations_text(model, encoders)


CASES = [
    {}, {"norm": "pre"}, {"norm": "pre", "norm_epsilon": 1e-6}, {"norm_epsilon": 1e-6}, {"position": "none"},
    {"norm": "pre", "position": "none"}, {"activation": "gelu"}, {"activation": "swiglu"}, {"key_dim": 4},
    {"key_dim": 3},
    {"self_attention": RELATIVE}, {"norm": "pre", "target_space_embedding": True}, {"tie_embeddings": False},
    {"norm": "pre", "tie_embeddings": False}, {"norm": "pre", "self_attention": RESTRICTED},
]  # fmt: skip


@pytest.mark.parametrize("options", CASES, ids=str)
def test_the_exporter_does_what_the_table_says(encoders, tmp_path, options):
    translator = translator_of(encoders, **options)
    found = formats.obstacles("hugging_face", translator.model, encoders)
    if not found:
        folder = export_hugging_face(translator, str(tmp_path / "hf"))
        kind = json.loads(pathlib.Path(folder, "config.json").read_text())["model_type"]
        assert kind == family_of(translator.model).model_type
        return
    with pytest.raises(UserError) as caught:
        export_hugging_face(translator, str(tmp_path / "hf"))
    assert all(text in str(caught.value) for text in found)
