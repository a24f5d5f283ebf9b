"""Which class answers for which problem."""

import pytest

import t2t_lite
from t2t_lite import registry
from t2t_lite.data.problem import Problem
from t2t_lite.errors import UserError
from t2t_lite.tasks.task import answering_class, check_answered_by


def problem(task, answered_by=None):
    made = Problem()
    made.task, made.answered_by = task, answered_by
    return made


@pytest.mark.parametrize("task", registry.list_tasks())
def test_every_task_has_a_class_that_loads_and_metrics(task):
    assert problem(task).eval_metrics() == list(registry.task(task).eval_metrics)
    loader = answering_class(problem(task))
    assert callable(loader.load) and getattr(t2t_lite, loader.__name__) is loader


def test_a_problem_may_have_a_class_of_its_own():
    assert answering_class(problem("classification", dict)) is dict


def test_another_task_and_an_unknown_one_are_refused():
    check_answered_by(problem("classification"), "Predictor", "train")
    with pytest.raises(UserError, match=r"^train: a run of problem, whose task is classification\. .*a Predictor\.$"):
        check_answered_by(problem("classification"), "Translator", "train")
    with pytest.raises(UserError, match=r"^problem: task='clasification' is unknown\. Nearest: classification"):
        problem("clasification").eval_metrics()
