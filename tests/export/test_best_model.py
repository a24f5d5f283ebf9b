"""Which model of a run t2t-trainer --export_saved_model exports, and when."""
# Nearest tests of: t2t_lite/export/saved_model.py

import os
import types

import pytest

from t2t_lite.export import saved_model
from t2t_lite.runs.checkpoint_files import checkpoint_step, newest_checkpoint


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run whose newest checkpoint is not its best; an export is an empty file, and its step is noted."""
    for name in ("model.ckpt-10", "model.ckpt-20", "best/model.ckpt-10"):
        path = tmp_path / f"{name}.index"
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
        os.utime(path, (1000, 1000))
    exported = []

    def load(paths):
        (path,) = paths
        path = newest_checkpoint(path) if os.path.isdir(path) else path
        return types.SimpleNamespace(runs=[types.SimpleNamespace(path=path, step=checkpoint_step(path))])

    def export(answerer, folder):
        path = os.path.join(folder, str(1 + len(exported)))
        os.makedirs(path)
        with open(os.path.join(path, "saved_model.pb"), "wb"):
            exported.append(answerer.runs[0].step)
        return path

    monkeypatch.setattr(saved_model, "load", load)
    monkeypatch.setattr(saved_model, "export_saved_model", export)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    return tmp_path, exported


def test_the_best_model_is_exported_once(run):
    folder, exported = run
    assert saved_model.export_best(str(folder)) == str(folder / "export" / "best" / "1")
    assert saved_model.export_best(str(folder)) is None
    assert exported == [10]
    os.utime(folder / "best" / "model.ckpt-10.index", (5e9, 5e9))  # it was trained again
    assert saved_model.export_best(str(folder)) == str(folder / "export" / "best" / "2")


def test_without_evaluations_it_is_the_newest(run):
    folder, exported = run
    (folder / "best" / "model.ckpt-10.index").unlink()
    saved_model.export_best(str(folder))
    assert exported == [20]


def test_of_several_machines_none_exports(run, monkeypatch, caplog):
    folder, exported = run
    monkeypatch.setenv("TF_CONFIG", "{}")
    assert saved_model.export_best(str(folder)) is None and not exported
    assert f"t2t-exporter --output_dir={folder}/best" in caplog.text
