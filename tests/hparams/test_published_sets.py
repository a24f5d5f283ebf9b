"""The sets have the published values; each set and each table of classes has a source."""

# Nearest tests of: hparams/changes.py, hparams/transformer.py
# Nearest tests of: hparams/transformer_lm.py, hparams/transformer_encoder.py

from t2t_lite import registry
from tests.hparams.published import PublishedClasses, PublishedSet, class_names, each_set_is_as_published, rows

test_each_set_is_as_published = each_set_is_as_published(__file__)


def test_each_set_has_a_source():
    """Those of users' folders, which other tests register, have none."""
    modules = {name: registry.Registries.hparams.get(name).__module__ for name in registry.list_hparams()}
    built_in = {name for name, module in modules.items() if module.startswith("t2t_lite.")}
    sources = {row.name: row.source for row in rows(PublishedSet)}
    assert sources.keys() == built_in, "write a line for each into published_sets.tsv beside the tests of its module"
    assert all(sources.values())


def test_each_table_of_classes_has_a_source():
    """Those of users' folders, which other tests register, have none."""
    problems = {name: registry.problem(name) for name in registry.list_problems()}
    named = {
        name for name, problem in problems.items()
        if class_names(problem) and type(problem).__module__.startswith("t2t_lite.")
    }  # fmt: skip
    sources = {row.problem: row.source for row in rows(PublishedClasses)}
    assert sources.keys() == named, "write a line for each into published_classes.tsv beside the tests of its module"
    assert all(sources.values())
