"""Folders appear when they are complete, and locks let one process in."""

# Nearest tests of: t2t_lite/files/__init__.py

import errno
import fcntl
import logging
import os
import subprocess
import sys

import pytest

from t2t_lite.errors import Failure, UserError
from t2t_lite.files import folders
from t2t_lite.files.folders import (
    check_kinds,
    check_new,
    held_lock,
    new_folder,
    restored_on_failure,
    write_file,
    write_folder,
)
from tests import faults
from tests.processes import owned, python


def write_two(folder):
    for name, data in (("a", b"12"), ("b.x", b"345")):
        write_file(folder, name, data)


def test_it_appears_when_all_is_written(tmp_path):
    path = tmp_path / "new" / "folder"

    def write(folder):
        write_file(folder, "a", b"1")
        assert not path.exists()

    assert write_folder(f"{path}/", write) == str(path)
    assert os.listdir(tmp_path / "new") == ["folder"] and (path / "a").read_bytes() == b"1"


@pytest.mark.parametrize("made", ["", "a", "a.t2t_lite_incomplete/old", "both"])
def test_an_empty_folder_and_leftovers_of_a_killed_command_are_no_hindrance(tmp_path, made):
    for name in ("a", "a.t2t_lite_incomplete/old") if made == "both" else (made,):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    check_new(tmp_path / "a")
    write_folder(str(tmp_path / "a"), write_two)
    assert os.listdir(tmp_path) == ["a"] and sorted(os.listdir(tmp_path / "a")) == ["a", "b.x"]


def test_a_link_to_an_empty_folder_is_kept(tmp_path):
    link, folder = tmp_path / "link", tmp_path / "other_disk" / "folder"
    folder.mkdir(parents=True)
    link.symlink_to(folder)
    assert write_folder(f"{link}/", write_two) == str(link)
    assert link.is_symlink() and sorted(os.listdir(folder)) == ["a", "b.x"]
    assert os.listdir(folder.parent) == ["folder"]


def test_a_folder_that_can_be_made_is_not_left_and_others_are_refused(tmp_path):
    check_new(tmp_path / "new")
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("")
    for path, words in ((tmp_path, "already contains files"), (tmp_path / "file", "is a file")):
        with pytest.raises(UserError, match=f"{path}: {words}"):
            check_new(path)


OF_TENSORFLOW = type("OpError", (Exception,), {"__module__": "tensorflow.python.framework.errors_impl"})


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (OSError(28, "No space left on device"), Failure),
        (OF_TENSORFLOW("out of quota"), Failure),
        (KeyError("x"), KeyError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
    ids=str,
)
def test_a_failure_leaves_nothing(tmp_path, error, seen):
    def write(folder):
        write_file(folder, "a", b"1")
        raise error

    with pytest.raises(seen):
        write_folder(str(tmp_path / "folder"), write)
    assert os.listdir(tmp_path) == []
    for call in (1, 2):
        with pytest.raises(OSError, match="odd"), faults.failing(folders, "write_file", call, OSError("odd")):
            restored(tmp_path / "new")
        assert os.listdir(tmp_path) == []


def test_a_folder_is_written_by_one_process(tmp_path):
    path, was_written = tmp_path / "export", []
    with new_folder(str(path)) as folder:
        write_two(folder)
        code = "import sys; from t2t_lite.files.folders import new_folder; new_folder(sys.argv[1]).__enter__()"
        other = python(code, str(path))
        assert f"{path}: another process (process {os.getpid()}) is using this folder" in other.stderr
    assert sorted(os.listdir(path)) == ["a", "b.x"] and os.listdir(tmp_path) == ["export"]
    with pytest.raises(UserError, match="already contains files"), new_folder(str(path)):
        was_written.append(1)
    assert not was_written


def restored(path):
    with restored_on_failure(str(path)):
        path.mkdir(exist_ok=True)
        for name in ("one", "two"):
            folders.write_file(str(path), name, b"new")


def test_after_a_failure_a_folder_has_what_it_had(tmp_path):
    (tmp_path / "mine").write_text("old")
    with pytest.raises(KeyboardInterrupt), faults.failing(folders, "write_file", 2):
        restored(tmp_path)
    assert os.listdir(tmp_path) == ["mine"] and (tmp_path / "mine").read_text() == "old"
    restored(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["mine", "one", "two"]


@pytest.mark.parametrize(("is_new", "is_filled"), [(True, False), (True, True), (False, False)])
def test_a_new_folder_that_an_error_leaves_empty_is_removed(tmp_path, is_new, is_filled):
    folder = tmp_path / "data"
    if not is_new:
        folder.mkdir()
    with pytest.raises(KeyboardInterrupt), folders.held_lock(str(folder / "lock"), "data"):
        assert folder.is_dir()
        if is_filled:
            (folder / "chunk").touch()
        raise KeyboardInterrupt
    assert folder.exists() == (is_filled or not is_new)


def test_an_error_leaves_no_parent_of_a_new_folder(tmp_path):
    with pytest.raises(KeyboardInterrupt), new_folder(str(tmp_path / "export" / "1")) as folder:
        write_two(folder)
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_ctrl_c_at_any_line_leaves_no_half_of_a_folder(tmp_path):
    with faults.interrupted_at(0, folders) as lines:
        write_folder(str(tmp_path / "0"), write_two)
    for line in range(1, len(lines) + 1):
        path = tmp_path / str(line)
        with pytest.raises(KeyboardInterrupt), faults.interrupted_at(line, folders):
            write_folder(str(path), write_two)
        assert not path.exists() or len(os.listdir(path)) in (0, 2), lines[line - 1]
        if not path.exists() or not os.listdir(path):
            write_folder(str(path), write_two)
        assert sorted(os.listdir(path)) == ["a", "b.x"]
    left = [name for name in os.listdir(tmp_path) if not name.endswith(".lock")]  # locks that nobody holds
    assert len(left) == len(lines) + 1, "nothing unfinished is left"


def test_folders_in_the_places_of_files_and_files_in_those_of_folders_are_named(tmp_path):
    folder, patterns = str(tmp_path / "run"), (["log", "ckpt-[0-9]+"], ["eval"])
    check_kinds(folder, *patterns)
    for name in ("ckpt-1_temp", "eval", "ckpt"):
        (tmp_path / "run" / name).mkdir(parents=True)
    (tmp_path / "run" / "log").write_text("")
    check_kinds(folder, *patterns)
    check_kinds(folder, ["nothing"])
    (tmp_path / "run" / "ckpt-20").mkdir()
    for path, arguments, words in (
        (folder, patterns, "run/ckpt-20: is a folder"),
        (folder, (["nothing"], ["log"]), "run/log: is a file"),
        (f"{folder}/log", (["nothing"],), "log: a file is in the way"),
    ):
        with pytest.raises(UserError, match=words):
            check_kinds(path, *arguments)


def test_only_one_process_is_in(tmp_path):
    path = tmp_path / "a.lock"
    code = (
        f"from t2t_lite.files.folders import held_lock\nwith held_lock({str(path)!r}, 'd'): print(1, flush=1); input()"
    )
    with owned([sys.executable, "-c", code], 100, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"1\n"
        with (
            pytest.raises(UserError, match=rf"^d: another \(process {other.pid}\)"),
            held_lock(str(path), "d: another"),
        ):
            pass
        assert path.exists()
    with held_lock(str(path), "d: another"):  # the killed one left its file, and no lock
        assert path.read_text() == str(os.getpid())
    assert not path.exists()
    with pytest.raises(KeyError), held_lock(str(path), "d: another"):
        raise KeyError
    assert not path.exists()


def test_a_lock_on_a_full_disk_is_removed(tmp_path):
    path = tmp_path / "a.lock"
    with faults.full_disk(0), pytest.raises(Failure, match=rf"^{path}: the disk is full"), held_lock(str(path), "d"):
        pass
    assert not path.exists()


def test_a_lock_on_a_file_that_its_owner_has_just_removed_is_taken_again(tmp_path, monkeypatch):
    path, lock_file, calls = tmp_path / "a.lock", folders.lock_file, []

    def removed_once(path):
        lock = lock_file(path)
        calls.append(path)
        if len(calls) == 1:
            os.remove(path)
        return lock

    monkeypatch.setattr(folders, "lock_file", removed_once)
    with held_lock(str(path), "d: another"):
        assert path.read_text() == str(os.getpid()) and len(calls) == 2


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])  # Lustre, NFS, FUSE
def test_a_file_system_without_locks_is_used_with_one_warning(tmp_path, monkeypatch, caplog, code):
    def unsupported(file, operation):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    for _ in range(2):
        with caplog.at_level(logging.WARNING), held_lock(f"{tmp_path}/a.lock", "d: another"):
            assert os.listdir(tmp_path) == ["a.lock"]
        assert os.listdir(tmp_path) == []
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [
        f"{tmp_path}: this file system does not support locks"
    ]
    write_folder(tmp_path / "new", write_two)
    assert sorted(os.listdir(tmp_path / "new")) == ["a", "b.x"]


def test_there_are_no_locks_in_a_bucket():
    with held_lock("gs://bucket/lock", "x"):
        pass
