"""Folders of Hugging Face in tests: what they hold, what is changed in them, and how an import refuses them."""

import json
import pathlib
import re
import shutil
import tempfile

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.extras.hugging_face.hugging_face import import_hugging_face
from t2t_lite.extras.hugging_face.hugging_face_folder import read_tensors, write_tensors
from t2t_lite.models.shapes_only import shapes_only
from t2t_lite.text.vocabulary import SentencePieceEncoder
from tests.decoding.runs import make_run


def tensors_of(folder):
    path = pathlib.Path(folder, "model.safetensors")
    return read_tensors(path.read_bytes(), str(path))


def config_of(folder, name="config.json"):
    return json.loads(pathlib.Path(folder, name).read_text())


def refuses_import(folder, tmp_path, words, **options):
    """An import says what is wrong in one line, with words in this order, divided by …, and writes nothing."""
    before = {*tmp_path.glob("*")}
    with pytest.raises(UserError, match=".*".join(map(re.escape, words.split("…")))) as caught:
        import_hugging_face(str(folder), str(tmp_path / "run"), **options)
    assert "\n" not in str(caught.value)
    assert {*tmp_path.glob("*")} == before


def configure(folder, file="config.json", **values):
    """Changes a folder's config.json or another JSON file, which need not exist."""
    path = pathlib.Path(folder, file)
    path.write_text(json.dumps((config_of(folder, file) if path.exists() else {}) | values))


def changed(folder, target, name, change):
    """Copies a folder, the bytes of a file changed; if change is None, without the file."""
    shutil.copytree(folder, target)
    path = pathlib.Path(target, name)
    data = path.read_bytes()
    path.unlink()
    if change:
        path.write_bytes(change(data))
    return str(target)


def json_with(**values):
    return lambda data: json.dumps({**json.loads(data), **values}).encode()


def tensors_with(change):
    def rewrite(data):
        tensors = read_tensors(data, "test")
        change(tensors)
        with tempfile.NamedTemporaryFile() as file:
            write_tensors(file.name, tensors)
            return file.read()

    return rewrite


def spoil(tensors, name, value):
    tensors[name] = np.array(tensors[name])
    tensors[name].flat[3] = value


def two_vocabularies(tmp_path_factory):
    """Two SentencePiece vocabularies."""
    found = {}
    for side, size in (("inputs", 320), ("targets", 310)):
        run = make_run(tmp_path_factory.mktemp(side), steps=(), vocab_size=size)
        found[side] = SentencePieceEncoder(str(next(run.glob("vocab.*.model"))))
    return found


def model_of(hparams):
    """A Transformer without weights."""
    return shapes_only(registry.model("transformer"), hparams, 100)
