"""What every extra has: a docstring that says what it is and uses, a page, tests; none uses another in secret."""

# Nearest tests of: extras/images/image_settings.py, extras/music/music_settings.py, extras/parsing/tree_settings.py
# Nearest tests of: extras/question_answering/qa_settings.py, extras/tagging/tag_settings.py

import ast
import pathlib
import re

import pytest

from t2t_lite import registry
from t2t_lite.problems.own_settings import own_flags
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


PROBLEMS = {
    "image_own": "PNG",
    "music_own": "MIDI",
    "parsing_english_own": "trees",
    "qa_own": "SQuAD",
    "tag_own": "CoNLL",
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_flags_say_what_they_are_for_problems_of_extras(name):
    """Defaults in their sentences are those that the problems have."""
    if name not in registry.list_problems():
        pytest.skip("of an extra that is not there")
    settings, problem = own_flags(), registry.problem(name)
    told = {key: re.search(rf"\b{name}: ([^:]*?\.)(?= \w+: |$)", one.meaning) for key, one in settings.items()}
    told = {key: found[1] for key, found in told.items() if found}
    assert PROBLEMS[name] in told["train_files"]
    default = rf"{name}: (?:[^:]*Default: )?(\d+)\."
    numbers = {key: int(found[1]) for key, one in settings.items() if (found := re.search(default, one.meaning))}
    assert numbers == {key: problem.settings[key].default for key in numbers}
    expected = {"music_own": {"sequence_length"}, "qa_own": {"sequence_length", "doc_stride"}}
    assert {*numbers} == expected.get(name, {"vocab_size"} if name == "parsing_english_own" else set())


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
