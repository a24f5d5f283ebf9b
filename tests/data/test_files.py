"""Reading folders through `tf.io.gfile`."""

import os

import pytest

from t2t_lite.data.files import list_files, plain_folder, plain_path, write_bytes


@pytest.mark.parametrize("folder", ["run", "run[1]", "run*", "run?", "run {a,b}", "run\\d"])
def test_no_character_of_a_folders_name_has_a_meaning(tmp_path, folder):
    for name in (folder, "run1", "runs"):
        (tmp_path / name).mkdir()
        for file in ("a-1.x", "a-10.x", "a-1.y"):
            (tmp_path / name / file).write_text("")
    found = list_files(str(tmp_path / folder), r"a-\d+\.x")
    assert found == [str(tmp_path / folder / "a-1.x"), str(tmp_path / folder / "a-10.x")]


def test_a_folder_that_is_none_holds_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    assert list_files(str(tmp_path / "file"), ".*") == list_files(str(tmp_path / "absent"), ".*") == []


@pytest.mark.parametrize("name", ["run [v1]", "run[1]", "run*", "run?", "run\\d"])
def test_tensorflow_reads_and_deletes_checkpoints_in_any_folder(tmp_path, name, monkeypatch):
    import tensorflow as tf

    monkeypatch.chdir(tmp_path)
    for folder in (name, "run1", "runs"):
        os.mkdir(folder)
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), plain_folder(folder), 2)
        for step in range(1, 4):
            manager.save(step)
        assert sorted(path for path in os.listdir(folder) if path.endswith(".index")) == [
            "ckpt-2.index",
            "ckpt-3.index",
        ]
        assert tf.train.load_checkpoint(plain_path(f"{folder}/ckpt-2")).get_variable_to_shape_map()
    assert plain_path("run1/ckpt-2") == "run1/ckpt-2"
    assert plain_path("gs://a/run[1]/ckpt-2") == "gs://a/run[1]/ckpt-2"


def test_a_users_file_that_ends_in_incomplete_stays(tmp_path):
    (tmp_path / "X.incomplete").write_text("mine")
    write_bytes(str(tmp_path / "X"), b"new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"X": "new", "X.incomplete": "mine"}
