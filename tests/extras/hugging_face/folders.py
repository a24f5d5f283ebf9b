"""What tests read of folders of Hugging Face, and how an import refuses them."""

import json
import pathlib

import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.hugging_face.hugging_face import import_hugging_face
from t2t_lite.extras.hugging_face.hugging_face_folder import read_tensors


def tensors_of(folder):
    path = pathlib.Path(folder, "model.safetensors")
    return read_tensors(path.read_bytes(), str(path))


def config_of(folder, name="config.json"):
    return json.loads(pathlib.Path(folder, name).read_text())


def refuses_import(folder, tmp_path, message, **options):
    """An import says what is wrong in one line, and writes nothing."""
    with pytest.raises(UserError, match=message) as caught:
        import_hugging_face(str(folder), str(tmp_path / "run"), **options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
