"""Tests whether one translation is significantly better than another, by sacreBLEU's paired bootstrap (Koehn 2004)."""

import dataclasses
import os

from sacrebleu.significance import PairedTest

from t2t_lite.errors import UserError
from t2t_lite.evaluation import scores
from t2t_lite.evaluation.tokenizations import DEFAULT

_RESAMPLES = 1000  # sacreBLEU's


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two translations of one text by one metric.

    Attributes:
        baseline, score: scores of all sentences.
        baseline_interval, interval: half the width of the 95 % confidence interval, which is centered on the mean of
            the resamples, usually within 0.1 of the score.
        p_value: probability of a difference at least as large between equally good translations. If it is small
            (< 0.05), the difference is unlikely to come from the choice of sentences.
        signature: sacreBLEU's, with the number of resamples and the seed.
    """

    baseline: float
    baseline_interval: float
    score: float
    interval: float
    p_value: float
    signature: str

    difference = property(lambda self: self.score - self.baseline)


def compare(baseline, hypotheses, references, metrics=scores.DEFAULT_METRICS, tokenize=DEFAULT, ter=None):
    """Compares translations of the same text by 1,000 resamples of its sentences.

    As in sacreBLEU, the environment variable SACREBLEU_SEED seeds the resamples (default 12345; "none": a different
    seed each time).

    Args:
        baseline, hypotheses: lists of str, the two translations.
        references, metrics, tokenize, ter: as for `corpus_scores`.

    Returns:
        {name: `Comparison`}, in the order of `metrics`.

    Raises:
        UserError: as `corpus_scores`.
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
        (title,) = signatures  # sacreBLEU's own name of the metric
        first, second = results[title]
        compared[name] = Comparison(
            baseline=first.score,
            baseline_interval=float(first.ci),
            score=second.score,
            interval=float(second.ci),
            # sacreBLEU's is 0.001 for a translation against itself
            p_value=1.0 if second.score == first.score else second.p_value,
            signature=signature.format(),
        )
    return compared


def _check_seed():
    seed = os.environ.get("SACREBLEU_SEED", "none")
    if seed.lower() != "none" and not seed.isdecimal():
        raise UserError(f"SACREBLEU_SEED={seed}: expected a whole number, or none for other resamples each time.")
