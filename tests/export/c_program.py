"""deploy/c: the program that answers lines with an export, built against a Python's TensorFlow and run."""

import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

_SOURCES = pathlib.Path(__file__).parents[2] / "deploy" / "c"


def build(folder, python=sys.executable):
    """Returns the path of the program, which uses the TensorFlow and tensorflow-text of `python`."""
    if not shutil.which("cc") or not shutil.which("make"):
        pytest.skip("no C compiler here")
    program = folder / "run_export"
    make = ["make", "-s", "-C", _SOURCES, f"PYTHON={python}", f"OUTPUT={program}"]
    done = subprocess.run(make, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and not done.stderr, done.stderr  # warnings, too
    return program


def run(program, export, *arguments, lines=b"", stdout=subprocess.PIPE, **environment):
    """Runs the program with standard input `lines`, bytes. Returns the finished process, whose output is bytes."""
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""} | environment
    command = [program, export, *arguments]
    return subprocess.run(command, input=lines, stdout=stdout, stderr=subprocess.PIPE, env=environment, timeout=300)


def assert_answers(program, export, signature, columns, expected, **numbers):
    """Asks a signature, and compares the answers with those of Python.

    Args:
        program: what `build` returns.
        export: str, path.
        signature: str.
        columns: {input: list of bytes}; rows that cannot be lines of the program's input are left out.
        expected: {output: list}, the answers to all rows.
        **numbers: values for all rows.
    """
    forbidden = b"\n" if len(columns) == 1 else b"\n\t"  # tabs part columns
    rows = [*zip(*columns.values(), strict=True)]
    kept = [at for at, row in enumerate(rows) if not any(byte in forbidden for text in row for byte in text)]
    assert len(kept) > len(rows) / 2
    lines = b"".join(b"\t".join(rows[at]) + b"\n" for at in kept)
    names = [*columns] if len(columns) > 1 else []
    done = run(program, export, signature, *names, *(f"{n}={value}" for n, value in numbers.items()), lines=lines)
    assert done.returncode == 0, done.stderr.decode()
    found = [json.loads(line) for line in done.stdout.decode("utf-8").split("\n")[:-1]]
    for at, answer in zip(kept, found, strict=True):
        assert_same(answer, {name: values[at] for name, values in expected.items()})


def assert_same(found, expected):
    """Compares values, or lists and dictionaries of them; a list may be padded, with "", 0 and lists of these."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert_same(found[name], value)
    elif isinstance(expected, list):
        shared = min(len(found), len(expected))
        assert not any(_flat(found[shared:])) and not any(_flat(expected[shared:]))
        for one, other in zip(found[:shared], expected[:shared], strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=1e-4, abs_tol=1e-4)
    else:
        assert found == expected


def _flat(values):
    for value in values:
        yield from _flat(value) if isinstance(value, list) else [value]
