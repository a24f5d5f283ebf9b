"""What every extra has: a docstring that says what it is and uses, a page, tests; none uses another in secret."""

import ast
import pathlib
import re

import pytest

from t2t_lite.process.lazy import PACKAGE, extras

ROOT = pathlib.Path(__file__).parents[2]
_USED = re.compile(rf"{re.escape(PACKAGE)}\.(\w+)")


def described(name):
    return ast.get_docstring(ast.parse((extras()[name] / "__init__.py").read_text(encoding="utf-8")))


def imported(name):
    """The other extras that an extra's modules import, at the top or inside of functions."""
    nodes = [node for path in extras()[name].glob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return {found[1] for found in map(_USED.match, modules) if found} - {name}


@pytest.mark.parametrize("name", extras())
def test_it_says_what_it_is_and_what_it_uses(name):
    first, blank, *rest = described(name).splitlines()
    assert first.endswith((".", ":")) and not blank and 1 <= len(rest) <= 12
    assert {*_USED.findall(described(name))} - {name} == imported(name)


@pytest.mark.parametrize("name", extras())
def test_it_has_a_page_and_tests(name):
    page = (ROOT / f"docs/extras/{name}.md").read_text(encoding="utf-8")
    assert page.startswith("# ") and len(page.split()) > 20
    assert [*(ROOT / f"tests/extras/{name}").glob("test_*.py")]


def test_there_are_no_circles():
    left = {name: imported(name) for name in extras()}
    while free := [name for name, uses in left.items() if not uses & left.keys()]:
        for name in free:
            del left[name]
    assert not left


def test_no_page_and_no_tests_are_of_an_extra_that_is_not_there():
    pages = {path.stem for path in ROOT.glob("docs/extras/*.md")}
    tests = {path.parent.name for path in ROOT.glob("tests/extras/*/test_*.py")}
    assert pages == tests == {*extras()}
