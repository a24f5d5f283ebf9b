"""The metrics of evaluations during training; users can register further metrics (`registry.register_metric`)."""

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.errors import UserError, located
from t2t_lite.evaluation.loss_units import check_loss_metrics
from t2t_lite.evaluation.scores import METRICS as CORPUS_METRICS
from t2t_lite.evaluation.scores import corpus_scores
from t2t_lite.evaluation.tokenizations import DEFAULT, ter_options_of, tokenization_of_problem

# Types of metrics, by what they compare; "logits" means teacher-forced.
_BATCH_INPUTS = ("logits", "answers")
_OUTPUT_INPUTS = ("texts", "ids")


def token_accuracy(logits, labels):
    """Returns (number of correctly predicted labels, number of labels), int64 scalars."""
    hits = (tf.argmax(logits, axis=-1, output_type=tf.int32) == labels) & (labels != 0)
    return tf.math.count_nonzero(hits), tf.math.count_nonzero(labels)


registry.register_metric("token_accuracy")(token_accuracy)
registry.register_metric("accuracy")(token_accuracy)  # for classes, where each example has one label
registry.register_metric("sentence_accuracy", feature="sentence")(token_accuracy)  # see sentence_pretraining_own

registry.list_tasks()  # listing the tasks imports the tasks' modules, which register the metrics of answers

_BESIDE = {"bleu": ("chrf",)}  # with BLEU, chrF is also computed, as it is cheap and needs no tokenization


def _corpus_metric(name):
    """Returns a function that computes a metric of texts with sacreBLEU, see `scores.METRICS`."""

    def metric(outputs, references, tokenize=DEFAULT, language=None):
        score = corpus_scores(outputs, references, [name], tokenize, ter_options_of(language), where=None)[name]
        return score.score, {f"{name}_signature": score.signature}

    return metric


for _name in CORPUS_METRICS:
    _register = registry.register_metric(_name, of="texts", lower_is_better=_name == "ter", decides=_name == "bleu")
    _register(_corpus_metric(_name))


@registry.register_metric(of="ids")
def exact_sequence_accuracy(outputs, references):
    """Returns the fraction of decoded outputs that equal their references."""
    return sum(output == reference for output, reference in zip(outputs, references, strict=True)) / len(outputs)


def check_features(problem, names, predicted):
    """Raises `UserError` if a metric belongs to a feature that the model does not predict.

    Args:
        problem: Problem.
        names: names of metrics, see `own_metrics`.
        predicted: names of the features whose logits the model returns.
    """
    for name in names:
        feature = registry.metric(name).feature
        if feature not in predicted:
            raise UserError(
                f"metric {name} measures {feature!r}, which the model does not predict. It predicts "
                f"{', '.join(predicted)}. Change eval_metrics of {problem.name}, or the metric's feature."
            )


def lower_is_better(name):
    """Returns whether lower values of a metric are better."""
    return registry.is_loss(name) or registry.metric(name).lower_is_better


def metrics_of(line):
    """Returns {name: float}, the metrics in an "evaluation" entry of a training log."""
    return {
        name: value
        for name, value in line.items()
        if name not in registry.LOG_FIELDS and isinstance(value, int | float) and not isinstance(value, bool)
    }


def own_metrics(problem, hparams):
    """Returns the names of the teacher-forced metrics of a problem and of the hyperparameter eval_metrics.

    Raises:
        UserError: a name in the hyperparameter eval_metrics is not registered.
    """
    return list(dict.fromkeys([*problem.eval_metrics(), *_added(hparams, _BATCH_INPUTS)]))


def output_metrics(problem, hparams):
    """Returns the names of the metrics of decoded outputs; the problem's `eval_decode_metric` is last.

    The names include the metrics that the hyperparameter eval_metrics adds, and chrF if BLEU is among the metrics.

    Raises:
        UserError: a name is not registered, or the problem does not decode outputs.
    """
    added, main = _added(hparams, _OUTPUT_INPUTS), problem.eval_decode_metric
    if added and not main:
        raise UserError(
            f"eval_metrics={added[0]}: this metric is for {registry.metric(added[0]).of}, but evaluations of "
            f"{problem.name} do not decode outputs. Remove the metric."
        )
    names = dict.fromkeys([*added, *_BESIDE.get(main, ())])
    return [*(name for name in names if name != main), *filter(None, [main])]


def shown_metrics(problem, hparams, names):
    """Returns the names of the metrics in an evaluation's log line: a loss, a score, and the requested metrics.

    The score is the metric of decoded outputs. If no outputs are decoded, a language model's score is its
    loss per unit, such as bits per byte, and any other model's score is the problem's last teacher-forced metric.

    Args:
        problem: Problem.
        hparams: HParams, whose eval_metrics is used.
        names: the names of all metrics of the evaluation, in order.
    """
    by_unit = problem.loss_metrics if registry.task_of(problem).is_text else ()
    loss = "perplexity" if any(name.startswith("perplexity_per_") for name in by_unit) else "loss"
    scores = [problem.eval_decode_metric, *reversed(by_unit), *reversed(problem.eval_metrics())]
    score = next((name for name in scores if name in names), None)
    shown = (loss, score, *hparams.eval_metrics.split("/"))
    return [name for name in names if name in shown]


def _added(hparams, kinds):
    names = filter(None, hparams.eval_metrics.split("/"))
    with located("eval_metrics"):
        return [name for name in names if registry.metric(name).of in kinds]


def metric_names(problem, hparams, translate_all=False):
    """Returns the names of the metrics of a run's evaluations, a tuple of str.

    The losses and costs of a model's further features, "loss_<feature>" and "cost_<feature>", are not included.

    Args:
        problem: Problem.
        hparams: HParams, whose eval_metrics and eval_tokenization are used. If eval_decode_examples is 0, no outputs
            are decoded, unless `translate_all` is set.
        translate_all: bool, see `EvaluationSettings`.

    Raises:
        UserError: a metric is not registered, is of the wrong type, is for another task, or needs a package that is not
            installed; the tokenization is unknown or its package is not installed; or an entry of `loss_metrics` is not
            a measure per unit.
    """
    output_names = output_metrics(problem, hparams)
    check_loss_metrics(problem)
    tokenization_of_problem(problem, hparams)
    for names, where, kinds in (
        (own_metrics(problem, hparams), "eval_metrics", _BATCH_INPUTS),
        (output_names, "eval_decode_metric", _OUTPUT_INPUTS),
    ):
        for name in names:
            with located(f"{problem.name}: {where}"):
                metric = registry.metric(name)
            if metric.of not in kinds:
                raise UserError(
                    f"{problem.name}: {where} has {name}, a metric for {metric.of}. Expected a metric for "
                    f"{' or '.join(kinds)}."
                )
            if metric.of == "answers":
                _check_answer_metric(name, problem)
    task = registry.task_of(problem)
    losses = ("loss", "perplexity") if task.has_perplexity else ("loss",)
    output_names = output_names if translate_all or hparams.eval_decode_examples > 0 else ()
    return (*losses, *own_metrics(problem, hparams), *output_names, *problem.loss_metrics)


def _check_answer_metric(name, problem):
    """Raises `UserError` if a metric of answers belongs to another task; users' own metrics suit any task with some."""
    metrics = registry.task_of(problem).metrics
    if name in metrics:
        metrics[name].check()
    elif not metrics or any(name in registry.task(other).metrics for other in registry.list_tasks()):
        expected = f"one of {', '.join(metrics)}" if metrics else "a metric for another type of output"
        raise UserError(f"{problem.name}: {name} is not a metric of the task {problem.task}. Expected {expected}.")
