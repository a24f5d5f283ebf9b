"""The types of what is public, as a type checker sees them: `consumer.py` under pyright."""

import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", ["without_libraries.json", pytest.param("pyrightconfig.json", marks=pytest.mark.long)]
)
def test_a_users_program_type_checks(settings):
    """With the types of Keras and TensorFlow, which are read from their code, it takes twice as long."""
    command = [sys.executable, "-m", "basedpyright", "-p", str(HERE / settings), "--pythonpath", sys.executable]
    found = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert found.returncode == 0, found.stdout


def test_the_package_says_that_it_is_typed():
    assert (HERE.parents[1] / "t2t_lite" / "py.typed").exists()
