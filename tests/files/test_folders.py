import os

import pytest

from t2t_lite.errors import Failure
from t2t_lite.files.folders import write_file, write_folder


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
