import os
import subprocess
import sys
import threading
import time

import pytest

from t2t_lite.errors import UserError
from t2t_lite.files.folders import held_lock, waiting_lock
from tests.processes import owned


def test_only_one_process_is_in(tmp_path):
    path = tmp_path / "a.lock"
    code = (
        f"from t2t_lite.files.folders import held_lock\nwith held_lock({str(path)!r}, 'd'): print(1, flush=1); input()"
    )
    with owned([sys.executable, "-c", code], 100, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"1\n"
        with (
            pytest.raises(UserError, match=rf"^d: another \(process {other.pid}\) is running in it"),
            held_lock(path_str := str(path), "d: another"),
        ):
            pass
        assert path.exists()
    with held_lock(path_str, "d: another"):  # the killed one left its file, and no lock
        assert path.read_text() == str(os.getpid())
    assert not path.exists()


def test_there_are_no_locks_in_a_bucket():
    with held_lock("gs://bucket/lock", "x"):
        pass


def test_a_lock_that_is_waited_for(tmp_path):
    path, entered = str(tmp_path / "lock"), []

    def wait():
        with waiting_lock(path):
            entered.append(time.monotonic())

    with waiting_lock(path):
        other = threading.Thread(target=wait, daemon=True)
        other.start()
        time.sleep(0.2)
        left = time.monotonic()
    other.join(10)
    assert entered and entered[0] >= left
