import json
import os

import pytest

from t2t_lite.errors import Failure, UserError
from t2t_lite.files.resumable import ResumableFiles

MADE_FROM = {"checkpoint": "abc", "input": "def"}


def paths(folder, count=2):
    return [str(folder / f"out{n}") for n in range(count)]


def begin(folder, made_from=MADE_FROM):
    """Writes two lines, and a part of a third one that is not on record, as a killed command does."""
    files = ResumableFiles(paths(folder), made_from)
    files.write(["a\nü\n", "1\n2\n"], 2, {"seen": 7})
    files.close()
    with open(f"{os.path.realpath(paths(folder)[0])}.t2t_lite_incomplete", "ab") as file:
        file.write(b"half a li")


def test_what_was_killed_goes_on_after_the_record(tmp_path, caplog):
    begin(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [
        "out0.t2t_lite_incomplete",
        "out0.t2t_lite_incomplete.json",
        "out1.t2t_lite_incomplete",
    ]
    files = ResumableFiles(paths(tmp_path), MADE_FROM)
    assert (files.done, files.state) == (2, {"seen": 7})
    files.write(["c\n", "3\n"], 1)
    assert files.done == 3
    files.close()
    files = ResumableFiles(paths(tmp_path), MADE_FROM)
    assert (files.done, files.state) == (3, None)
    files.finish()
    files.close()
    assert sorted(os.listdir(tmp_path)) == ["out0", "out1"]
    assert (tmp_path / "out0").read_bytes() == "a\nü\nc\n".encode() and (tmp_path / "out1").read_bytes() == b"1\n2\n3\n"


def test_a_link_stays_and_its_file_is_resumed(tmp_path):
    (tmp_path / "out0").symlink_to("file")
    begin(tmp_path)
    assert "file.t2t_lite_incomplete.json" in os.listdir(tmp_path)
    files = ResumableFiles(paths(tmp_path), MADE_FROM)
    assert files.done == 2
    files.finish()
    assert (tmp_path / "out0").is_symlink() and (tmp_path / "file").read_bytes() == "a\nü\n".encode()
    assert sorted(os.listdir(tmp_path)) == ["file", "out0", "out1"]


def test_two_cannot_write_the_same_file(tmp_path):
    begin(tmp_path)
    first = ResumableFiles(paths(tmp_path), MADE_FROM)
    with pytest.raises(UserError, match=r"out0: another process is writing it\. Wait for it"):
        ResumableFiles(paths(tmp_path), MADE_FROM)
    first.write(["c\n", "3\n"], 1)
    first.finish()
    assert sorted(os.listdir(tmp_path)) == ["out0", "out1"]
    assert (tmp_path / "out0").read_bytes() == "a\nü\nc\n".encode()
    again = ResumableFiles(paths(tmp_path), MADE_FROM)
    again.close()
    assert sorted(os.listdir(tmp_path)) == ["out0", "out1"]


@pytest.mark.parametrize("change, word", [({"input": "other"}, "another input"), ({"beam": 4}, "another beam")])
def test_what_was_made_from_something_else_starts_anew(tmp_path, caplog, change, word):
    begin(tmp_path)
    files = ResumableFiles(paths(tmp_path), MADE_FROM | change)
    assert files.done == 0 and word in caplog.text
    files.finish()
    assert (tmp_path / "out0").read_bytes() == b""


@pytest.mark.parametrize("damage", ["record", "file", "gone"])
def test_damage_starts_anew(tmp_path, caplog, damage):
    begin(tmp_path)
    if damage == "record":
        (tmp_path / "out0.t2t_lite_incomplete.json").write_text("{")
    elif damage == "file":
        (tmp_path / "out1.t2t_lite_incomplete").write_bytes(b"1")
    else:
        (tmp_path / "out1.t2t_lite_incomplete").unlink()
    files = ResumableFiles(paths(tmp_path), MADE_FROM)
    assert files.done == 0 and "damaged" in caplog.text
    files.close()
    assert os.listdir(tmp_path) == []


def test_nothing_is_left_of_a_command_that_did_nothing(tmp_path):
    (tmp_path / "out0").write_text("before")
    ResumableFiles(paths(tmp_path), MADE_FROM).close()
    assert os.listdir(tmp_path) == ["out0"] and (tmp_path / "out0").read_text() == "before"


def test_the_record_names_what_it_was_made_from(tmp_path):
    begin(tmp_path)
    assert json.loads((tmp_path / "out0.t2t_lite_incomplete.json").read_text())["made_from"] == MADE_FROM


def test_a_full_disk_is_told():
    files = ResumableFiles(["/dev/full"], MADE_FROM)
    with pytest.raises(Failure, match="/dev/full: the disk is full"):
        files.write(["a\n"], 1)
    files.close()
