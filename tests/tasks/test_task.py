"""Which class answers for which problem, and what an input of it is called while it is decoded."""

import pytest

import t2t_lite
from t2t_lite import registry
from t2t_lite.data.problem import Problem
from t2t_lite.errors import UserError
from t2t_lite.tasks.task import answering_class, check_answered_by, unit_of


def problem(task, answered_by=None):
    made = Problem()
    made.task, made.answered_by = task, answered_by
    return made


@pytest.mark.parametrize("task", registry.list_tasks())
def test_every_task_has_a_class_that_loads_and_metrics(task):
    assert problem(task).eval_metrics() == list(registry.task(task).eval_metrics)
    loader = answering_class(problem(task))
    assert callable(loader.load) and getattr(t2t_lite, loader.__name__) is loader


USUAL = {
    "model": "transformer", "head": None, "answered_by": "Predictor", "eval_metrics": ("token_accuracy",),
    "metrics": [], "has_perplexity": True, "smooths_labels": True, "sparse_targets": False,
    "labels_are_of_all_rows": False,
}  # fmt: skip
ENCODES = {"model": "transformer_encoder", "smooths_labels": False}
DECLARED = {  # metrics are those of docs/scoring.md
    "sequence_to_sequence": {"answered_by": "Translator"},
    "language_model": {"answered_by": "Generator", "model": "transformer_lm", "head": "lm"},
    "classification": {
        **ENCODES, "head": "class", "problems": ("classify_own", "classify_pair_own"), "eval_metrics": ("accuracy",),
        "metrics": ["accuracy", "f1_macro", "f1_binary", "mcc"], "output": "labels",
    },
    "regression": {
        **ENCODES, "head": "real", "problems": ("regress_own", "regress_pair_own"), "has_perplexity": False,
        "eval_metrics": ("pearson", "spearman"), "metrics": ["pearson", "spearman"], "output": "values",
        "columns": ("number",),
    },
    "masked_language_model": {
        "model": "transformer_encoder", "head": "masked_lm", "sparse_targets": True, "labels_are_of_all_rows": True,
    },
}  # fmt: skip


@pytest.mark.parametrize("task", DECLARED)
def test_what_a_task_declares(task):
    expected = USUAL | DECLARED[task]
    facts = {name: getattr(registry.task(task), name) for name in expected}
    assert facts | {"metrics": [*facts["metrics"]]} == expected


def test_a_problem_may_have_a_class_of_its_own():
    assert answering_class(problem("classification", dict)) is dict


def test_another_task_and_an_unknown_one_are_refused():
    check_answered_by(problem("classification"), "Predictor", "train")
    with pytest.raises(UserError, match=r"^train: problem has the task classification\. .*a Predictor\.$"):
        check_answered_by(problem("classification"), "Translator", "train")
    with pytest.raises(UserError, match=r"^problem: task='clasification' is unknown\. Nearest: classification"):
        problem("clasification").eval_metrics()


@pytest.mark.parametrize(
    ("name", "unit"),
    {
        "translate_ende_wmt32k": "sentence",
        "translate_ende_wmt32k_rev": "sentence",
        "algorithmic_reverse_decimal40": "sequence",
        "languagemodel_own": "text",
        "classify_own": "text",
    }.items(),
)
def test_an_input_has_a_name(name, unit):
    assert unit_of(registry.problem(name)) == unit


def test_every_problem_has_one():
    assert all(unit_of(registry.problem(name)).isalpha() for name in registry.list_problems())
