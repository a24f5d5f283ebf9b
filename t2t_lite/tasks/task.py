"""Task, the base class of tasks such as translation, and the tasks that generate texts."""

import types

import t2t_lite
from t2t_lite import registry
from t2t_lite.errors import UserError


class Task:
    """What a model learns from a problem, such as translation, and how its outputs are scored and served. A subclass
    describes all problems of a task; an instance belongs to one problem.

    Subclasses are registered by `registry.register_task`, and `Problem.task` is the registered name.

    Args:
        problem: Problem.
        encoders: {feature: encoder}.

    Attributes:
        name: str, set by the registry.
        answered_by: str, the public name of the class whose objects `t2t_lite.load(path, …)` returns.
        eval_metrics: tuple of str, a problem's default metrics, which are computed with teacher forcing.
        model: str, name of the model that `--model=transformer` selects.
        head: str, the hyperparameter `head` of a model that supports several heads, or None if the task has no such
            model.
        problems: tuple of str, the names of problems for an imported model with this head, the most common problem
            first.
        has_perplexity: bool, whether the loss is a mean in nats, so that its exponential is shown as perplexity.
        sparse_targets: bool, whether `targets` are aligned with the inputs. If so, 0 does not mean padding: it
            marks a position without a prediction.
        smooths_labels: bool, whether label smoothing may be applied, because targets are ids of a vocabulary.
        labels_are_of_all_rows: bool, whether `fit_labels` returns labels for the whole batch instead of one label per
            row.
        needed_features: tuple of str, the features without which a model's loss would be meaningless.
        is_text: bool, whether each id of the targets is predicted from the preceding ids, so that a text can be
            evaluated in sliding windows.
        hub_task: str, the task's name on Hugging Face's Hub.
        export_name: str, an example of a model's name on a server.
        unit: str, the word for an input in messages, such as "sentence".
        inputs: tuple of str, the names of an export's inputs.
        output: str, the name of an export's main output.
        metrics: {name: AnswerMetric} in the order in which t2t-score prints them; {} if the task has no such metrics.
    """

    name = None
    answered_by = None
    eval_metrics = ("token_accuracy",)
    model = "transformer"
    head = None
    problems = ()
    has_perplexity = True
    sparse_targets = False
    smooths_labels = True
    labels_are_of_all_rows = False
    needed_features = ()
    is_text = False
    unit = "sentence"
    hub_task = export_name = None
    inputs, output = ("inputs",), "outputs"
    metrics = types.MappingProxyType({})

    def __init__(self, problem, encoders):
        self.problem = problem
        self.encoders = encoders

    @staticmethod
    def fit_labels(batch, features):
        """Returns the labels of a batch for Keras' `fit`: a tensor, or a dict with a tensor per feature.

        Args:
            batch: {feature: int32 ids}.
            features: names of the features that the model is called with.
        """
        return batch["targets"]


def unit_of(problem):
    """Returns the word for a problem's input in messages, such as "sentence" or "image"."""
    return problem.unit or registry.task_of(problem).unit


def answering_class(problem):
    """Returns the class that answers for a problem: `Problem.answered_by` if set, otherwise that of its task."""
    if problem.answered_by is not None:
        return problem.answered_by
    return getattr(t2t_lite, registry.task_of(problem).answered_by)


def check_answered_by(problem, name, where):
    """Raises `UserError`, with a message that begins with `where`, unless the class `name` answers for a problem's
    task.

    Args:
        problem: Problem.
        name: str, the public name of the class: see `Task.answered_by`.
        where: str.
    """
    if registry.task_of(problem).answered_by != name:
        expected = [task for task in registry.list_tasks() if registry.task(task).answered_by == name]
        raise UserError(
            f"{where}: {problem.full_name} has the task {problem.task}. Expected one of {', '.join(expected)}. To use "
            f"this run in Python, call t2t_lite.load(path), which returns a {answering_class(problem).__name__}."
        )


@registry.register_task("language_model")
class LanguageModelTask(Task):
    """The task of a language model, which continues texts."""

    answered_by = "Generator"
    model = "transformer_lm"
    head = "lm"
    is_text = True
    unit = "text"
    hub_task, export_name = "text-generation", "generate"


@registry.register_task("sequence_to_sequence")
class SequenceToSequenceTask(Task):
    """The task of a sequence-to-sequence model, which generates a text from another text, as in translation."""

    answered_by = "Translator"
    hub_task, export_name = "translation", "translate"
