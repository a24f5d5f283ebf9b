"""Evaluates a model with teacher-forced metrics and with scores of its decoded outputs, also in Keras' `fit`."""

import contextlib
import functools
import inspect
import math
import time
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.cli.console import waiting
from t2t_lite.data import batching, record_format
from t2t_lite.data.base_problem import Problem
from t2t_lite.data.corruption import draws
from t2t_lite.data.example_batches import sliding_batches
from t2t_lite.data.records import Records
from t2t_lite.data.splits import DatasetSplit, named_split
from t2t_lite.decoding.search.adapters import check_own_search, searches
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import LOGGER, UserError, counted, located, shown
from t2t_lite.evaluation.loss_units import losses_by_unit
from t2t_lite.evaluation.metrics import check_features, output_metrics, own_metrics, shown_metrics
from t2t_lite.evaluation.scores import METRICS, make_metric, warn_of_texts
from t2t_lite.evaluation.tokenizations import target_language, ter_options_of, tokenization_of_problem
from t2t_lite.models.outputs import batches_of, labels_of, named_outputs, next_state, with_state
from t2t_lite.process.backend import check_tensorflow
from t2t_lite.runs.log import rounded
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import EOS_ID
from t2t_lite.training.objectives import objective_sums
from t2t_lite.training.settings import EvaluationSettings

_SHOWN = 5  # number of translations shown in TensorBoard


class Evaluation(NamedTuple):
    """The result of an evaluation.

    Attributes:
        metrics: {name: float}, with "loss" (nats per target token), "perplexity", the model's other losses and costs as
            "loss_<feature>" and "cost_<feature>", losses per unit (`evaluation.loss_units`), the problem's
            teacher-forced metrics, and the scores of decoded outputs.
        texts: list of (input, output, reference), the texts that were decoded and scored.
        facts: dict, further fields for the log, such as "bleu_signature".
    """

    metrics: dict
    texts: list = ()
    facts: dict = {}  # noqa: RUF012


def shards_to_evaluate(split):
    """Returns the number of shards to evaluate: 1 (a random sample) for training data, otherwise None (all shards)."""
    return 1 if split == DatasetSplit.TRAIN else None


class Evaluator:
    """Evaluates a model with its current weights, also during training.

    Scores are computed on beam-search outputs for a sample of the set, not on teacher-forced predictions as in
    tensor2tensor's approx_bleu.

    Args:
        model: keras.Model.
        encoders: {feature: encoder}.
        hparams: HParams, of which batch_size, eval_metrics, eval_tokenization, eval_decode_examples, eval_beam_size and
            eval_alpha are used.
        records: Records of a problem, which also determines the metrics. For the shards, see `shards_to_evaluate`.
        settings: EvaluationSettings, or None for the defaults. `eval_steps` is the number of teacher-forced batches,
            which begin with the longest sentences. `search` overrides options of hparams and problem. If
            `translate_all` is set, all examples are decoded instead of only eval_decode_examples. Without
            `eval_stride`, each row is scored separately, or with the state of earlier rows if the model carries a
            state. With `eval_stride`, costs are not reported, because they may depend on ids after the scored ids, as
            in a right-to-left stack.
        weights: function that returns a context manager. In its context, the model has the weights to evaluate.

    Raises:
        UserError: if records are damaged, or a search option is invalid.
    """

    def __init__(self, model, encoders, hparams, records, settings=None, weights=contextlib.nullcontext):
        settings = settings or EvaluationSettings()
        self.model = model
        self.problem = problem = records.problem
        self._hparams = hparams
        self._paths = paths = records.paths[: shards_to_evaluate(records.split)]
        self._most_batches = settings.eval_steps
        self._weights = weights
        self._counts = records.unit_counts()
        self._sums_shown = ("loss",) if settings.eval_stride else ("loss", "cost")
        source = batches_of(type(model))(problem, hparams.of_model(type(model)), encoders, 1)
        if settings.eval_stride:
            self._batches = sliding_batches(problem, hparams, paths, encoders, settings.eval_stride)
        else:
            self._batches = source.evaluation(paths, records.split in problem.ordered_splits)
        self._begin = functools.partial(source.first_state, model)
        self._metrics = {name: registry.metric(name) for name in own_metrics(problem, hparams)}
        needs_answers = any(metric.of == "answers" for metric in self._metrics.values())
        self._task = registry.task_of(problem)(problem, encoders) if needs_answers else None
        self._outputs = None
        if problem.eval_decode_metric and (settings.translate_all or hparams.eval_decode_examples > 0):
            count = None if settings.translate_all else hparams.eval_decode_examples
            translator = Translator(model, encoders, hparams, problem)
            names = output_metrics(problem, hparams)
            whole = source.whole(paths) if draws(type(model)) else self._batches
            self._outputs = OutputScorer(translator, names, whole, paths, count, settings.search)
        ids = {feature: tf.TensorSpec([None] * rank, tf.int32) for feature, rank in source.features.items()}
        state = tf.nest.map_structure(lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), self._begin())
        self._sums = tf.function(self._batch_sums, input_signature=[ids, ids["targets"], state], autograph=False)

    def __call__(self):
        """Evaluates the model and returns an `Evaluation`."""
        with self._weights():
            metrics, facts = self._teacher_forced()
            scores, more_facts, texts = self._outputs() if self._outputs else ({}, {}, ())
        return Evaluation(metrics | scores, texts, facts | more_facts)

    def shown(self, names):
        """Returns the names of the metrics to show on stderr, a selection from `names`: see `shown_metrics`."""
        return shown_metrics(self.problem, self._hparams, names)

    def _teacher_forced(self):
        batches, sums = self._batches.take(self._most_batches) if self._most_batches else self._batches, None
        answers, state = [], self._begin()
        for batch in record_format.naming(batches, self._paths, self.problem.record_features):
            scored = batch.pop("scored", batch["targets"])
            batch_sums, chosen, state = self._sums(batch, scored, state)
            if self._task:
                rows = zip(batch["inputs"].numpy(), batch["targets"].numpy(), chosen.numpy(), strict=True)
                answers += [self._task.compared(*row) for row in rows]
            batch_sums = tf.nest.map_structure(lambda value: value.numpy().astype(np.float64), batch_sums)
            sums = tf.nest.map_structure(np.add, sums, batch_sums) if sums else batch_sums
        if not sums or not sums["counts"]["targets"]:
            raise UserError(f"{self.problem.full_name}: the records contain no examples. Run t2t-datagen again.")
        means = {
            f"{kind}_{feature}": float(total / max(sums["counts"][feature], 1))
            for kind in self._sums_shown
            for feature, total in sums[kind].items()
        }
        loss = means.pop("loss_targets")
        own_metrics, facts = self._own_metrics(sums["metrics"], answers)
        by_unit = losses_by_unit(loss, self._counts, self.problem.loss_metrics)
        perplexity = {"perplexity": math.exp(min(loss, 80.0))} if registry.task_of(self.problem).has_perplexity else {}
        return {"loss": loss, **perplexity, **means, **by_unit, **own_metrics}, facts

    def _own_metrics(self, sums, answers):
        """Returns (the problem's metrics as {name: float}, further fields for the log)."""
        metrics, facts = {}, {}
        for name, metric in self._metrics.items():
            if metric.of == "logits":
                metrics[name] = float(metric.result(sums[name]))
            else:
                metrics[name], more = score_and_facts(metric(*map(list, zip(*answers, strict=True))))
                facts.update(more)
        return metrics, facts

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
        sums = {"loss": objective.nats, "cost": objective.cost, "counts": counts, "metrics": metrics}
        return sums, chosen, next_state(outputs, state)


def evaluate_and_log(evaluator, log, step, folder="eval", name="evaluation", on_texts=None, also_shown=(), **facts):
    """Evaluates a model, logs the metrics, writes them to TensorBoard, and returns them with six significant digits.

    Args:
        evaluator: Evaluator.
        log: RunLog.
        step: int, the training step of the model.
        folder: str, the run name in TensorBoard.
        name: str, the name of the evaluation in the line on stderr, which shows the most important metrics.
        on_texts: function of (step, list of (input, output, reference)) called with the outputs, or None.
        also_shown: names of further metrics for the line on stderr.
        **facts: further fields for the log.
    """
    started = time.monotonic()
    with waiting(f"{name} at step {step:,} …"):
        evaluation = evaluator()
    seconds = time.monotonic() - started
    # rounded once, as in the log, since the best model's line and later commands show what they read there
    metrics = {metric: rounded(value) for metric, value in evaluation.metrics.items()}
    names = {*evaluator.shown([*evaluation.metrics]), *also_shown}
    shown = "  ".join(f"{metric} {value:.4f}" for metric, value in metrics.items() if metric in names)
    LOGGER.info(f"{name} at step {step:,}: {shown}  ({seconds:.1f} s)")
    if evaluation.texts and on_texts:
        on_texts(step, evaluation.texts)
    log.scalars(step, metrics, folder)
    if evaluation.texts:
        log.text(step, "translations", _table(evaluation.texts[:_SHOWN]), folder)
    # The log is written last, because a restarted run does not repeat logged evaluations.
    log.write("evaluation", step, **metrics, seconds=round(seconds, 3), **facts, **evaluation.facts)
    return metrics


def _table(texts):
    """Formats rows of texts as a Markdown table."""
    rows = [f"| {' | '.join(text.replace('|', '&#124;') for text in row)} |" for row in texts]
    return "\n".join(["| input | output | reference |", "|-|-|-|", *rows])


class OutputScorer:
    """Decodes a fixed sample of a split, and scores the outputs against the targets.

    Args:
        translator: a Translator for the model, with a problem.
        metrics: list of str, registered metrics of outputs, such as "bleu".
        batches: tf.data.Dataset of the split's batches, {feature: ids}.
        paths: list of str, the record files of the split.
        count: int, the number of evenly spaced examples, or None for all examples.
        search: dict of `SearchOptions`, which override eval_beam_size and eval_alpha in the translator's hparams.

    Raises:
        UserError: if records are damaged, or a search option or tokenization is invalid.
    """

    def __init__(self, translator, metrics, batches, paths, count=None, search=None):
        self._translator = translator
        self._metrics = {name: registry.metric(name) for name in metrics}
        hparams = translator.hparams
        self._facts = {
            "tokenize": tokenization_of_problem(translator.problem, hparams),
            "language": target_language(translator.problem),
        }
        self._has_warned = False
        self._search = {"beam_size": hparams.eval_beam_size, "alpha": hparams.eval_alpha, **(search or {})}
        options = translator.search_options(self._search)  # reports invalid search options before the first evaluation
        if searches(translator.model):
            with located("eval_beam_size"):
                check_own_search(translator.model, options)
        examples = [
            (inputs[inputs != 0].tolist(), targets[targets != 0].tolist())
            for batch in record_format.naming(batches.as_numpy_iterator(), paths, translator.problem.record_features)
            for inputs, targets in zip(batch["inputs"], batch["targets"], strict=True)
        ]
        count = min(count or len(examples), len(examples))
        self._sample = [examples[i * len(examples) // count] for i in range(count)]
        most = translator.max_input_length
        if long := sum(len(inputs) > most for inputs, _ in self._sample):
            LOGGER.warning(f"{counted(long, 'text')} longer than {most:,} ids: only their beginnings are translated.")

    def __call__(self):
        """Decodes and scores the sample; returns ({name: score}, facts such as "bleu_signature", texts)."""
        outputs = self._translator.translate_ids([inputs for inputs, _ in self._sample], **self._search)
        references = [[i for i in targets if i != EOS_ID] for _, targets in self._sample]
        encoders, problem = self._translator.encoders, self._translator.problem
        source, target = encoders["inputs"], encoders["targets"]
        texts = []
        for (ids, _), *pair in zip(self._sample, outputs, references, strict=True):
            inputs = source.decode([i for i in ids if i != EOS_ID])
            shown = (problem.output_text(inputs, target.decode(side_ids), encoders) for side_ids in pair)
            texts.append((inputs, *shown))
        pairs = {"ids": (outputs, references), "texts": ([t[1] for t in texts], [t[2] for t in texts])}
        self._warn(*pairs["texts"])
        scores, facts = {}, {}
        for name, metric in self._metrics.items():
            scores[name], more = score_and_facts(metric(*pairs[metric.of], **self._metric_arguments(metric)))
            facts.update(more)
        return scores, facts, texts

    def _metric_arguments(self, metric):
        """Returns the facts about the problem that a metric's function takes as arguments, {argument: value}."""
        parameters = inspect.signature(metric.__wrapped__).parameters
        return {name: value for name, value in self._facts.items() if name in parameters}

    def _warn(self, outputs, references):
        """Warns once if sacreBLEU's scores would be wrong for some texts."""
        names = [] if self._has_warned else self._metrics.keys() & METRICS.keys()
        if names:
            tokenize, ter = self._facts["tokenize"], ter_options_of(self._facts["language"])
            warn_of_texts(outputs, [references], {name: make_metric(name, tokenize, ter=ter) for name in names})
        self._has_warned = True


def score_and_facts(result):
    """Returns (score, facts) from the result of a metric, which may be the score alone."""
    score, facts = result if isinstance(result, tuple) else (result, {})
    return float(score), facts


class BleuCallback(keras.callbacks.Callback):
    """Translates a split with beam search after epochs of `fit`, and logs the scores as "val_bleu" and "val_chrf".

    Search and scores are the same as in t2t-trainer: cased sacreBLEU, with the tokenization for the target language.
    Place this callback before callbacks that monitor "val_bleu" (with `mode="max"`), such as `EarlyStopping`. Epochs
    without a translation have no "val_bleu", just as epochs skipped by `fit`'s `validation_freq` have no "val_loss".
    TensorFlow only.

    Args:
        problem: Problem, or its name.
        data_dir: str, the folder that t2t-datagen wrote.
        hparams: HParams, or the name of an hparams set, of which eval_beam_size, eval_alpha and eval_tokenization are
            used. If None, the defaults of these hyperparameters are used.
        split: "eval" (or "dev"), "test" or "train".
        max_examples: int, the number of evenly spaced examples to translate, or None for all examples.
        epochs: int, the number of epochs between two translations.
        steps: int, the number of training steps between additional translations, whose scores are only in `history`. If
            None, translations only follow epochs.
        verbose: 0 or 1, whether to print each score with its signature.
        **search: options of `t2t_lite.settings.search_options.SearchOptions`, such as beam_size=1.

    Attributes:
        history: list of (step, BLEU).
        signature: str, the sacreBLEU signature of the last score.
        texts: list of (input, output, reference) from the last translation.

    Raises:
        UserError: if data are missing or damaged, or an option is out of range. `fit` raises this error if the model
            cannot translate.
    """

    def __init__(
        self,
        problem: Problem | str,
        data_dir: str,
        hparams: HParams | str | None = None,
        split: str = "eval",
        max_examples: int | None = None,
        epochs: int = 1,
        steps: int | None = None,
        verbose: int = 0,
        **search,
    ):
        super().__init__()
        check_tensorflow(type(self).__name__)
        for name, value in {"max_examples": max_examples, "epochs": epochs, "steps": steps}.items():
            if not (value is None and name != "epochs") and (not isinstance(value, int) or value < 1):
                raise UserError(f"{type(self).__name__}: {name}={shown(value)}: expected a whole number of at least 1.")
        self.problem = registry.problem(problem) if isinstance(problem, str) else problem
        self.hparams = HParams() if hparams is None else registry.hparams(hparams)
        split = named_split(split)
        records = Records(self.problem, data_dir, split)
        records.check()
        self.encoders, self.paths = self.problem.get_feature_encoders(data_dir), records.paths
        self.max_examples, self.epochs, self.steps, self.verbose = max_examples, epochs, steps, verbose
        self.search = search
        self.history, self.signature, self.texts = [], "", []
        self._prepared = None  # the model that `_score` translates with

    def on_train_begin(self, logs=None):
        """Prepares the search once per model, and discards the scores of an earlier `fit`."""
        self._scored_at, self._periods = None, self._step() // (self.steps or 1)
        if self._prepared is not self.model:
            translator = Translator(self.model, self.encoders, self.hparams, self.problem)
            batches = batching.evaluation_batches(self.problem, self.hparams, self.paths, self.encoders)
            self._score = OutputScorer(
                translator, ["bleu", "chrf"], batches, self.paths, self.max_examples, self.search
            )
            self._prepared = self.model

    def on_train_batch_end(self, batch, logs=None):
        """Translates the examples after every `steps` steps, or later if `steps_per_execution` delays this call."""
        if self.steps and self._step() // self.steps > self._periods:
            self._periods = self._step() // self.steps
            self._translate()

    def on_epoch_end(self, epoch, logs=None):
        """Translates the examples after every `epochs` epochs, and adds the scores to `logs`."""
        if (epoch + 1) % self.epochs:
            return
        if self._scored_at != self._step():
            self._translate()
        if logs is not None:
            logs.update({f"val_{name}": score for name, score in self._scores.items()})

    def _step(self):
        return int(self.model.optimizer.iterations)

    def _translate(self):
        self._scores, facts, self.texts = self._score()
        score, self.signature = self._scores["bleu"], facts["bleu_signature"]
        self._scored_at = self._step()
        self.history.append((self._scored_at, score))
        if self.verbose:
            print(f"\nval_bleu: {score:.2f} ({self.signature})")
