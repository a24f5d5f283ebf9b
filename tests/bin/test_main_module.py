"""`python -m t2t_lite`: all commands under one name."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import t2t_lite
from t2t_lite.__main__ import main
from t2t_lite.cli import commands


def test_lists_every_installed_command(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.split("\n\n", 1)[1].splitlines()
    assert [line.split()[0] for line in lines] == [*commands.paths()]
    assert {*commands.paths()} <= {path.name for path in pathlib.Path(sys.executable).parent.glob("t2t-*")}
    assert all(len(line.split(maxsplit=1)[1]) > 20 for line in lines)  # what it does


@pytest.mark.parametrize("name", ["trainer", "t2t-trainer", "t2t_trainer"])
def test_forwards(name, capsys):
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith("t2t-trainer: Trains a model")
    assert main([name, "--train_step=1"]) == 2
    assert "t2t-trainer: error: --train_step" in capsys.readouterr().err


@pytest.mark.long
def test_a_failure_in_a_cluster_ends_the_process_as_by_its_own_script(tmp_path):
    """Of Python's shutdown TensorFlow's threads would wait for machines that may be gone."""
    code = "import atexit, runpy, sys; atexit.register(print, 'shut down')"
    flags = ["--problem=none", "--hparams_set=transformer_tiny", f"--data_dir={tmp_path}", f"--output_dir={tmp_path}"]
    code += f"\nsys.argv = ['t2t_lite', 'trainer', *{flags}]"
    code += "\nrunpy.run_module('t2t_lite', run_name='__main__')"
    cluster = {"cluster": {"worker": ["127.0.0.1:1"]}, "task": {"type": "worker", "index": 0}}
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"TF_CONFIG": json.dumps(cluster)},
        timeout=300,
    )
    assert found.returncode == 2 and "'none' is not registered" in found.stderr
    assert "shut down" not in found.stdout


def test_an_unknown_command_names_the_nearest(capsys):
    assert main(["trainr"]) == 2
    found = capsys.readouterr()
    assert not found.out and found.err.startswith("t2t_lite: error: 'trainr' is no command. Nearest: t2t-trainer")


COMMAND = """
from t2t_lite.bin import _app

def define_flags(flags):
    flags.DEFINE_string("word", None, "What to print.")
    flags.DEFINE_path("t2t_usr_dir", None, "Where this command is.")

def run(flags):
    print(flags.word)

main = _app.command("t2t-my-command", define_flags, run)
"""


@pytest.mark.parametrize("flag", [["--t2t_usr_dir={}"], ["--t2t-usr-dir", "{}"]])
def test_a_users_folder_has_a_command(flag, tmp_path, capsys):
    folder = tmp_path / f"of_a_user_{len(flag)}"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "t2t_my_command.py").write_text(COMMAND)
    (folder / "t2t_broken.py").write_text("undefined_name")
    flag = [word.format(folder) for word in flag]
    for _ in range(2):
        assert main(["my-command", "--word=here", *flag]) == 0
        assert capsys.readouterr().out == "here\n"
    assert main(["my-command", "--wort=here", *flag]) == 2
    assert "t2t-my-command: error: --wort: unknown flag. Nearest: --word" in capsys.readouterr().err
    assert main(["broken", *flag]) == 2
    assert f"{folder}/t2t_broken.py, line 1: NameError" in capsys.readouterr().err
    assert main(["their-command", *flag]) == 2
    assert "'their-command' is no command" in capsys.readouterr().err


def test_a_folder_of_commands_that_is_not_there(tmp_path, capsys):
    assert main(["my-command", f"--t2t_usr_dir={tmp_path / 'nowhere'}"]) == 2
    assert capsys.readouterr().err.startswith(f"t2t_lite: error: --t2t_usr_dir={tmp_path}/nowhere: no ")


def test_version_and_no_tensorflow():
    code = "import sys, runpy; sys.argv = ['t2t_lite', '--version']; "
    code += "\ntry: runpy.run_module('t2t_lite', run_name='__main__')\nexcept SystemExit as e: assert not e.code"
    code += "\nassert not {'tensorflow', 'keras'} & set(sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert found.stdout == f"t2t_lite {t2t_lite.__version__}\n"
