"""Tries plausible mistakes one by one, and says which of them the nearest tests let through: make mutants.

python tests/mutants.py                    # all of mutants.tsv
python tests/mutants.py data decoding      # those of files whose path contains one of these words
python tests/mutants.py --list=FILE        # those of another list

A line of the list has, between tabs, a file, a part of one line of it, the same with a mistake, and the tests that have
to fail then; without tests, those that tests/nearest.py names. A file is as before when its tests are done, whatever
happens. TensorFlow is imported once: tests run in a fork of this process, which has imported nothing of the package.
"""

import contextlib
import importlib
import os
import pathlib
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]
SECONDS = 120  # for the tests of one mistake
_IMPORTED_ONCE = ("tests.conftest", "tensorflow", "tensorflow_text", "keras", "sacrebleu", "sentencepiece", "pytest")


def mutants(words=(), path=ROOT / "tests" / "mutants.tsv"):
    """Returns [(path, line, mistaken line, tests)] of paths that contain one of some words; without words, all."""
    lines = pathlib.Path(path).read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    # What is not a path of tests is a remark.
    rows = [(*row[:3], row[3] if row[3:] and row[3].startswith("tests/") else "") for row in rows]
    return [row for row in rows if not words or any(word in row[0] for word in words)]


@contextlib.contextmanager
def mistaken(path, line, mistake):
    """Context in which a file has a mistake."""
    file = ROOT / path
    text = file.read_text()
    if text.count(line) != 1:
        raise ValueError(f"{path}: has {text.count(line)} times {line!r}. Expected once: mend the list.")
    try:
        file.write_text(text.replace(line, mistake))
        yield
    finally:
        file.write_text(text)


def nearest_tests(path):
    """Returns the tests nearest to a file, separated by blanks; raises `ValueError` if there are none."""
    from tests.nearest import nearest

    if not (tests := " ".join(nearest(path))):
        raise ValueError(f"{path}: has no nearest tests. Expected a file of its name: see tests/nearest.py.")
    return tests


def is_caught(tests):
    """Returns whether tests fail, or do not end, in a fork of this process."""
    for name in _IMPORTED_ONCE:
        importlib.import_module(name)
    with tempfile.TemporaryFile("w+") as output:
        if not (child := os.fork()):
            _run(tests.split(), output)
        if (status := _wait(child)) is None:
            return True
        output.seek(0)
        if status not in (0, 1):
            raise RuntimeError(f"{tests}: pytest ended with {status}: {output.read()[-300:]}")
        return status == 1


def _run(tests, output):
    """Runs tests in this process, which ends with their status."""
    status = 3
    try:
        os.setsid()
        for number in (1, 2):
            os.dup2(output.fileno(), number)
        import pytest

        status = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", "not long", *tests]))
        sys.stdout.flush()
    finally:
        os._exit(status)


def _wait(child):
    """Returns the exit status of a process; None if it takes too long or is killed."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def main(arguments):
    """Tries them; returns the exit status: 1 where one came through."""
    lists = [argument.removeprefix("--list=") for argument in arguments if argument.startswith("--list=")]
    words = [argument for argument in arguments if not argument.startswith("--list=")]
    every, through = mutants(words, *lists[:1]), []
    for path, line, mistake, tests in every:
        with mistaken(path, line, mistake):
            caught = is_caught(tests or nearest_tests(path))
        print(f"{'caught ' if caught else 'THROUGH'}  {path}: {mistake.strip()}", flush=True)
        through += [] if caught else [path]
    print(f"{len(every) - len(through)} of {len(every)} mistakes are caught")
    return bool(through)


if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder, which has a package `typing`
    sys.exit(main(sys.argv[1:]))
