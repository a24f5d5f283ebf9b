"""That the processes of tests end, and waits for them."""

import pathlib
import signal
import subprocess

import pytest

from tests.processes import owned, python, wait_for

# Starts a process, says which, and is then killed.
_KILLED = """
import os, signal
from tests.processes import owned, wait_for
with owned(["sleep", "60"]) as process:
    wait_for(lambda: open(f"/proc/{process.pid}/comm").read() == "sleep\\n")
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_process_ends_with_a_killed_owner():
    done = python(_KILLED, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_for(lambda: not is_running(int(done.stdout)), 20)


def test_a_process_ends_with_the_test_that_fails():
    with pytest.raises(ZeroDivisionError), owned(["sleep", "60"]) as process:
        assert is_running(process.pid)
        _ = 1 / 0
    assert process.returncode == -signal.SIGKILL and not is_running(process.pid)


def test_what_reads_from_a_process_waits_no_longer_than_was_said():
    with owned(["sleep", "60"], 0.2, stdout=subprocess.PIPE) as process:
        assert process.stdout.read() == b"" and process.wait(20) == -signal.SIGKILL


def test_a_wait_has_an_end():
    assert wait_for(iter([0, "", "yes"]).__next__, 20) == "yes"
    with pytest.raises(AssertionError, match=r"not within 0 s: the server has refused"):
        wait_for(lambda: False, 0, why=lambda: "the server has refused it")
