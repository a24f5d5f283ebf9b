"""Drives the commands in a folder of their own, judged by status, stdout and stderr.

Tests call them in this process, unless only a process of its own shows what they promise: importing TensorFlow takes
ten seconds. test_packaging.py shows that each is installed.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
from typing import NamedTuple

import pytest

from t2t_lite.cli import commands
from tests.processes import owned


class Result(NamedTuple):
    """How a command ended."""

    status: int
    stdout: str
    stderr: str


def replaced(flags, *others):
    """Returns flags with others in place of those of the same name."""
    return [*{word.partition("=")[0]: word for word in (*flags, *others)}.values()]


@pytest.fixture
def run_command(tmp_path):
    """Runs an installed command in its own process, in `tmp_path`: `run_command("t2t-bleu", "--help")`."""

    def run(command, *args, stdin="", cwd=tmp_path, timeout=900, env=None):
        program = pathlib.Path(sys.executable).with_name(command)
        done = subprocess.run(
            [program, *map(str, args)], input=stdin, cwd=cwd, env=env, timeout=timeout, capture_output=True, text=True
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return run


EXPORTED = {"beam_size": 2, "extra_length": 4, "max_input_length": 24}  # settings of `exports`


@pytest.fixture(scope="session")
def translators(tmp_path_factory):
    """{version: Translator} of 1 and 2, which differ in every sentence."""
    from t2t_lite.decoding.translator import Translator
    from tests.decoding.runs import make_run

    run = make_run(tmp_path_factory.mktemp("run"), steps=(100, 200))
    return {version: Translator.load(str(run / f"model.ckpt-{version}00")) for version in (1, 2)}


@pytest.fixture(scope="session")
def exports(translators, made_once):
    """A folder of their exports, 1 and 2; read only. The first one translates, and does nothing else."""
    from t2t_lite.export.saved_model import export_saved_model
    from tests.export.models import without_signatures

    def export(folder):
        with without_signatures("n_best", "tokens", "score"):
            export_saved_model(translators[1], str(folder), **EXPORTED)
        export_saved_model(translators[2], str(folder), **EXPORTED)

    return made_once("exports", export)


@pytest.fixture
def start():
    """Starts a program as `subprocess.Popen` does; see `owned`."""
    with contextlib.ExitStack() as stack:
        yield lambda words, **options: stack.enter_context(owned(words, **options))


@pytest.fixture
def call_command(tmp_path, monkeypatch, capsys):
    """Calls a command's `main` in this process, in `tmp_path`: TensorFlow is imported once for all tests."""

    def call(command, *args):
        monkeypatch.chdir(tmp_path)
        capsys.readouterr()
        main = commands.module(command).main
        status = main([str(arg) for arg in args])
        return Result(status, *capsys.readouterr())

    return call


@pytest.fixture
def standard_input(monkeypatch):
    """Gives bytes to the standard input of this process, a pipe."""

    def give(data):
        read, write = os.pipe()
        os.write(write, data)
        os.close(write)
        monkeypatch.setattr(sys, "stdin", os.fdopen(read))

    return give


@pytest.fixture
def assert_user_error():
    """Checks what the user's mistake must look like: status 2, one line that names all of `words`, nothing else."""

    def check(result, *words):
        assert result.status == 2, result
        lines = result.stderr.strip().splitlines()
        assert len(lines) == 1, result.stderr
        assert ": error: " in lines[0]
        assert result.stdout == ""
        for word in words:
            assert str(word) in lines[0]

    return check


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of two checkpoints; of this seed: BLEU is 0 without four words in a row, and few random models write words.

    Modules that need another one make it under the same name.
    """
    from tests.decoding.runs import make_run

    return make_run(tmp_path_factory.mktemp("run"), steps=(100, 200), seed=10)


@pytest.fixture(scope="module")
def translator(made):
    """Of `made`."""
    from t2t_lite.decoding.translator import Translator

    return Translator.load(str(made))


@pytest.fixture(scope="session")
def attention_run(tmp_path_factory):
    """A run of two layers, whose attention is drawn; read only."""
    from tests.decoding.runs import make_run

    return make_run(tmp_path_factory.mktemp("run"), num_hidden_layers=2)


@pytest.fixture
def attention_folder(tmp_path, attention_run):
    """The working directory of t2t-attention: `run`, an empty folder, a text, and one that is not UTF-8."""
    (tmp_path / "run").symlink_to(attention_run)
    (tmp_path / "empty").mkdir()
    (tmp_path / "not_utf8").write_bytes(b"the \xff house\n")
    (tmp_path / "text").write_text("the red house\na tree\n")
    return tmp_path
