"""Several processes of a search: the GPUs of each, and what they do."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from t2t_lite.errors import Failure, UserError
from t2t_lite.extras.autotune.workers import run_alone, run_workers, shares_of_gpus


def test_each_worker_has_gpus_of_its_own():
    assert shares_of_gpus(2, 2, ["0", "1", "2", "3"]) == ["0,1", "2,3"]
    assert shares_of_gpus(3, 1, ["4", "5", "7"]) == ["4", "5", "7"]
    assert shares_of_gpus(3, 1, []) == [None] * 3, "they share the cores"
    assert shares_of_gpus(2, 0, ["0"]) == [None] * 2
    with pytest.raises(UserError, match=r"needs 3 GPUs, 1 per trial, but 2 are visible. Expected at most 2"):
        shares_of_gpus(3, 1, ["0", "1"])


def test_workers_run_at_once_and_log(tmp_path):
    """Each waits for the other's file: one after the other they would fail."""
    code = (
        "import os, pathlib, time\n"
        "me = os.environ['CUDA_VISIBLE_DEVICES']\n"
        "pathlib.Path(me).touch()\n"
        "end = time.monotonic() + 60\n"
        "while not all(pathlib.Path(name).exists() for name in '01'):\n"
        "    assert time.monotonic() < end\n"
        "    time.sleep(0.01)\n"
        "print('trained', me)\n"
    )
    program = [sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r})\n{code}"]
    assert run_workers(program, ["0", "1"], str(tmp_path))
    assert [(tmp_path / f"worker-{n}.log").read_text() for n in (1, 2)] == ["trained 0\n", "trained 1\n"]


@pytest.mark.parametrize(("status", "kind"), [(1, Failure), (2, UserError)])
def test_a_worker_that_fails_is_named(tmp_path, status, kind):
    program = [sys.executable, "-c", f"import sys; print('t2t-trainer: error: no data'); sys.exit({status})"]
    with pytest.raises(kind, match=f"worker-1.log: .* exit status {status}: t2t-trainer: error: no data"):
        run_workers(program, [None], str(tmp_path))


def test_a_worker_that_fails_in_silence(tmp_path):
    (tmp_path / "worker-1.log").write_text(" \n")  # of an earlier search, to which is appended
    program = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    with pytest.raises(Failure, match=r"worker-1.log: .* exit status -9: no output"):
        run_workers(program, [None], str(tmp_path))
    assert (tmp_path / "worker-1.log").read_text() == " \n"
    assert run_alone(program) == 128 + 9, "as in shells"
    assert run_alone([sys.executable, "-c", "raise SystemExit(7)"]) == 7


STOPS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("saved") or 3))
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""


def test_a_signal_is_passed_on_and_waited_for(tmp_path):
    """The worker sends it to this process, which lives on and lets the worker save."""
    assert not run_workers([sys.executable, "-c", STOPS], [None], str(tmp_path))
    assert (tmp_path / "worker-1.log").read_text() == "saved\n"
    assert run_alone([sys.executable, "-c", STOPS]) == 3


DEAF = """
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(f"pid-{os.getpid()}").touch()
while True:
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(0.1)
"""


@pytest.mark.parametrize("how", ["run_workers(program, [None, None], '.')", "run_alone(program)"])
def test_a_second_signal_ends_the_workers_too(tmp_path, how):
    """They are deaf to it, and send it again and again."""
    program = (
        f"import sys; from t2t_lite.extras.autotune.workers import *; program = [sys.executable, '-c', {DEAF!r}]; {how}"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, timeout=60)
    assert done.returncode == -signal.SIGTERM
    numbers = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
    assert numbers
    for number in numbers:
        for _ in range(100):
            if not is_running(number):
                break
            time.sleep(0.1)
        else:
            os.kill(number, signal.SIGKILL)
            raise AssertionError("a worker lives on")


def is_running(number):
    try:
        stat = pathlib.Path(f"/proc/{number}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
