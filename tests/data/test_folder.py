"""What a data folder knows of the data in it: asked for, begun, finished, left over."""

import os

import pytest

from t2t_lite import files
from t2t_lite.data.folder import DataFolder
from t2t_lite.data.problem import DatasetSplit, Problem
from t2t_lite.errors import UserError
from t2t_lite.text.vocabulary import ByteTextEncoder


class Bytes(Problem):
    name = "bytes"
    dataset_splits = ({"split": DatasetSplit.TRAIN, "shards": 2}, {"split": DatasetSplit.EVAL, "shards": 1})

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        return [{"inputs": [n, 1], "targets": [n, 1]} for n in range(3, 9)]

    def feature_encoders(self, data_dir):
        return dict.fromkeys(("inputs", "targets"), ByteTextEncoder())


@pytest.fixture
def folder(tmp_path):
    return DataFolder(Bytes(), str(tmp_path))


def test_a_folder_is_empty_then_begun_then_finished(folder, tmp_path):
    assert folder.finished() is None and not folder.is_begun() and folder.leftovers() == []
    folder.begin()
    assert folder.is_begun() and folder.finished() is None
    folder.end()
    assert os.listdir(tmp_path) == []
    folder.problem.generate_data(folder.path, folder.path)
    assert folder.finished()["request"] == folder.request
    assert not folder.is_begun() and len(folder.leftovers()) == 3
    assert folder.records(DatasetSplit.EVAL).paths == folder.shards()[DatasetSplit.EVAL]
    assert {*folder.leftovers(), folder.manifest_path} == {str(path) for path in tmp_path.iterdir()}
    assert {*folder.outputs()} >= {*folder.leftovers(), folder.manifest_path, folder.begun_path}


def test_what_is_written_down_is_what_earlier_versions_wrote(folder, tmp_path):
    """Another format would make all data of users those of another request."""
    request = {
        "format": 2, "problem": "bytes", "random_seed": 429459, "max_cases": 0, "shards": {"train": 2, "eval": 1}
    }  # fmt: skip
    folder.begin()
    begun = files.read_json(str(tmp_path / "bytes-manifest.json.begun"))
    assert len(begun.pop("source")) == 64
    assert begun == {"request": request, "chunks": 3, "to_learn": []}
    folder.problem.generate_data(folder.path, folder.path)
    manifest = files.read_json(str(tmp_path / "bytes-manifest.json"))
    assert [*manifest] == ["version", "request", "splits", "vocabulary", "vocabulary_files"]
    assert manifest["request"] == request and manifest["vocabulary_files"] == []
    assert manifest["vocabulary"]["targets"]["class"] == "ByteTextEncoder"
    facts = manifest["splits"]["train"]
    assert facts | {"bytes": 0} == {
        "shards": 2, "examples": 6, "tokens": {"inputs": 12, "targets": 12}, "lengths": {"2": 6},
        "side_lengths": {"inputs": {"2": 6}, "targets": {"2": 6}}, "largest_id": {"inputs": 8, "targets": 8},
        "bytes": 0, "removed": {},
    }  # fmt: skip


def test_another_request_is_named_and_its_begun_data_are_replaced(folder, tmp_path, caplog):
    caplog.set_level("INFO", "t2t_lite")
    folder.begin()
    (tmp_path / "bytes-train-00000-of-00002").write_bytes(b"")
    again = DataFolder(Bytes(), folder.path)
    again.begin()
    assert len(again.leftovers()) == 1 and not caplog.records
    again.problem.random_seed = 7
    other = DataFolder(again.problem, folder.path)
    other.begin()
    assert other.leftovers() == [] and "replacing the unfinished output of a different request" in caplog.text
    other.problem.generate_data(folder.path, folder.path)
    with pytest.raises(UserError, match="contains bytes with random_seed = 7, but you requested random_seed = 429459"):
        folder.finished()


def test_a_vocabulary_that_is_used_again_is_told(folder, tmp_path, monkeypatch, caplog):
    paths = [str(tmp_path / f"vocab.{name}") for name in ("model", "vocab")]
    monkeypatch.setattr(Bytes, "learned_files", lambda self, data_dir: paths)
    caplog.set_level("INFO", "t2t_lite")
    folder.begin()
    assert not caplog.messages
    for path in paths:
        files.write_bytes(path, b"")
    folder.begin()  # goes on with what it has learned
    assert not caplog.messages
    files.remove(folder.begun_path)
    folder.begin()
    (message,) = caplog.messages
    assert message == f"{paths[0]}: already exists and is used. To learn a vocabulary from this text, delete it"


def test_a_setting_may_be_a_tuple(folder, tmp_path):
    """JSON knows only lists, so the tuple is read back as one."""
    folder.problem.generation_settings = lambda: {"languages": ("en", "de")}
    folder.begin()
    shard = tmp_path / "bytes-train-00000-of-00002"
    shard.write_bytes(b"")
    folder.begin()
    assert shard.exists()
    shard.unlink()
    folder.problem.generate_data(folder.path, folder.path)
    assert DataFolder(folder.problem, folder.path).finished()


def test_records_of_another_program_are_kept(folder, tmp_path):
    (tmp_path / "bytes-train-00000-of-00002").write_bytes(b"mine")
    with pytest.raises(UserError, match="bytes-train-00000-of-00002: t2t-datagen did not write these records"):
        folder.begin()
    assert files.list_files(folder.path, ".*") == [str(tmp_path / "bytes-train-00000-of-00002")]


def test_two_processes_do_not_write_the_same_data(folder):
    with (
        folder.lock(),
        pytest.raises(UserError, match="another t2t-datagen of bytes"),
        DataFolder(Bytes(), folder.path).lock(),
    ):
        pass
