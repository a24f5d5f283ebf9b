"""README.md of folders for other toolkits."""

import pathlib

import pytest
import yaml

from t2t_lite import registry
from t2t_lite.extras.hugging_face.hugging_face import export_hugging_face
from tests.export.models import translator_of
from tests.extras.hugging_face.conftest import encoders

__all__ = ["encoders"]  # a fixture


@pytest.mark.parametrize("license", ["", "MIT", 'My own: "free" # for all', "no"])
def test_the_head_of_the_card_is_yaml(encoders, tmp_path, license, monkeypatch):
    """Also for what YAML takes for something else: the language `no`, a licence with a colon."""
    translator = translator_of({"inputs": encoders["inputs"], "targets": encoders["inputs"]})
    problem = registry.problem("translate_own")
    monkeypatch.setattr(type(problem), "languages", ("no", "de"))
    translator.problem = problem
    folder = export_hugging_face(translator, str(tmp_path / "hf"), license=license)
    _, head, body = pathlib.Path(folder, "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert "| class | MarianMTModel |" in body
    assert yaml.safe_load(head) == {
        "license": license or "unknown",
        "language": ["no", "de"],
        "library_name": "transformers",
        "pipeline_tag": "translation",
        "tags": ["translation", "transformers", "t2t_lite"],
    }
