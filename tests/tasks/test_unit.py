"""What an input of each problem is called while it is decoded."""

import pytest

from t2t_lite import registry
from t2t_lite.tasks.task import unit_of


@pytest.mark.parametrize(
    ("problem", "unit"),
    {
        "translate_ende_wmt32k": "sentence",
        "translate_ende_wmt32k_rev": "sentence",
        "algorithmic_reverse_decimal40": "sequence",
        "languagemodel_own": "text",
        "classify_own": "text",
    }.items(),
)
def test_an_input_has_a_name(problem, unit):
    assert unit_of(registry.problem(problem)) == unit


def test_every_problem_has_one():
    assert all(unit_of(registry.problem(name)).isalpha() for name in registry.list_problems())
