"""Evaluation of a model: metrics of teacher-forced batches, and a score of the model's real outputs."""

import contextlib
import functools
import logging
import math
import time
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.cli.console import waiting
from t2t_lite.data import record_format
from t2t_lite.data.corruption import draws
from t2t_lite.data.example_batches import sliding_batches
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.evaluation.loss_units import losses_by_unit
from t2t_lite.evaluation.metrics import check_features, output_metrics, own_metrics, shown_metrics
from t2t_lite.models.outputs import batches_of, labels_of, named_outputs, next_state, with_state
from t2t_lite.training.objectives import objective_sums
from t2t_lite.training.output_scorer import OutputScorer, with_facts

_LOGGER = logging.getLogger("t2t_lite")
_SHOWN = 5  # translations, in TensorBoard


class Evaluation(NamedTuple):
    """The result of an evaluation.

    Attributes:
        metrics: {name: float}: "loss" (nats per target token), "perplexity", "loss_<feature>" and "cost_<feature>" of
            what else the model computes, those by unit (`evaluation.loss_units`), the problem's teacher-forced
            metrics, and the scores of real outputs.
        texts: list of (input, output, reference), the texts that were scored.
        facts: dict of further fields for the log, such as "bleu_signature".
    """

    metrics: dict
    texts: list = ()
    facts: dict = {}  # noqa: RUF012


class Evaluator:
    """Evaluates a model with its current weights, also in training.

    Scores are computed from beam-search outputs for a sample of the set, not from teacher-forced predictions
    (tensor2tensor's approx_bleu).

    Args:
        model: keras.Model.
        problem: Problem, which names the metrics.
        encoders: {feature: encoder}.
        hparams: HParams: batch_size, eval_metrics, eval_tokenization, eval_decode_examples, eval_beam_size, eval_alpha
            are used.
        paths: list of str, the records.
        max_batches: int, teacher-forced batches, longest sentences first; 0: all.
        search: dict of `SearchOptions` for the outputs, which override those of hparams and problem.
        translate_all: bool, translate every example instead of eval_decode_examples.
        weights: function that returns a context manager, in which the model has the weights to evaluate.
        counts: dict, how many units the records have, see `losses_by_unit`; None or {}: unknown.
        stride: int, of `sliding_batches`; 0: score each row for itself, or with the state of those before it where the
            model carries one. With windows there are no costs, which may need the ids behind the scored ones, such as
            those of a stack from right to left.
        split: of `DatasetSplit`, which the records are.

    Raises:
        UserError: damaged records, or an invalid search option.
    """

    def __init__(
        self, model, problem, encoders, hparams, paths, max_batches=0, search=None, translate_all=False,
        weights=contextlib.nullcontext, counts=None, stride=0,
        split=DatasetSplit.EVAL,
    ):  # fmt: skip
        self.model = model
        self.problem = problem
        self._hparams = hparams
        self.encoders = encoders
        self.max_batches = max_batches
        self._paths = paths
        self._weights = weights
        self._counts = counts or {}
        self._sums_shown = ("loss",) if stride else ("loss", "cost")
        source = batches_of(type(model))(problem, hparams.of_model(type(model)), encoders, 1)
        if stride:
            self._batches = sliding_batches(problem, hparams, paths, encoders, stride)
        else:
            self._batches = source.evaluation(paths, split in problem.ordered_splits)
        self._begin = functools.partial(source.first_state, model)
        self._metrics = {name: registry.metric(name) for name in own_metrics(problem, hparams)}
        of_answers = any(metric.of == "answers" for metric in self._metrics.values())
        self._task = registry.task_of(problem)(problem, encoders) if of_answers else None
        self._outputs = None
        if problem.eval_decode_metric and (translate_all or hparams.eval_decode_examples > 0):
            count = None if translate_all else hparams.eval_decode_examples
            translator = Translator(model, encoders, hparams, problem)
            names = output_metrics(problem, hparams)
            whole = source.whole(paths) if draws(type(model)) else self._batches
            self._outputs = OutputScorer(translator, names, whole, paths, count, search)
        ids = {feature: tf.TensorSpec([None] * rank, tf.int32) for feature, rank in source.features.items()}
        state = tf.nest.map_structure(lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), self._begin())
        self._sums = tf.function(self._batch_sums, input_signature=[ids, ids["targets"], state], autograph=False)

    def __call__(self):
        """Returns the `Evaluation`."""
        with self._weights():
            metrics, facts = self._teacher_forced()
            scores, more_facts, texts = self._outputs() if self._outputs else ({}, {}, ())
        return Evaluation(metrics | scores, texts, facts | more_facts)

    def shown(self, names):
        """Returns the names of the metrics that people look at first: see `shown_metrics`."""
        return shown_metrics(self.problem, self._hparams, names)

    def _teacher_forced(self):
        batches, sums = self._batches.take(self.max_batches) if self.max_batches else self._batches, None
        answers, state = [], self._begin()
        for batch in record_format.naming(batches, self._paths, self.problem.record_features):
            scored = batch.pop("scored", batch["targets"])
            found, chosen, state = self._sums(batch, scored, state)
            if self._task:
                rows = zip(batch["inputs"].numpy(), batch["targets"].numpy(), chosen.numpy(), strict=True)
                answers += [self._task.compared(*row) for row in rows]
            found = tf.nest.map_structure(lambda value: value.numpy().astype(np.float64), found)
            sums = tf.nest.map_structure(np.add, sums, found) if sums else found
        if not sums or not sums["counts"]["targets"]:
            raise UserError(f"{self.problem.full_name}: the records hold no example. Run t2t-datagen again.")
        means = {
            f"{what}_{feature}": float(total / max(sums["counts"][feature], 1))
            for what in self._sums_shown
            for feature, total in sums[what].items()
        }
        loss = means.pop("loss_targets")
        own, facts = self._own_metrics(sums["metrics"], answers)
        by_unit = losses_by_unit(loss, self._counts, self.problem.loss_metrics)
        perplexity = {"perplexity": math.exp(min(loss, 80.0))} if registry.task_of(self.problem).has_perplexity else {}
        return {"loss": loss, **perplexity, **means, **by_unit, **own}, facts

    def _own_metrics(self, sums, answers):
        """Returns ({name: float} of the problem's metrics, further fields for the log)."""
        found, facts = {}, {}
        for name, metric in self._metrics.items():
            if metric.of == "logits":
                found[name] = float(metric.result(sums[name]))
            else:
                found[name], more = with_facts(metric(*map(list, zip(*answers, strict=True))))
                facts.update(more)
        return found, facts

    def _batch_sums(self, batch, scored, state):
        outputs = self.model(with_state(self.model, batch, state, training=False), training=False)
        batch = {**batch, "targets": scored}
        (logits, _), objective = named_outputs(outputs), objective_sums(outputs, batch)
        check_features(self.problem, self._metrics, logits)
        metrics = {}
        for name, metric in self._metrics.items():
            feature = metric.feature
            if metric.of != "logits":
                continue
            labels = labels_of(logits[feature], batch[feature])
            metrics[name] = metric(logits[feature], tf.reshape(labels, tf.shape(logits[feature])[:-1]))
        counts = {feature: tf.math.count_nonzero(ids) for feature, ids in batch.items()}
        chosen = self._task.choose(logits["targets"], batch["inputs"]) if self._task else ()
        found = {"loss": objective.nats, "cost": objective.cost, "counts": counts, "metrics": metrics}
        return found, chosen, next_state(outputs, state)


def evaluate_and_log(evaluator, log, step, folder="eval", name="evaluation", on_texts=None, also_shown=(), **facts):
    """Evaluates, shows what people look at first, and writes all metrics to the log and TensorBoard; returns them.

    Args:
        evaluator: Evaluator.
        log: RunLog.
        step: int, of the model.
        folder: str, run name in TensorBoard.
        name: str, what is evaluated, for the line on stderr.
        on_texts: function of (step, list of (input, output, reference)), or None.
        also_shown: names of metrics that are shown, too.
        **facts: further fields of the log's line.
    """
    started = time.monotonic()
    with waiting(f"{name} at step {step:,} …"):
        found = evaluator()
    seconds = time.monotonic() - started
    names = {*evaluator.shown([*found.metrics]), *also_shown}
    shown = "  ".join(f"{metric} {value:.4f}" for metric, value in found.metrics.items() if metric in names)
    _LOGGER.info(f"{name} at step {step:,}: {shown}  ({seconds:.1f} s)")
    if found.texts and on_texts:
        on_texts(step, found.texts)
    log.scalars(step, found.metrics, folder)
    if found.texts:
        log.text(step, "translations", _table(found.texts[:_SHOWN]), folder)
    # Last, because a restarted run treats logged evaluations as done.
    log.write("evaluation", step, **found.metrics, seconds=round(seconds, 3), **facts, **found.facts)
    return found.metrics


def _table(texts):
    """Formats rows of texts as a Markdown table."""
    rows = [f"| {' | '.join(text.replace('|', '&#124;') for text in row)} |" for row in texts]
    return "\n".join(["| input | output | reference |", "|-|-|-|", *rows])
