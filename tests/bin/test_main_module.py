"""`python -m t2t_lite`: all commands under one name."""

# Nearest tests of: t2t_lite/__main__.py

import importlib.metadata
import json
import os

import pytest

import t2t_lite
from t2t_lite.__main__ import main
from tests.processes import python


def test_lists_every_installed_command(capsys):
    scripts = importlib.metadata.distribution("t2t_lite").entry_points.select(group="console_scripts")
    commands = sorted(script.name for script in scripts)
    assert main([]) == 0
    lines = capsys.readouterr().out.split("\n\n", 1)[1].splitlines()
    assert [line.split()[0] for line in lines] == commands
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
    found = python(code, env=os.environ | {"TF_CONFIG": json.dumps(cluster)})
    assert found.returncode == 2 and "'none' is not registered" in found.stderr
    assert "shut down" not in found.stdout


def test_an_unknown_command_names_the_nearest(capsys):
    assert main(["trainr"]) == 2
    found = capsys.readouterr()
    assert not found.out and found.err.startswith("t2t_lite: error: 'trainr' is not a command. Nearest: t2t-trainer")


def test_version_and_no_tensorflow():
    code = "import sys, runpy; sys.argv = ['t2t_lite', '--version']; "
    code += "\ntry: runpy.run_module('t2t_lite', run_name='__main__')\nexcept SystemExit as e: assert not e.code"
    code += "\nassert not {'tensorflow', 'keras'} & set(sys.modules)"
    found = python(code, check=True)
    assert found.stdout == f"t2t_lite {t2t_lite.__version__}\n"
