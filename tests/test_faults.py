"""That what `tests.faults` lets go wrong goes wrong where it says, and nowhere else."""

import errno
import sys
import time

import pytest

from tests import faults


def test_the_clock_is_moved_by_the_test_and_by_sleep(clock):
    wall, steady = time.time(), time.monotonic()
    clock.advance(2.5)
    time.sleep(60)
    assert (time.time() - wall, time.monotonic() - steady, clock.sleeps) == (62.5, 62.5, [60])
    assert time.perf_counter() == time.monotonic() != time.time()


def test_one_call_fails():
    with faults.failing(time, "time", 2, OSError(errno.EIO, "broken")) as calls:
        time.time()
        with pytest.raises(OSError, match="broken"):
            time.time()
        time.time()
    assert len(calls) == 3
    time.time()
    assert len(calls) == 3


@pytest.mark.parametrize("mode, content", [("w", "abcdefghij"), ("wb", b"abcdefghij"), ("ab", b"abcdefghij")])
@pytest.mark.parametrize("room", [0, 1, 7, 9])
def test_a_disk_is_full_after_so_many_bytes(tmp_path, mode, content, room):
    path = tmp_path / "a"
    with faults.full_disk(room), pytest.raises(OSError, match=r"No space left.*a") as error:  # noqa: SIM117
        with open(path, mode) as file:
            file.write(content)
    assert error.value.errno == errno.ENOSPC and path.read_bytes() == b"abcdefghij"[:room]
    path.write_bytes(b"as before")


def test_the_room_of_a_disk_is_that_of_all_files(tmp_path):
    with faults.full_disk(11), pytest.raises(OSError, match=r"No space left.*c"):
        for name, text in {"a": "ñ23", "b": "€56", "c": "789"}.items():  # 4, 5 and 3 bytes
            with open(tmp_path / name, "w", encoding="utf-8") as file:
                file.write(text)
    assert [(tmp_path / name).read_bytes() for name in "abc"] == ["ñ23".encode(), "€56".encode(), b"78"]


def test_a_file_becomes_no_larger(tmp_path):
    with faults.limited_files(5), pytest.raises(OSError, match="File too large"):  # noqa: SIM117
        with open(tmp_path / "a", "wb") as file:
            file.write(b"0123456789")
    (tmp_path / "a").write_bytes(b"0123456789")


def two_lines():
    first = 1
    return first + 1


def test_ctrl_c_at_each_line():
    with faults.interrupted_at(None, sys.modules[__name__]) as lines:
        two_lines()
    start = two_lines.__code__.co_firstlineno
    assert [number - start for _, number in lines][:2] == [1, 2]
    for place in (1, 2):
        with pytest.raises(KeyboardInterrupt), faults.interrupted_at(place, sys.modules[__name__]) as lines:
            two_lines()
        assert len(lines) == place
