"""t2t-bleu's report on one translation: a dict, and how it reads as text."""

from t2t_lite.bin import _scoring


def make_report(flags, translation, references, baseline=None, source=None):
    """Returns all that was asked for as a dict of numbers, str, lists and dicts.

    Args:
        flags: the parsed flags of t2t-bleu.
        translation, baseline, source: lists of str; the last two may be None.
        references: list of such lists.
    """
    from t2t_lite.evaluation import scores

    options = {"metrics": flags.metrics, "tokenize": flags.tokenization}
    report = {
        "translation": flags.translation,
        "reference": flags.reference,
        "tensor2tensor": _scoring.tensor2tensor_scores(translation, references, flags.bleu_variant),
        "scores": {
            scores.METRICS[name]: {"score": score.score, "signature": score.signature}
            for name, score in scores.corpus_scores(translation, references, **options).items()
        },
    }
    if baseline is not None:
        report["comparison"] = {
            "baseline": flags.baseline,
            "metrics": _comparison(baseline, translation, references, options),
        }
    if flags.by_length:
        report["by_length"] = {
            "tokenization": flags.tokenization,
            "buckets": _buckets(translation, references, options),
        }
        if baseline is not None:
            report["by_length"]["buckets_of_baseline"] = _buckets(baseline, references, options)
    if flags.worst:
        texts = {"source": source, "translation": translation, "baseline": baseline}
        report["worst"] = {
            "metric": scores.METRICS[flags.worst_by],
            "sentences": _worst(flags, translation, references, {k: v for k, v in texts.items() if v is not None}),
        }
    return report


def _comparison(baseline, translation, references, options):
    from t2t_lite.evaluation import scores, significance

    compared = significance.compare(baseline, translation, references, **options)
    return {
        scores.METRICS[name]: {
            "baseline": found.baseline,
            "baseline_interval": found.baseline_interval,
            "translation": found.score,
            "translation_interval": found.interval,
            "difference": found.difference,
            "p_value": found.p_value,
            "signature": found.signature,
        }
        for name, found in compared.items()
    }


def _buckets(translation, references, options):
    from t2t_lite.evaluation import breakdown, scores

    return [
        {
            "words": bucket.words,
            "sentences": bucket.sentences,
            "length_ratio": bucket.length_ratio,
            "scores": {scores.METRICS[name]: score.score for name, score in bucket.scores.items()},
        }
        for bucket in breakdown.scores_by_length(translation, references, **options)
    ]


def _worst(flags, translation, references, texts):
    from t2t_lite.evaluation import breakdown

    found = breakdown.worst_sentences(translation, references, flags.worst, flags.worst_by, flags.tokenization)
    return [
        {
            "line": sentence.line,
            "score": sentence.score,
            **{name: lines[sentence.line - 1] for name, lines in texts.items()},
            "references": [lines[sentence.line - 1] for lines in references],
        }
        for sentence in found
    ]


def as_text(report):
    """Returns the lines of the report for people; parts are separated by an empty line."""
    lines = [f"{name} = {score:6.2f}" for name, score in report["tensor2tensor"].items()]
    lines += [f"{name} = {found['score']:.2f} ({found['signature']})" for name, found in report["scores"].items()]
    for part, show in (("comparison", _comparison_text), ("by_length", _length_text), ("worst", _worst_text)):
        if part in report:
            lines += ["", *show(report[part])]
    return lines


def _comparison_text(part):
    rows = [["metric", "baseline", "translation", "difference", "p"]]
    for name, found in part["metrics"].items():
        before = f"{found['baseline']:.2f} ± {found['baseline_interval']:.2f}"
        after = f"{found['translation']:.2f} ± {found['translation_interval']:.2f}"
        rows.append([name, before, after, f"{found['difference']:+.2f}", f"{found['p_value']:.4f}"])
    signatures = [f"{name}: {found['signature']}" for name, found in part["metrics"].items()]
    title = f"against {part['baseline']}: 95 % intervals and p-value by paired bootstrap"
    return [title, *_scoring.table(rows), *signatures]


def _length_text(part):
    buckets, baseline = part["buckets"], part.get("buckets_of_baseline")
    names = list(buckets[0]["scores"])
    rows = [["words", "sentences", "length_ratio", *names, *(f"baseline:{name}" for name in names if baseline)]]
    for at, bucket in enumerate(buckets):
        values = [*bucket["scores"].values(), *(baseline[at]["scores"].values() if baseline else ())]
        counts = [bucket["words"], str(bucket["sentences"]), f"{bucket['length_ratio']:.3f}"]
        rows.append([*counts, *(f"{value:.2f}" for value in values)])
    return [f"by words of the reference (tokenisation {part['tokenization']})", *_scoring.table(rows)]


def _worst_text(part):
    from t2t_lite.corpora import plain_text

    lines = [f"the worst {len(part['sentences'])} by {part['metric']} of the sentence"]
    for found in part["sentences"]:
        lines.append(f"line {found['line']}: {part['metric']} = {found['score']:.2f}")
        texts = [(name, found[name]) for name in ("source", "translation", "baseline") if name in found]
        texts += [("reference", text) for text in found["references"]]
        lines += [f"  {name:11}  {plain_text.clean(text)}".rstrip() for name, text in texts]  # for a terminal
    return lines
