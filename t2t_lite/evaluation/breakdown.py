"""Scores of a translation by sentence length, and its worst sentences."""

import dataclasses
import itertools

from t2t_lite.evaluation import scores
from t2t_lite.evaluation.tokenizations import DEFAULT

LENGTH_LIMITS = (10, 20, 30, 40, 50, 60)  # compare-mt's


@dataclasses.dataclass(frozen=True)
class Bucket:
    """The sentences whose references have from `shortest` to `longest` words.

    Attributes:
        shortest, longest: words, both inclusive; longest is None for the last bucket.
        sentences: number of sentences, at least 1.
        length_ratio: words of the translations / words of the references.
        scores: {name: `Score`} of these sentences as a corpus.
    """

    shortest: int
    longest: int | None
    sentences: int
    length_ratio: float
    scores: dict

    words = property(lambda self: f"{self.shortest}-{self.longest}" if self.longest else f"{self.shortest}+")


@dataclasses.dataclass(frozen=True)
class ScoredSentence:
    """One sentence and its score.

    Attributes:
        line: int, from 1.
        score: score of the sentence alone, 0 to 100; TER can be higher.
    """

    line: int
    score: float


def scores_by_length(
    hypotheses, references, metrics=scores.DEFAULT_METRICS, tokenize=DEFAULT, limits=LENGTH_LIMITS, ter=None
):
    """Scores sentences in groups of similar length.

    Args:
        hypotheses, references, metrics, tokenize, ter: as for `corpus_scores`. The length is the number of words of the
            first reference after `tokenize`.
        limits: increasing ints; a bucket ends before each.

    Returns:
        list of nonempty `Bucket`s, the shortest sentences first.

    Raises:
        UserError: as `corpus_scores`.
    """
    hypotheses, references = scores.check_texts(hypotheses, references)
    count = scores.make_metric("bleu", tokenize).tokenizer
    lengths = [len(count(line).split()) for line in references[0]]
    edges, buckets = (0, *limits, None), []
    for shortest, end in itertools.pairwise(edges):
        indices = [at for at, length in enumerate(lengths) if shortest <= length and (end is None or length < end)]
        if not indices:
            continue
        of_bucket = [hypotheses[at] for at in indices], [[lines[at] for at in indices] for lines in references]
        words = sum(len(count(line).split()) for line in of_bucket[0])
        ratio = words / max(1, sum(lengths[at] for at in indices))
        of_metrics = scores.corpus_scores(*of_bucket, metrics, tokenize, ter, where=None)
        buckets.append(Bucket(shortest, end and end - 1, len(indices), ratio, of_metrics))
    return buckets


def worst_sentences(hypotheses, references, count, metric="chrf", tokenize=DEFAULT, ter=None):
    """Returns the `count` sentences with the worst scores, the worst first; ties are in the order of the text.

    Args:
        hypotheses, references, tokenize, ter: as for `corpus_scores`.
        count: int.
        metric: a name in `METRICS`. Sentence BLEU leaves out n-gram orders that the sentence is too short for.

    Returns:
        list of `ScoredSentence`.

    Raises:
        UserError: as `corpus_scores`.
    """
    hypotheses, references = scores.check_texts(hypotheses, references)
    scores.check_metrics([metric])
    scorer = scores.make_metric(metric, tokenize, of_sentences=True, ter=ter)
    sentences = [
        ScoredSentence(line, scorer.sentence_score(hypothesis, list(of_line)).score)
        for line, (hypothesis, *of_line) in enumerate(zip(hypotheses, *references, strict=True), 1)
    ]
    return sorted(sentences, key=lambda sentence: sentence.score if metric != "ter" else -sentence.score)[:count]
