"""Evaluation on the dev set: teacher-forced loss, and a score of the model's real outputs."""

import math

import tensorflow as tf

from t2t_lite.data import batching, records
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.evaluation.scores import corpus_bleu
from t2t_lite.parsing.evalb import score_trees
from t2t_lite.parsing.trees import parse_tree
from t2t_lite.training.losses import cross_entropy

# Metrics for which lower is better; for all others higher is.
LESS_IS_BETTER = ("loss", "perplexity")
_TEACHER_FORCED = ("loss", "perplexity", "token_accuracy")
SCORES = ("bleu", "bracketing_f1", "exact_sequence_accuracy")


def metric_names(problem, hparams):
    """Returns the names of an `Evaluator`'s metrics, a tuple of str; the score of real outputs is last."""
    return (*_TEACHER_FORCED, problem.eval_decode_metric) if hparams.eval_decode_examples > 0 else _TEACHER_FORCED


def metrics_of(line):
    """Returns the metrics in an "evaluation" line of a log, a dict."""
    return {name: line[name] for name in (*_TEACHER_FORCED, *SCORES) if line.get(name) is not None}


class Evaluator:
    """Evaluates a model in training, with its current weights.

    Scores are computed from beam-search outputs, not from teacher-forced predictions (tensor2tensor's approx_bleu).
    "bleu" is sacreBLEU, cased, 13a, on a sample of the dev set; "bracketing_f1" is evalb's, on the same sample;
    "exact_sequence_accuracy" is the share of outputs that are entirely correct.

    Args:
        model: keras.Model.
        problem: Problem.
        encoders: {"inputs", "targets"}.
        hparams: HParams: batch_size, label_smoothing, eval_decode_examples, eval_beam_size, eval_alpha are used.
        paths: list of str, the records.
        max_batches: int, teacher-forced batches, longest sentences first; 0: all.
        search: dict of `SearchOptions` for the outputs, which override those of hparams and problem.
        translate_all: bool, translate every example instead of eval_decode_examples.

    Raises:
        UserError: damaged records, or an invalid search option.
    """

    def __init__(self, model, problem, encoders, hparams, paths, max_batches=0, search=None, translate_all=False):
        self.model = model
        self.problem = problem
        self.encoders = encoders
        self.hparams = hparams
        self.max_batches = max_batches
        self._paths = paths
        self._batches = batching.evaluation_batches(
            paths,
            batch_size=hparams.batch_size,
            was_reversed=problem.was_reversed,
            was_copy=problem.was_copy,
            vocab_size=tuple(encoders[side].vocab_size for side in ("inputs", "targets")),
        )
        self._translator = Translator(model, encoders, hparams, problem)
        self._search = {"beam_size": hparams.eval_beam_size, "alpha": hparams.eval_alpha, **(search or {})}
        self._translator.search_options(self._search)  # reports invalid values now, not at the first evaluation
        self._sample = self._evenly_spaced(None if translate_all else hparams.eval_decode_examples)
        ids = tf.TensorSpec([None, None], tf.int32)
        signature = [{"inputs": ids, "targets": ids}]
        self.bleu_signature = None  # sacreBLEU's signature of the last BLEU
        self._sums = tf.function(self._batch_sums, input_signature=signature, autograph=False)

    def _batch_sums(self, batch):
        logits, targets = self.model(batch, training=False), batch["targets"]
        _, nats = cross_entropy(logits, targets)
        hits = (tf.argmax(logits, axis=-1, output_type=tf.int32) == targets) & (targets != 0)
        return nats, tf.math.count_nonzero(hits), tf.math.count_nonzero(targets)

    def _evenly_spaced(self, count):
        """Returns `count` evenly spaced examples (None: all) as (input ids, target ids), always the same ones."""
        if count is not None and count <= 0:
            return []
        examples = [
            (inputs[inputs != 0].tolist(), targets[targets != 0].tolist())
            for batch in records.naming(self._batches.as_numpy_iterator(), self._paths)
            for inputs, targets in zip(batch["inputs"], batch["targets"], strict=True)
        ]
        step = max(1, len(examples) // count) if count else 1
        return examples[::step][:count]

    def __call__(self):
        """Evaluates.

        Returns:
            (metrics, translations): a dict of floats: "loss" (nats per target token), "perplexity", "token_accuracy"
            (teacher-forced), and "bleu", "bracketing_f1" or "exact_sequence_accuracy"; and a list of (input, output,
            reference) texts.
        """
        nats, hits, tokens = 0.0, 0, 0
        batches = self._batches.take(self.max_batches) if self.max_batches else self._batches
        for batch in records.naming(batches, self._paths):
            batch_nats, batch_hits, batch_tokens = self._sums(batch)
            nats, hits, tokens = nats + float(batch_nats), hits + int(batch_hits), tokens + int(batch_tokens)
        if not tokens:
            raise UserError(f"{self.problem.full_name}: the records hold no example. Run t2t-datagen again.")
        metrics = {
            "loss": nats / tokens,
            "perplexity": math.exp(min(nats / tokens, 80.0)),
            "token_accuracy": hits / tokens,
        }
        if not self._sample:
            return metrics, []
        outputs = self._translator.translate_ids([inputs for inputs, _ in self._sample], **self._search)
        references = [[i for i in targets if i != 1] for _, targets in self._sample]
        source, target = self.encoders["inputs"], self.encoders["targets"]
        texts = [
            self._texts(source.decode(inputs), target.decode(output), target.decode(reference))
            for (inputs, _), output, reference in zip(self._sample, outputs, references, strict=True)
        ]
        if self.problem.eval_decode_metric == "bleu":
            bleu = corpus_bleu([t[1] for t in texts], [t[2] for t in texts])
            metrics["bleu"], self.bleu_signature = bleu.score, bleu.signature
        elif self.problem.eval_decode_metric == "bracketing_f1":
            predicted, gold = ([parse_tree(text[side]) for text in texts] for side in (1, 2))
            metrics["bracketing_f1"] = score_trees(gold, predicted)[0].f1
        else:
            right = sum(output == reference for output, reference in zip(outputs, references, strict=True))
            metrics["exact_sequence_accuracy"] = right / len(texts)
        return metrics, texts

    def _texts(self, inputs, output, reference):
        """Returns the three texts in the form that users of the model see."""
        shown = (self.problem.output_text(inputs, text, self.encoders) for text in (output, reference))
        return inputs, *shown
