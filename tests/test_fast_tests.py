"""`make test-fast` leaves nothing out altogether: each folder of the package has tests not marked slow or long."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FOLDERS = sorted(path.name for path in (ROOT / "t2t_lite").iterdir() if (path / "__init__.py").exists())


def is_slow(marks):
    nodes = (node for mark in marks for node in ast.walk(mark))
    return any(isinstance(node, ast.Attribute) and node.attr in {"slow", "long"} for node in nodes)


def fast_tests(folder):
    """Returns the names of the tests in a folder without a mark of their own or of their module."""
    found = []
    for path in folder.rglob("test_*.py"):
        body = ast.parse(path.read_text()).body
        if not is_slow(node for node in body if isinstance(node, ast.Assign)):
            tests = [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
            found += [test.name for test in tests if not is_slow(test.decorator_list)]
    return found


@pytest.mark.parametrize("name", [*FOLDERS, "bin", "hparams", "problems", "integration"])
def test_every_folder_has_fast_tests(name):
    assert fast_tests(ROOT / "tests" / name)


def test_marks_are_seen(tmp_path):
    (tmp_path / "test_module.py").write_text("pytestmark = pytest.mark.slow\ndef test_a(): pass\n")
    (tmp_path / "test_some.py").write_text("@pytest.mark.slow\ndef test_b(): pass\ndef test_c(): pass\n")
    (tmp_path / "test_others.py").write_text("@pytest.mark.long\ndef test_d(): pass\n")
    assert fast_tests(tmp_path) == ["test_c"]
