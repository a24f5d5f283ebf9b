"""Reports the scores of a translation as a dict and as text, also by length, per sentence and against a baseline."""

import dataclasses
import itertools
import os
from typing import NamedTuple

from sacrebleu.significance import PairedTest

from t2t_lite.cli.console import table
from t2t_lite.corpora import plain_text
from t2t_lite.errors import UserError
from t2t_lite.evaluation import scores
from t2t_lite.evaluation.score_files import tensor2tensor_scores
from t2t_lite.evaluation.tokenizations import DEFAULT

LENGTH_LIMITS = (10, 20, 30, 40, 50, 60)  # as in compare-mt
_RESAMPLES = 1000  # as in sacreBLEU


def make_report(
    paths,
    references,
    translation,
    baseline=None,
    source=None,
    *,
    metrics=scores.DEFAULT_METRICS,
    tokenize=DEFAULT,
    ter=None,
    variant="both",
    by_length=False,
    worst=0,
    worst_by="chrf",
):
    """Computes the requested scores of a translation; returns a report, a dict of JSON values.

    Args:
        paths: dict with the texts' names to show in the report: "translation", "reference" (a list), "baseline".
        references: list of lists of str, one per reference translation.
        translation, baseline, source: lists of str; `baseline` and `source` may be None.
        metrics, tokenize, ter: as for `corpus_scores`.
        variant: the variants of tensor2tensor's BLEU to compute: "cased", "uncased" or "both".
        by_length: bool, whether to score groups of sentences of similar length.
        worst: int, number of worst sentences to show.
        worst_by: name of the metric that determines the worst sentences.
    """
    options = {"metrics": metrics, "tokenize": tokenize, "ter": ter}
    report = {
        "translation": paths["translation"],
        "reference": paths["reference"],
        "tensor2tensor": tensor2tensor_scores(translation, references, variant),
        "scores": scores.by_title(scores.corpus_scores(translation, references, **options, where=paths["translation"])),
    }
    if baseline is not None:
        scores.warn_of_texts(baseline, references, {}, paths["baseline"])
        compared = compare(baseline, translation, references, **options)
        by_metric = {scores.METRICS[name]: dataclasses.asdict(comparison) for name, comparison in compared.items()}
        report["comparison"] = {"baseline": paths["baseline"], "metrics": by_metric}
    if by_length:
        report["by_length"] = {"tokenization": tokenize, "buckets": _buckets(translation, references, options)}
        if baseline is not None:
            report["by_length"]["buckets_of_baseline"] = _buckets(baseline, references, options)
    if worst:
        texts, sentences = {"source": source, "translation": translation, "baseline": baseline}, []
        for sentence in worst_sentences(translation, references, worst, worst_by, tokenize, ter):
            shown = {name: lines[sentence.line - 1] for name, lines in texts.items() if lines is not None}
            shown["references"] = [lines[sentence.line - 1] for lines in references]
            sentences.append(sentence._asdict() | shown)
        report["worst"] = {"metric": scores.METRICS[worst_by], "sentences": sentences}
    return report


def _buckets(translation, references, options):
    return [dataclasses.asdict(bucket) for bucket in scores_by_length(translation, references, **options)]


def as_text(report):
    """Formats the report as lines of text; an empty line separates its parts."""
    lines = [f"{name} = {score:6.2f}" for name, score in report["tensor2tensor"].items()]
    lines += [f"{name} = {entry['score']:.2f} ({entry['signature']})" for name, entry in report["scores"].items()]
    for part, show in (("comparison", _comparison_text), ("by_length", _length_text), ("worst", _worst_text)):
        if part in report:
            lines += ["", *show(report[part])]
    return lines


def _comparison_text(part):
    rows = [["metric", "baseline", "translation", "difference", "p"]]
    for name, entry in part["metrics"].items():
        baseline = f"{entry['baseline']:.2f} ± {entry['baseline_interval']:.2f}"
        translation = f"{entry['translation']:.2f} ± {entry['translation_interval']:.2f}"
        rows.append([name, baseline, translation, f"{entry['difference']:+.2f}", f"{entry['p_value']:.4f}"])
    signatures = [f"{name}: {entry['signature']}" for name, entry in part["metrics"].items()]
    title = f"against {part['baseline']}: 95 % intervals and p-value by paired bootstrap"
    return [title, *table(rows), *signatures]


def _length_text(part):
    buckets, baseline = part["buckets"], part.get("buckets_of_baseline")
    names = list(buckets[0]["scores"])
    rows = [["words", "sentences", "length_ratio", *names, *(f"baseline:{name}" for name in names if baseline)]]
    for at, bucket in enumerate(buckets):
        values = [*bucket["scores"].values(), *(baseline[at]["scores"].values() if baseline else ())]
        counts = [bucket["words"], str(bucket["sentences"]), f"{bucket['length_ratio']:.3f}"]
        rows.append([*counts, *(f"{value:.2f}" for value in values)])
    return [f"by number of words in the reference (tokenization {part['tokenization']})", *table(rows)]


def _worst_text(part):
    lines = [f"worst sentences by {part['metric']}: {len(part['sentences'])}"]
    for sentence in part["sentences"]:
        lines.append(f"line {sentence['line']}: {part['metric']} = {sentence['score']:.2f}")
        texts = [(name, sentence[name]) for name in ("source", "translation", "baseline") if name in sentence]
        texts += [("reference", text) for text in sentence["references"]]
        # Control characters are removed from the texts, so that the texts are safe for a terminal.
        lines += [f"  {name:11}  {plain_text.clean(text)}".rstrip() for name, text in texts]
    return lines


@dataclasses.dataclass(frozen=True)
class Bucket:
    """A group of sentences whose references have similar numbers of words.

    Attributes:
        words: str, the range of the number of words, both ends inclusive, such as "10-19"; "60+" for the last bucket.
        sentences: number of sentences in the group, at least 1.
        length_ratio: number of words in the translations / number of words in the references.
        scores: {title in `METRICS`: float}, the corpus scores of the group's sentences.
    """

    words: str
    sentences: int
    length_ratio: float
    scores: dict


class ScoredSentence(NamedTuple):
    """A sentence and its score.

    Attributes:
        line: int, number of the line, from 1.
        score: score of the single sentence, 0 to 100; TER can be higher.
    """

    line: int
    score: float


def scores_by_length(
    hypotheses, references, metrics=scores.DEFAULT_METRICS, tokenize=DEFAULT, limits=LENGTH_LIMITS, ter=None
):
    """Scores sentences in groups of similar length.

    Args:
        hypotheses, references, metrics, tokenize, ter: as for `corpus_scores`. The length of a sentence is the number
            of words of its first reference, tokenized with `tokenize`.
        limits: increasing ints, the numbers of words at which the second and later buckets begin.

    Returns:
        list of nonempty `Bucket`s, the shortest sentences first.

    Raises:
        UserError: see `corpus_scores`.
    """
    hypotheses, references = scores.check_texts(hypotheses, references)
    count = scores.make_metric("bleu", tokenize).tokenizer
    lengths = [len(count(line).split()) for line in references[0]]
    edges, buckets = (0, *limits, None), []
    for shortest, end in itertools.pairwise(edges):
        indices = [at for at, length in enumerate(lengths) if shortest <= length and (end is None or length < end)]
        if not indices:
            continue
        bucket = [hypotheses[at] for at in indices], [[lines[at] for at in indices] for lines in references]
        words = sum(len(count(line).split()) for line in bucket[0])
        ratio = words / max(1, sum(lengths[at] for at in indices))
        by_metric = scores.corpus_scores(*bucket, metrics, tokenize, ter, where=None)
        by_title = {scores.METRICS[name]: score.score for name, score in by_metric.items()}
        buckets.append(Bucket(f"{shortest}-{end - 1}" if end else f"{shortest}+", len(indices), ratio, by_title))
    return buckets


def worst_sentences(hypotheses, references, count, metric="chrf", tokenize=DEFAULT, ter=None):
    """Returns the `count` sentences with the worst scores, worst first; ties keep the order of the text.

    Args:
        hypotheses, references, tokenize, ter: as for `corpus_scores`.
        count: int.
        metric: a name in `METRICS`. Sentence BLEU skips n-gram orders for which the sentence is too short.

    Returns:
        list of `ScoredSentence`.

    Raises:
        UserError: see `corpus_scores`.
    """
    hypotheses, references = scores.check_texts(hypotheses, references)
    scores.check_metrics([metric])
    scorer = scores.make_metric(metric, tokenize, of_sentences=True, ter=ter)
    sentences = [
        ScoredSentence(line, scores.bounded(scorer, scorer.sentence_score(hypothesis, list(references_of_line)).score))
        for line, (hypothesis, *references_of_line) in enumerate(zip(hypotheses, *references, strict=True), 1)
    ]
    return sorted(sentences, key=lambda sentence: sentence.score if metric != "ter" else -sentence.score)[:count]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The comparison of two translations of a text by one metric.

    Attributes:
        baseline, translation: the corpus scores of the two translations.
        baseline_interval, translation_interval: half the width of the 95 % confidence interval. The interval is
            centered on the mean of the resamples, which is usually within 0.1 of the score.
        difference: the translation's score minus the baseline's score.
        p_value: the probability that two equally good translations would differ by at least this much. If it is small
            (< 0.05), the difference is unlikely to come from the choice of sentences.
        signature: sacreBLEU's signature, with the number of resamples and the seed.
    """

    baseline: float
    baseline_interval: float
    translation: float
    translation_interval: float
    difference: float
    p_value: float
    signature: str


def compare(baseline, hypotheses, references, metrics=scores.DEFAULT_METRICS, tokenize=DEFAULT, ter=None):
    """Compares two translations of the same text using 1,000 bootstrap resamples of its sentences.

    As in sacreBLEU, the environment variable SACREBLEU_SEED seeds the resamples (default 12345; "none" for a different
    seed each time).

    Args:
        baseline, hypotheses: lists of str, the two translations.
        references, metrics, tokenize, ter: as for `corpus_scores`.

    Returns:
        {name: `Comparison`}, in the order of `metrics`.

    Raises:
        UserError: see `corpus_scores`.
    """
    hypotheses, references = scores.check_texts(hypotheses, references)
    baseline, _ = scores.check_texts(baseline, references)
    scores.check_metrics(metrics)
    _check_seed()
    compared = {}
    for name in metrics:
        systems = [("baseline", baseline), ("translation", hypotheses)]
        metric = scores.make_metric(name, tokenize, ter=ter)
        test = PairedTest(systems, {name: metric}, references, test_type="bs", n_samples=_RESAMPLES)
        signatures, results = test()
        (signature,) = signatures.values()
        (title,) = signatures  # the name that sacreBLEU uses for the metric
        first, second = results[title]
        before, after = (scores.bounded(metric, result.score) for result in (first, second))
        compared[name] = Comparison(
            baseline=before,
            baseline_interval=float(first.ci),
            translation=after,
            translation_interval=float(second.ci),
            difference=after - before,
            # for equal translations, sacreBLEU's p-value would be 0.001
            p_value=1.0 if before == after else second.p_value,
            signature=signature.format(),
        )
    return compared


def _check_seed():
    seed = os.environ.get("SACREBLEU_SEED", "none")
    if seed.lower() != "none" and not seed.isdecimal():
        raise UserError(f"SACREBLEU_SEED={seed}: expected an integer, or none for different resamples each time.")
