"""Tries plausible mistakes one by one, and says which of them the nearest tests let through: make mutants.

python tests/mutants.py                    # all of mutants.tsv
python tests/mutants.py data decoding      # those of files whose path contains one of these words

A line of mutants.tsv has, between tabs, a file, a part of one line of it, the same with a mistake, and the tests that
have to fail then. A file is as before when its tests are done, whatever happens.
"""

import contextlib
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
SECONDS = 120  # for the tests of one mistake, TensorFlow's import included


def mutants(words=()):
    """Returns [(path, line, mistaken line, tests)] of paths that contain one of some words; without words, all."""
    lines = (ROOT / "tests" / "mutants.tsv").read_text().splitlines()
    found = [tuple(line.split("\t")) for line in lines if line and not line.startswith("#")]
    return [one for one in found if not words or any(word in one[0] for word in words)]


@contextlib.contextmanager
def mistaken(path, line, mistake):
    """Context in which a file has a mistake."""
    file = ROOT / path
    text = file.read_text()
    if text.count(line) != 1:
        raise ValueError(f"{path}: has {text.count(line)} times {line!r}. Expected once: mend tests/mutants.tsv.")
    try:
        file.write_text(text.replace(line, mistake))
        yield
    finally:
        file.write_text(text)


def is_caught(tests):
    """Returns whether tests fail, or do not end."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not long", *tests.split()]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return True
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{tests}: pytest ended with {done.returncode}: {done.stdout.decode()[-300:]}")
    return done.returncode == 1


def main(words):
    """Tries them; returns the exit status: 1 where one came through."""
    every, through = mutants(words), []
    for path, line, mistake, tests in every:
        with mistaken(path, line, mistake):
            caught = is_caught(tests)
        print(f"{'caught ' if caught else 'THROUGH'}  {path}: {mistake.strip()}", flush=True)
        through += [] if caught else [path]
    print(f"{len(every) - len(through)} of {len(every)} mistakes are caught")
    return 1 if through else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
