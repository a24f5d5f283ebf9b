"""Scores of whole corpora: sacreBLEU's, each with the signature that makes it comparable."""

import dataclasses

import sacrebleu.metrics

from t2t_lite.errors import UserError

# sacreBLEU's tokenisations that need neither a download nor another package.
TOKENIZATIONS = ("13a", "intl", "zh", "char", "none")


@dataclasses.dataclass(frozen=True)
class Score:
    """A corpus score (0 to 100) and sacreBLEU's signature: references, case, tokenisation, smoothing, version."""

    score: float
    signature: str

    def __str__(self):
        return f"{self.score:.2f} ({self.signature})"


def corpus_bleu(hypotheses, references, lowercase=False, tokenize="13a"):
    """BLEU-4 of a corpus against one reference a sentence, as sacreBLEU computes it.

    tensor2tensor's own BLEU (utils/bleu_hook.py) is this with `tokenize="intl"`.

    Args:
        hypotheses: list of str, detokenised text, one a sentence.
        references: list of str of the same length.
        lowercase: compare without case.
        tokenize: one of `TOKENIZATIONS`.

    Returns:
        `Score`.

    Raises:
        UserError: no sentences, unequal numbers of sentences, or an unknown tokenisation.

    Example:
        >>> corpus_bleu(["The red house is old."], ["The red house is old."]).score
        100.0
    """
    hypotheses, references = list(hypotheses), list(references)
    if len(hypotheses) != len(references):
        raise UserError(f"{len(hypotheses)} translations but {len(references)} references: expected one for each.")
    if not references:
        raise UserError("no sentences to score: the translations and the references are empty.")
    if tokenize not in TOKENIZATIONS:
        raise UserError(f"tokenisation {tokenize!r}: expected one of {', '.join(TOKENIZATIONS)}.")
    metric = sacrebleu.metrics.BLEU(lowercase=lowercase, tokenize=tokenize)
    score = metric.corpus_score(hypotheses, [references]).score
    return Score(min(score, 100.0), metric.get_signature().format())  # sacreBLEU's rounding gives 100.00000000000004
