"""Scores of real outputs, such as BLEU of translations by beam search, of a model with its current weights."""

import inspect

from t2t_lite import registry
from t2t_lite.data import record_format
from t2t_lite.decoding.search.adapters import check_own_search, searches
from t2t_lite.errors import located
from t2t_lite.evaluation.scores import METRICS, make_metric, warn_of_texts
from t2t_lite.evaluation.tokenizations import target_language, ter_options_of, tokenization_of_problem


class OutputScorer:
    """Decodes a sample of a split, always the same one, and scores the outputs against its targets.

    Args:
        translator: Translator of the model, with a problem.
        metrics: names of registered metrics of outputs, such as "bleu".
        batches: tf.data.Dataset of the split's batches, {feature: ids}.
        paths: list of str, the records they are read from.
        count: int, how many evenly spaced examples; None: all.
        search: dict of `SearchOptions`, which override eval_beam_size and eval_alpha of the translator's hparams.

    Raises:
        UserError: damaged records, or an invalid search option or tokenization.
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
        options = translator.search_options(self._search)  # reports invalid values now, not at the first evaluation
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

    def __call__(self):
        """Returns ({name: score}, facts such as "bleu_signature", texts: a list of (input, output, reference))."""
        outputs = self._translator.translate_ids([inputs for inputs, _ in self._sample], **self._search)
        references = [[i for i in targets if i != 1] for _, targets in self._sample]
        encoders, problem = self._translator.encoders, self._translator.problem
        source, target = encoders["inputs"], encoders["targets"]
        texts = []
        for (ids, _), *pair in zip(self._sample, outputs, references, strict=True):
            inputs = source.decode(ids)
            shown = (problem.output_text(inputs, target.decode(each), encoders) for each in pair)
            texts.append((inputs, *shown))
        pairs = {"ids": (outputs, references), "texts": ([t[1] for t in texts], [t[2] for t in texts])}
        self._warn(*pairs["texts"])
        scores, facts = {}, {}
        for name, metric in self._metrics.items():
            scores[name], more = with_facts(metric(*pairs[metric.of], **self._known_to(metric)))
            facts.update(more)
        return scores, facts, texts

    def _known_to(self, metric):
        """Returns the facts about the problem that a metric's function takes as arguments."""
        parameters = inspect.signature(metric.__wrapped__).parameters
        return {name: value for name, value in self._facts.items() if name in parameters}

    def _warn(self, outputs, references):
        """Warns once of texts whose scores of sacreBLEU are wrong."""
        names = [] if self._has_warned else self._metrics.keys() & METRICS.keys()
        if names:
            tokenize, ter = self._facts["tokenize"], ter_options_of(self._facts["language"])
            warn_of_texts(outputs, [references], {name: make_metric(name, tokenize, ter=ter) for name in names})
        self._has_warned = True


def with_facts(found):
    """Returns (float, dict) of what a metric returned, which may be the float alone."""
    score, facts = found if isinstance(found, tuple) else (found, {})
    return float(score), facts
