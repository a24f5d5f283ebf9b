"""Tables of what papers and programs publish, which stand beside the tests of the modules that repeat it.

published_sets.tsv has a line for each set of hyperparameters: name, model (-: as --model says), parent (-: the defaults
of `HParams`), changes to the parent in the grammar of --hparams, and the source. published_classes.tsv has a line for
each problem with named classes: problem, classes in the order of their ids, divided by |, and the source. "ours" stands
for what this package has made up.
"""

import pathlib
from typing import NamedTuple

import pytest

from t2t_lite import registry
from t2t_lite.problems.own_problem import OwnProblem
from t2t_lite.settings.config import HParams, parse_assignments

TESTS = pathlib.Path(__file__).parents[1]


class PublishedSet(NamedTuple):
    name: str
    model: str
    parent: str
    changes: str
    source: str


class PublishedClasses(NamedTuple):
    problem: str
    classes: str
    source: str


def rows(kind, folder=TESTS):
    """Returns the lines of the tables in a folder of tests and those below it."""
    name = {PublishedSet: "published_sets.tsv", PublishedClasses: "published_classes.tsv"}[kind]
    lines = [line for path in sorted(folder.rglob(name)) for line in path.read_text(encoding="utf-8").splitlines()]
    return [kind(*line.split("\t")) for line in lines if not line.startswith("#")]


def each_set_is_as_published(test_file):
    """Returns a test of the sets in the tables beside a test file or below: all of their values, and their models."""

    @pytest.mark.parametrize("row", rows(PublishedSet, pathlib.Path(test_file).parent), ids=lambda row: row.name)
    def test(row):
        hparams = registry.hparams(row.name)
        parent = HParams() if row.parent == "-" else registry.hparams(row.parent)
        changes = parse_assignments(row.changes.removeprefix("-"), row.name)
        typed = {name: hparams.settings()[name].typed(value) for name, value in changes.items()}
        assert hparams.values() == parent.values() | typed
        assert (registry.model_of_hparams(row.name) or "-") == row.model

    return test


def class_names(problem):
    """Returns the names of a problem's classes that its code has; None if there are none, or if they come with data."""
    names = None if isinstance(problem, OwnProblem) else getattr(problem, "class_labels", None)
    return "|".join(names(None) if callable(names) else names) if names else None


def classes_are_as_published(test_file):
    """Returns a test of the classes in the tables beside a test file or below."""

    @pytest.mark.parametrize("row", rows(PublishedClasses, pathlib.Path(test_file).parent), ids=lambda row: row.problem)
    def test(row):
        assert class_names(registry.problem(row.problem)) == row.classes

    return test
