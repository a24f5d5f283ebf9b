"""Named pipes are waited for, but not for ever."""

import os
import threading
import time

import pytest

from t2t_lite.errors import UserError
from t2t_lite.files import pipes
from t2t_lite.files.pipes import descriptor, written_path
from tests.processes import owned


@pytest.fixture
def pipe(tmp_path, monkeypatch):
    monkeypatch.setattr(pipes, "SECONDS_FOR_THE_OTHER_END", 0.4)
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


@pytest.mark.parametrize(("mode", "does", "did"), [("rb", "writes to", "wrote to"), ("wb", "reads from", "read from")])
def test_a_pipe_without_another_end(pipe, caplog, mode, does, did):
    caplog.set_level("INFO", "t2t_lite")
    threads, begin = threading.active_count(), time.monotonic()
    with pytest.raises(UserError, match=f"pipe: .* {did} .* 0.4 s"):
        pipes.open_device(pipe, mode)
    assert 0.3 < time.monotonic() - begin < 10
    assert f"pipe: waiting at most 0.4 s for a command that {does} this pipe" in caplog.text
    assert threading.active_count() == threads, "nothing goes on waiting"


def test_a_pipe_whose_other_end_comes_later(pipe):
    def write():
        with open(pipe, "wb") as file:
            file.write(b"a\nb")

    timer = threading.Timer(0.2, write)
    timer.daemon = True
    timer.start()
    with pipes.open_device(pipe, "rb") as file:
        assert file.read() == b"a\nb"
    timer.join(20)


def test_no_permission_is_told_at_once(pipe, monkeypatch):
    def refuse(path, mode):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(UserError, match="pipe: no permission to read"):
        pipes.open_device(pipe, "rb")


def test_is_device(pipe, tmp_path):
    assert pipes.is_device(pipe) and pipes.is_device("/dev/null")
    assert not any(map(pipes.is_device, (str(tmp_path), __file__, "absent", "gs://bucket/x", "")))
    with open(tmp_path / "file", "wb") as file:
        assert pipes.is_device(f"/dev/fd/{file.fileno()}")


def test_what_is_open_is_written_from_where_it_stands(tmp_path):
    """As in `{ echo first; t2t-decoder --decode_to_file=/dev/stdout; echo last; } > file`."""
    with open(tmp_path / "file", "wb", buffering=0) as file:
        file.write(b"first\n")
        with pipes.open_device(f"/dev/fd/{file.fileno()}", "wb") as again:
            again.write(b"second\n")
        file.write(b"last\n")
    assert (tmp_path / "file").read_bytes() == b"first\nsecond\nlast\n"
    with open(tmp_path / "file", "rb") as file, pytest.raises(UserError, match="write"):
        pipes.open_device(f"/dev/fd/{file.fileno()}", "wb")
    assert (tmp_path / "file").read_bytes() == b"first\nsecond\nlast\n"


def test_what_another_process_has_open_is_added_to(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        file.write(b"first\n")
        file.flush()
        command = ["sleep", "60"]
        with owned(command, stdout=file) as process, pipes.open_device(f"/proc/{process.pid}/fd/1", "wb") as again:
            again.write(b"second\n")
    assert (tmp_path / "file").read_bytes() == b"first\nsecond\n"


def test_descriptors_under_all_their_names(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        number = file.fileno()
        (tmp_path / "link").symlink_to(f"/dev/fd/{number}")
        (tmp_path / "again").symlink_to("link")
        names = [f"/dev/fd/{number}", f"/proc/self/fd/{number}", f"/proc/{os.getpid()}/fd/{number}"]
        for name in [*names, tmp_path / "link", tmp_path / "again"]:
            assert descriptor(str(name)) == (os.getpid(), number)
            assert written_path(str(name)) == str(name)
    assert descriptor("/dev/stdout") == (os.getpid(), 1)


def test_other_links_lead_to_files(tmp_path):
    (tmp_path / "file").write_text("a")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "to be made").symlink_to("later")
    (tmp_path / "loop").symlink_to("loop")
    for name, target in (("file", "file"), ("link", "file"), ("to be made", "later"), ("loop", "loop")):
        assert descriptor(str(tmp_path / name)) is None
        assert written_path(str(tmp_path / name)) == str(tmp_path / target)
    assert [*map(written_path, ("absent", "gs://bucket/x", ""))] == ["absent", "gs://bucket/x", ""]
