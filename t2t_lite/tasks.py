"""Tasks: what is learned from a problem, and which public class answers with the trained model."""

import dataclasses

import t2t_lite
from t2t_lite.errors import UserError, nearest


@dataclasses.dataclass(frozen=True)
class Task:
    """What a `Problem.task` means.

    Attributes:
        answered_by: str, the public name of a class with a `load(path, …)`, which `t2t_lite.load` returns.
        eval_metrics: tuple of str, a problem's metrics of teacher-forced batches by default.
        model: str, name of the model that `--model=transformer` means.
        head: str, the `head` of a model that has several; None: the task knows no such model.
        has_perplexity: bool, whether the loss is a mean in nats, whose exponential is shown.
        sparse_targets: bool, whether `targets` stand at the positions of the inputs, and 0 is no padding but a position
            where nothing is predicted.
    """

    answered_by: str
    eval_metrics: tuple
    model: str = "transformer"
    head: str | None = None
    has_perplexity: bool = True
    sparse_targets: bool = False


TASKS = {
    "sequence_to_sequence": Task("Translator", ("token_accuracy",)),
    "classification": Task("Predictor", ("accuracy",), "transformer_encoder", "class"),
    "tagging": Task("Predictor", ("token_accuracy",), "transformer_encoder", "tag", sparse_targets=True),
    "spans": Task("Predictor", ("exact_match", "squad_f1"), "transformer_encoder", "span"),
    "regression": Task("Predictor", ("pearson", "spearman"), "transformer_encoder", "real", has_perplexity=False),
    "language_model": Task("Generator", ("token_accuracy",), "transformer_lm", "lm"),
    "masked_language_model": Task(
        "Predictor", ("token_accuracy",), "transformer_encoder", "masked_lm", sparse_targets=True
    ),
}


def task_of(problem):
    """Returns the Task of a problem. Raises `UserError` if it names none."""
    if problem.task not in TASKS:
        raise UserError(
            f"{problem.name}: task={problem.task!r} is unknown. {nearest(problem.task, TASKS, end=' ')}"
            f"Expected one of {', '.join(TASKS)}."
        )
    return TASKS[problem.task]


def answering_class(problem):
    """Returns the class whose `load` answers for a problem: `Problem.answered_by`, or that of its task."""
    if problem.answered_by is not None:
        return problem.answered_by
    return getattr(t2t_lite, task_of(problem).answered_by)


def check_task(problem, expected, where):
    """Raises `UserError`, whose message begins with `where`, unless a problem's task is an expected one.

    Args:
        problem: Problem.
        expected: str, or several of them.
        where: str.
    """
    expected = [expected] if isinstance(expected, str) else [*expected]
    if problem.task not in expected:
        raise UserError(
            f"{where}: a run of {problem.full_name}, whose task is {problem.task}. Expected one of "
            f"{', '.join(expected)}; this one answers in Python: t2t_lite.load(path) gives a "
            f"{answering_class(problem).__name__}."
        )
