"""Minimum Bayes risk decoding: selects the sample that is most similar to all samples.

See Kumar and Byrne 2004; for samples, see Eikema and Aziz 2020, "Is MAP decoding all you need?". Each sample is
both a hypothesis and a pseudo-reference. The expected utility of a hypothesis is its mean utility against all
pseudo-references.
"""

import collections
import dataclasses

import numpy as np
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams, extract_word_ngrams

from t2t_lite.decoding.hypothesis import ends_early
from t2t_lite.evaluation.tokenizations import DEFAULT

UTILITIES = ("chrf", "bleu")


def expected_utilities(texts, utility="chrf", tokenize=DEFAULT):
    """Ranks samples by expected utility.

    Args:
        texts: list of str, the samples. A sample that occurs n times counts n times as a pseudo-reference.
        utility: "chrf" or "bleu", sacrebleu's `sentence_chrf` or `sentence_bleu`.
        tokenize: the tokenization for BLEU.

    Returns:
        list with one pair per distinct text, (index of its first occurrence in `texts`, expected utility from 0 to
        100), best first. Ties keep the order of `texts`.
    """
    counts = collections.Counter(texts)
    weights = np.array(list(counts.values())) / len(texts)
    expected = _utilities(list(counts), utility, tokenize) @ weights
    ranked = sorted(zip(expected, map(texts.index, counts), strict=True), key=lambda pair: (-pair[0], pair[1]))
    return [(place, float(value)) for value, place in ranked]


def ranked(translation, utility="chrf", tokenize=DEFAULT):
    """Reranks the samples of a Translation: removes duplicates and sorts by expected utility, which becomes the score.

    For arguments see `expected_utilities`. A blank translation is returned unchanged.
    """
    if not translation.source_tokens:
        return translation
    ranks = expected_utilities([one.text for one in translation.hypotheses], utility, tokenize)
    best = tuple(dataclasses.replace(translation.hypotheses[at], score=value) for at, value in ranks)
    is_short = ends_early(translation.source_tokens, best[0].ids)
    return dataclasses.replace(translation, hypotheses=best, is_short=is_short)


def with_mean_scores(translation):
    """Converts the scores of a Translation, which are sums over the parts of the text, to means."""
    best = tuple(dataclasses.replace(one, score=one.score / translation.parts) for one in translation.hypotheses)
    return dataclasses.replace(translation, hypotheses=best)


def _utilities(texts, utility, tokenize):
    """Returns the sentence scores of all pairs of texts, float64 [hypothesis, reference].

    sacrebleu extracts the n-grams and computes the scores. Only the matches are counted here, for all pairs in one
    operation. With 32 samples, this was 20 times as fast as calling `sentence_score` for each pair when the utility was
    chrF, and six times as fast when it was BLEU.
    """
    if utility == "chrf":
        metric = CHRF()
        grams = [extract_all_char_ngrams(metric._preprocess_segment(text), metric.char_order) for text in texts]
    else:
        metric = BLEU(effective_order=True, tokenize=tokenize)
        words = [metric._preprocess_segment(text).split() for text in texts]
        grams = [[extract_word_ngrams(w, order) for order in range(1, metric.max_ngram_order + 1)] for w in words]
    totals, matches = zip(*map(_count, zip(*grams, strict=True)), strict=True)
    totals, matches = np.stack(totals, -1), np.stack(matches, -1)  # [K, orders], [K, K, orders]
    hypothesis, reference = np.broadcast_arrays(totals[:, None], totals[None])
    if utility == "chrf":  # for each order, the n-grams in the hypothesis, in the reference and in both
        statistics = np.stack([hypothesis, reference, matches], -1).reshape(len(texts), len(texts), -1)
    else:  # the lengths in words, then n-grams in both and in the hypothesis
        statistics = np.concatenate([hypothesis[..., :1], reference[..., :1], matches, hypothesis], -1)
    return np.array([[metric._compute_score_from_stats(pair).score for pair in row] for row in statistics.tolist()])


def _count(counters):
    """Counts n-grams of K texts; returns (the count of each text, int [K]; the shared counts, int [K, K])."""
    columns = collections.defaultdict(lambda: len(columns))
    cells = [(row, columns[gram], count) for row, counter in enumerate(counters) for gram, count in counter.items()]
    table = np.zeros((len(counters), len(columns)), "int32")
    for row, column, count in cells:
        table[row, column] = count
    return table.sum(1), np.stack([np.minimum(row, table).sum(1) for row in table])
