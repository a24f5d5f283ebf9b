"""Folders are listed as they are named, and an output never replaces an input."""

import os
import subprocess
import sys

import pytest

from t2t_lite.errors import UserError
from t2t_lite.files import check_outputs, find_files, list_files, plain_folder, plain_path, write_bytes


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


def test_files_at_any_depth_without_hidden_ones_and_each_once(tmp_path):
    for name in ("b/c/1.X", "b/2.x", "b/2.y", "a.x", ".hidden/3.x", "b/.4.x"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "5.x").write_text("")
    for name, target in {"b/c/up": "in/b", "b/self": "in/b/self", "out": "other", "b/again": "other"}.items():
        (tmp_path / "in" / name).symlink_to(tmp_path / target)
    found = find_files(str(tmp_path / "in"), (".x",))
    assert found == [str(tmp_path / "in" / name) for name in ("a.x", "b/2.x", "b/again/5.x", "b/c/1.X", "out/5.x")]


def test_folders_that_link_to_each_other_are_read_once_on_each_way(tmp_path):
    for name in "ab":
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "1.x").write_text("")
    (tmp_path / "in/a/to_b").symlink_to(tmp_path / "in/b")
    (tmp_path / "in/b/to_a").symlink_to(tmp_path / "in/a")
    found = find_files(str(tmp_path / "in"), (".x",))
    assert found == [str(tmp_path / "in" / name) for name in ("a/1.x", "a/to_b/1.x", "b/1.x", "b/to_a/1.x")]


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


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A text under many names: `in`, and links to it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_text("x\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("in")
    (tmp_path / "to_folder").symlink_to("folder")
    (tmp_path / "hard").hardlink_to(tmp_path / "in")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def test_an_output_that_is_an_input_is_refused(texts):
    for out in ("in", "./in", "folder/../in", "link", "hard", str(texts / "in"), "to_folder/../in"):
        with pytest.raises(UserError, match="would overwrite --source=in, an input"):
            check_outputs({"--source": "in", "--reference": ["", None]}, {"--to": out})
        with pytest.raises(UserError, match="would overwrite --refs=in"):
            check_outputs({"--source": "other", "--refs": ["more", "in"]}, {"--plot": "plot", "--to": out})
    with pytest.raises(UserError, match=r"--to=out, which is written through out.t2t_lite_incomplete, would overwrite"):
        check_outputs({"--source": "out.t2t_lite_incomplete"}, {"--to": "out"})
    with pytest.raises(UserError, match="would overwrite --source=new/"):
        check_outputs({"--source": "new/"}, {"--to": "./new"})
    assert (texts / "in").read_text() == "x\n"


def test_an_output_that_is_a_folder_is_refused(texts):
    for out in ("folder", "folder/", "to_folder"):
        with pytest.raises(UserError, match=rf"^{out}: is a folder\. Expected a file to write"):
            check_outputs({}, {"--to": out})


def test_two_outputs_of_one_name_are_refused(texts):
    for one, other in (
        ("out", "./out"),
        ("link", "hard"),
        ("folder/x", "to_folder/x"),
        ("x", "x.t2t_lite_incomplete.json"),
    ):
        with pytest.raises(UserError, match=f"is --to={one} too. Expected another file for each"):
            check_outputs({}, {"--to": one, "--alignments": other})
    with pytest.raises(UserError, match=r"too\. Expected another"):
        check_outputs({}, {"--to": ["a", "b", "a"]})


def test_what_can_be_used_more_than_once(texts):
    check_outputs({"--source": "in", "--reference": "in"}, {"--to": "out", "--alignments": "alignments"})
    check_outputs({"--source": "pipe"}, {"--to": "pipe"})
    check_outputs({"--source": "-"}, {"--to": "-"})
    check_outputs({}, {"--to": "/dev/null", "--alignments": "/dev/null"})
    check_outputs({"--source": None}, {"--to": None, "--alignments": ""})


def test_outputs_in_a_working_folder_that_is_deleted(tmp_path, monkeypatch):
    (tmp_path / "in").write_text("a")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    check_outputs({"--source": str(tmp_path / "in")}, {"--to": "-", "--alignments": str(tmp_path / "out")})
    with pytest.raises(UserError, match=r"^out: cannot be written: its folder does not exist"):
        check_outputs({}, {"--to": "out"})


def test_standard_streams_that_are_files(texts):
    """As in `< in` with an output that is in; the shell opened it already."""
    program = (
        "import sys; from t2t_lite.files import check_outputs; check_outputs(*map(eval, sys.argv[1:]));"
    )  # fmt: skip
    with open("in") as stdin, open("out", "w") as stdout:
        command = [sys.executable, "-c", program]
        options = {
            "stdin": stdin,
            "stdout": stdout,
            "stderr": subprocess.PIPE,
            "text": True,
            "cwd": texts,
            "timeout": 60,
        }
        done = subprocess.run([*command, "{'--source': '-'}", "{'--to': 'link'}"], **options)
        assert "would overwrite --source=-, an input" in done.stderr
        done = subprocess.run([*command, "{'--source': 'out'}", "{'--to': '-'}"], **options)
        assert "would overwrite --source=out, an input" in done.stderr
        done = subprocess.run([*command, "{'--source': '-'}", "{'--to': 'other'}"], **options)
        assert done.stderr == ""
