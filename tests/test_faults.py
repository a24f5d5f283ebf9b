"""That what `tests.faults` lets go wrong goes wrong where it says, and nowhere else."""

import errno
import sys

import pytest

from tests import faults


@pytest.mark.parametrize("mode, content", [("w", "abcdefghij"), ("wb", b"abcdefghij"), ("ab", b"abcdefghij")])
@pytest.mark.parametrize("room", [0, 1, 7, 9])
def test_a_disk_is_full_after_so_many_bytes(tmp_path, mode, content, room):
    path = tmp_path / "a"
    with faults.full_disk(room), pytest.raises(OSError, match=r"No space left.*a") as error:  # noqa: SIM117
        with open(path, mode) as file:
            file.write(content)
    assert error.value.errno == errno.ENOSPC and path.read_bytes() == b"abcdefghij"[:room]
    path.write_bytes(b"as before")


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
