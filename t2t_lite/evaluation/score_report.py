"""A report on the scores of one translation, as a dict and as text."""

from t2t_lite.cli.console import table
from t2t_lite.corpora import plain_text
from t2t_lite.evaluation import breakdown, scores, significance
from t2t_lite.evaluation.score_files import tensor2tensor_scores
from t2t_lite.evaluation.tokenizations import DEFAULT


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
    """Returns the requested scores as a dict of numbers, str, lists and dicts.

    Args:
        paths: dict of the names of the texts in the report: "translation", "reference" (a list), "baseline".
        references: list of lists of str, one per reference translation.
        translation, baseline, source: lists of str; the last two may be None.
        metrics, tokenize, ter: as for `corpus_scores`.
        variant: which of tensor2tensor's BLEU to compute: "cased", "uncased" or "both".
        by_length: bool, whether to score sentences by length.
        worst: int, number of worst sentences to show.
        worst_by: metric that ranks them.
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
        compared = significance.compare(baseline, translation, references, **options)
        report["comparison"] = {"baseline": paths["baseline"], "metrics": _comparison(compared)}
    if by_length:
        report["by_length"] = {"tokenization": tokenize, "buckets": _buckets(translation, references, options)}
        if baseline is not None:
            report["by_length"]["buckets_of_baseline"] = _buckets(baseline, references, options)
    if worst:
        texts = {"source": source, "translation": translation, "baseline": baseline}
        report["worst"] = {
            "metric": scores.METRICS[worst_by],
            "sentences": [
                {
                    "line": sentence.line,
                    "score": sentence.score,
                    **{name: lines[sentence.line - 1] for name, lines in texts.items() if lines is not None},
                    "references": [lines[sentence.line - 1] for lines in references],
                }
                for sentence in breakdown.worst_sentences(translation, references, worst, worst_by, tokenize, ter)
            ],
        }
    return report


def _comparison(compared):
    return {
        scores.METRICS[name]: {
            "baseline": comparison.baseline,
            "baseline_interval": comparison.baseline_interval,
            "translation": comparison.score,
            "translation_interval": comparison.interval,
            "difference": comparison.difference,
            "p_value": comparison.p_value,
            "signature": comparison.signature,
        }
        for name, comparison in compared.items()
    }


def _buckets(translation, references, options):
    return [
        {
            "words": bucket.words,
            "sentences": bucket.sentences,
            "length_ratio": bucket.length_ratio,
            "scores": {scores.METRICS[name]: score.score for name, score in bucket.scores.items()},
        }
        for bucket in breakdown.scores_by_length(translation, references, **options)
    ]


def as_text(report):
    """Returns the lines of the report as text; parts are separated by an empty line."""
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
    return [f"by words of the reference (tokenization {part['tokenization']})", *table(rows)]


def _worst_text(part):
    lines = [f"the worst {len(part['sentences'])} by {part['metric']} of the sentence"]
    for sentence in part["sentences"]:
        lines.append(f"line {sentence['line']}: {part['metric']} = {sentence['score']:.2f}")
        texts = [(name, sentence[name]) for name in ("source", "translation", "baseline") if name in sentence]
        texts += [("reference", text) for text in sentence["references"]]
        lines += [f"  {name:11}  {plain_text.clean(text)}".rstrip() for name, text in texts]  # for a terminal
    return lines
