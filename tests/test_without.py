"""The package without one of its extras: what is left can be installed and linted, and has its names."""

import subprocess
import sys

import pytest

from tests import without

SMALL = "glue"


@pytest.mark.slow
@pytest.mark.skipif(SMALL not in without.names(), reason="it has been taken out already")
def test_a_small_one_can_be_taken_out(tmp_path):
    python = without.lint(SMALL, tmp_path)
    assert not (tmp_path / "extras" / SMALL).exists()
    code = "from t2t_lite import registry; print(*registry.list_problems())"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "translate_own" in done.stdout and "multi_nli" not in done.stdout
    here = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {*done.stdout.split()} < {*here.stdout.split()}


@pytest.mark.long
@pytest.mark.parametrize("extra", [*without.names(), without.ALL])
def test_each_can_be_taken_out_and_the_tests_of_the_others_are_collected(extra, tmp_path):
    without.check(extra, tmp_path, briefly=True)


def test_one_that_is_not_there_is_refused(tmp_path, capsys):
    assert without.main(["no_extra"]) == 2
    assert "make without: EXTRA=no_extra: no such extra. Expected all, or one of " in capsys.readouterr().err
    assert without.main([]) == 2
    assert "make without: expected EXTRA=all, or EXTRA= one of " in capsys.readouterr().err
