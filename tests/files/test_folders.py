import os

import pytest

from t2t_lite.errors import Failure, UserError
from t2t_lite.files.folders import check_kinds, write_file, write_folder


def test_it_appears_when_all_is_written(tmp_path):
    path = tmp_path / "new" / "folder"

    def write(folder):
        write_file(folder, "a", b"1")
        assert not path.exists()

    assert write_folder(f"{path}/", write) == str(path)
    assert os.listdir(tmp_path / "new") == ["folder"] and (path / "a").read_bytes() == b"1"


def test_an_empty_folder_and_leftovers_of_a_killed_command_are_no_hindrance(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a.t2t_lite_incomplete").mkdir()
    (tmp_path / "a.t2t_lite_incomplete" / "old").write_text("")
    write_folder(str(tmp_path / "a"), lambda folder: write_file(folder, "new", b""))
    assert os.listdir(tmp_path) == ["a"] and os.listdir(tmp_path / "a") == ["new"]


@pytest.mark.parametrize("error, seen", [(OSError(28, "No space left on device"), Failure), (KeyError("x"), KeyError)])
def test_a_failure_leaves_nothing(tmp_path, error, seen):
    def write(folder):
        write_file(folder, "a", b"1")
        raise error

    with pytest.raises(seen):
        write_folder(str(tmp_path / "folder"), write)
    assert os.listdir(tmp_path) == []


def test_folders_in_the_places_of_files_and_files_in_those_of_folders_are_named(tmp_path):
    folder, patterns = str(tmp_path / "run"), (["log", "ckpt-[0-9]+"], ["eval"])
    check_kinds(folder, *patterns)
    for name in ("ckpt-1_temp", "eval", "ckpt"):
        (tmp_path / "run" / name).mkdir(parents=True)
    (tmp_path / "run" / "log").write_text("")
    check_kinds(folder, *patterns)
    check_kinds(folder, ["nothing"])
    (tmp_path / "run" / "ckpt-20").mkdir()
    with pytest.raises(UserError, match=r"run/ckpt-20: is a folder\. Expected a file, which the command will write"):
        check_kinds(folder, *patterns)
    with pytest.raises(UserError, match=r"run/log: is a file\. Expected a folder, to which the command will write"):
        check_kinds(folder, ["nothing"], ["log"])
    with pytest.raises(UserError, match=r"log: is a file\. Expected a folder\. Rename it"):
        check_kinds(f"{folder}/log", ["nothing"])
