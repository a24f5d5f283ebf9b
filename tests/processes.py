"""Processes and pipes of tests, and waits for what they do: each has an end, however a test ends."""

import contextlib
import os
import subprocess
import sys
import threading
import time

# prctl(PR_SET_PDEATHSIG, SIGKILL): Linux kills the program when the thread that has started it ends, as by a kill.
_ENDS_WITH_US = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execvp(sys.argv[1], sys.argv[1:])"


@contextlib.contextmanager
def owned(words, seconds=900, **options):
    """Starts a program, which is killed at the end of the context, after `seconds`, and when this process is killed.

    Args:
        words: list of str or path, the program and its arguments.
        seconds: float; what waits for the program's end, or reads what it says, waits no longer.
        **options: of `subprocess.Popen`, which is yielded.
    """
    words = [sys.executable, "-IS", "-c", _ENDS_WITH_US, *words]
    with subprocess.Popen(words, **options) as process:
        timer = threading.Timer(seconds, process.kill)
        timer.daemon = True
        timer.start()
        try:
            yield process
        finally:
            timer.cancel()
            process.kill()


def python(code, *words, **options):
    """Runs a Python program in a process of its own; returns the finished process, whose output is text.

    Args:
        code: str.
        *words: the program's arguments.
        **options: of `subprocess.run`.
    """
    usual = {"capture_output": True, "text": True, "timeout": 300}
    return subprocess.run([sys.executable, "-c", code, *words], **usual | options)


@contextlib.contextmanager
def pipe_of(data):
    """Yields the descriptor of a pipe with some bytes, few enough for its buffer, that nobody writes to any more."""
    read, write = os.pipe()
    try:
        os.write(write, data)
        os.close(write)
        yield read
    finally:
        os.close(read)


def wait_for(condition, seconds=60, why=str, pause=0.01):
    """Returns the first answer of `condition` that is true; raises `AssertionError` with `why()` after `seconds`."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {why()}"
        time.sleep(pause)
    return found
